"""Liveness: a continuation that is given only the live locals does the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stator.bytecode import decode, live_names
from tests.bytecode import samples
from tests.bytecode.samples import LOG, PLAIN
from tests.bytecode.test_continuation_everywhere import (
    each_sample,
    native,
    outcome,
    reads_nothing_but_itself,
    resume,
    shown,
    steps,
)


@each_sample
def test_live_locals_are_enough(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    expected = native(function, args)
    for machine in steps(function, args):
        live = live_names(machine.decoded, machine.index)
        machine.locals = {name: value for name, value in machine.locals.items() if name in live}
        if reads_nothing_but_itself(machine):
            continue
        end = outcome(lambda: resume(machine, machine.index, "enter", [], machine.stack))
        assert (shown(end), shown(LOG)) == expected, machine.instr


def test_most_locals_die() -> None:
    dropped = 0
    for function, args in PLAIN:
        for machine in steps(function, args):
            dropped += len(set(machine.locals) - live_names(machine.decoded, machine.index))
    assert dropped > 1000


def live_at_call(function: Callable[..., Any], callee: str) -> set[str]:
    """What is live after the first call of a global."""
    decoded = decode(function.__code__)
    at = next(instr.index for instr in decoded.instrs if (instr.op, instr.arg) == ("LOAD_GLOBAL", callee))
    call = next(instr.index for instr in decoded.instrs[at:] if instr.op == "CALL")
    return set(live_names(decoded, call + 1))


def test_straight_line() -> None:
    def f(a, b, c):
        d = a + b
        note(d)  # noqa: F821
        c = b
        return c

    assert live_at_call(f, "note") == {"b"}


def test_loop_carries_around() -> None:
    def f(n, step):
        total = 0
        for i in range(n):
            note(i)  # noqa: F821
            total += step
        return n

    assert live_at_call(f, "note") == {"n", "step", "total"}


def test_handler_reads() -> None:
    def f(a, b):
        c = a
        try:
            note(b)  # noqa: F821
            c = b
            c = b + 1
        except ValueError:
            return c

    assert live_at_call(f, "note") == {"b", "c"}


def test_deleting_needs_the_local() -> None:
    def f(a):
        b = a
        note(1)  # noqa: F821
        del b

    assert live_at_call(f, "note") == {"b"}


def test_whoever_may_look_at_all_locals_keeps_them() -> None:
    def f(a, b):
        note(a)  # noqa: F821
        return locals()

    assert live_at_call(f, "note") == {"a", "b"}


def test_super_keeps_the_first_argument() -> None:
    assert live_at_call(samples.Derived.method, "note") >= {"self"}


def test_variables_in_cells_are_not_listed() -> None:
    decoded = decode(samples.closures.__code__)
    assert not {name for index in range(len(decoded.instrs)) for name in live_names(decoded, index)} & {"a", "count"}


@pytest.mark.parametrize("function", [samples.loops, samples.withs, samples.coroutine])
def test_cached(function: Callable[..., Any]) -> None:
    decoded = decode(function.__code__)
    assert live_names(decoded, 3) is live_names(decoded, 3)
