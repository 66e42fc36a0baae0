"""Warnings that are shown after the graph."""

import gc
import re
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


def nested_set():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = re.findall("[[a]b", "abab")
    return found, [(str(w.message), w.category) for w in caught]


def test_functions_run_for_real_warn_when_the_program_runs():
    re.purge()
    expected = nested_set()
    assert expected[1]
    re.purge()
    assert stator.compile(nested_set, backend="eager")() == expected


def test_what_is_ignored_breaks_nothing():
    re.purge()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filters = list(warnings.filters)
        assert stator.compile(lambda: re.findall("[[a]b", "ab"), backend="eager", fullgraph=True)() == ["ab"]
        assert warnings.filters == filters
