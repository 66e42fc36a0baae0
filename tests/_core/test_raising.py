"""Raising exceptions as they are."""

import sys

import pytest

from stator._core import raise_unchanged


def raised(how):
    try:
        raise_unchanged(how)
    except Exception as e:
        return e


def test_neither_context_nor_traceback_is_added():
    try:
        raise KeyError("handled")
    except KeyError:
        exc = raised(ValueError("new"))
    assert exc.args == ("new",)
    assert exc.__context__ is None
    assert exc.__traceback__.tb_next is None


def test_in_place_of_one_that_cannot_be_made():
    try:
        raise ValueError("inner")
    except ValueError as e:
        inner, traceback = e, e.__traceback__
    assert raised((inner,)) is inner
    frames = [inner.__traceback__.tb_lineno, inner.__traceback__.tb_next]
    assert (frames == [traceback.tb_lineno, None]) == (sys.version_info < (3, 12))


@pytest.mark.parametrize("other", [None, 3, ValueError, (), (3,), (ValueError(), ValueError())])
def test_what_is_no_exception(other):
    with pytest.raises(TypeError, match=r"raise_unchanged\(\) takes an exception, or a tuple of one"):
        raise_unchanged(other)
