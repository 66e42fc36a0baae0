"""Profilers, debuggers and coverage see the program, and not its tracer."""

from __future__ import annotations

import cProfile
import sys

import pytest

import stator
from stator import _core


def program(a):
    return [a, a + 1]


def names_seen(function, *args):
    seen = []

    def profiler(frame, event, arg):
        if event == "call":
            seen.append(frame.f_code.co_name)

    sys.setprofile(profiler)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return seen


def test_the_tracer_is_not_profiled():
    compiled = stator.compile(program, backend="eager")
    first, second = names_seen(compiled, 1), names_seen(compiled, 2)
    assert "compile" not in first and "on_miss" not in first
    assert len(first) <= 2 and len(second) <= 2


def test_the_tracer_is_shown_on_demand():
    compiled = stator.compile(program, backend="eager", options={"show_tracer": True})
    assert "compile" in names_seen(compiled, 1)


def test_the_profiler_goes_on_after_a_trace():
    compiled = stator.compile(program, backend="eager")

    def later():
        return 1

    assert names_seen(lambda: (compiled(1), later()))[-1] == "later"
    profile = cProfile.Profile()
    profile.runcall(lambda: (compiled(2.5), later()))
    assert "later" in {entry.code.co_name for entry in profile.getstats() if not isinstance(entry.code, str)}


def test_modules_imported_while_tracing_are_seen(tmp_path, monkeypatch):
    (tmp_path / "seen_module.py").write_text("def inside():\n    return 5\nvalue = inside()\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def importing():
        import seen_module

        return seen_module.value

    assert "inside" in names_seen(stator.compile(importing, backend="eager", fullgraph=True))
    del sys.modules["seen_module"]


def test_a_call_that_is_seen_anyway():
    assert _core.call_with_tracing(sorted, [2, 1], reverse=True) == [2, 1]
    with pytest.raises(TypeError, match="takes a function"):
        _core.call_with_tracing()
    with pytest.raises(ZeroDivisionError):
        _core.call_with_tracing(divmod, 1, 0)
