"""Warnings that are shown after the graph."""

import gc
import warnings

import pytest

import stator


def shown(message):
    raise AssertionError(f"{message.message} is ignored")


shown.__module__ = "warnings"  # pytest has replaced the function that shows them by one that records them


def program():
    warnings.warn("first", stacklevel=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.get_referents()  # a graph break: what has been put off is done
        warnings.warn("second", stacklevel=1)


def test_a_warning_goes_by_the_filters_there_were(monkeypatch):
    monkeypatch.setattr(warnings, "_showwarnmsg_impl", shown)
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        with pytest.raises(UserWarning, match="second"):
            stator.compile(program, backend="eager")()
