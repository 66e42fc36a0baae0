"""Logging to handlers that the program has changed."""

import io
import logging
import sys

import stator

stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
logger = logging.Logger("tests.models")
handler = logging.StreamHandler(stream)
logger.addHandler(handler)


def with_a_handler_of_its_own(said):
    handler.handleError = lambda record: said.append(repr(sys.exc_info()[1]))
    logger.warning("for ASCII: Ø")
    return list(said)


def through_the_changed_handler(said):
    logger.warning("for ASCII: Ø")
    return list(said)


def test_methods_put_into_the_object():
    for function in (with_a_handler_of_its_own, through_the_changed_handler):
        said = []
        handler.handleError = lambda record, said=said: said.append(repr(sys.exc_info()[1]))
        expected = function(said)
        said.clear()
        assert stator.compile(function, backend="eager")(said) == expected
        assert len(expected) == 1
