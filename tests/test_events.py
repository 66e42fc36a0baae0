"""What listeners are told while frames are compiled."""

from __future__ import annotations

from types import CodeType

import pytest

import stator
from stator.report.events import Broke, Called, Compiled, Listener, listening
from stator.report.stats import RecompileRecord


class Heard(Listener):
    """Notes all that it is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, object]] = []

    def begun(self, code: CodeType) -> None:
        self.heard.append(("begun", code.co_name))

    def broke(self, event: Broke) -> None:
        self.heard.append(("broke", (event.record.code, event.stack[-1].name if event.stack else "")))

    def recompiled(self, record: RecompileRecord) -> None:
        self.heard.append(("recompiled", record.reason))

    def called(self, event: Called) -> None:
        self.heard.append(("called", event.backend))

    def compiled(self, event: Compiled) -> None:
        self.heard.append(("compiled", event.code.co_name))


def add(a: object, b: object) -> object:
    return a + b  # type: ignore[operator]


def test_a_listener_is_told_what_happens_until_the_block_ends() -> None:
    compiled = stator.compile(add, backend="eager")
    with listening(Heard()) as listener:
        compiled(1, 2)
        compiled(1, 2)
        compiled("a", "b")
    compiled([], [])
    assert isinstance(listener, Heard)
    assert listener.heard == [
        *[("begun", "add"), ("compiled", "add")],
        *[("recompiled", "`a` was 1, is 'a'"), ("begun", "add"), ("compiled", "add")],
    ]


def test_breaks_come_with_the_stack_of_the_program() -> None:
    def inner() -> None:
        stator.graph_break("here")

    def outer() -> None:
        inner()

    with listening(Heard()) as listener:
        stator.compile(outer, backend="eager")()
    assert isinstance(listener, Heard)
    assert ("broke", ("SB0301", "inner")) in listener.heard


def test_lines_are_noted_for_who_wants_them() -> None:
    def inner(n: int) -> int:
        if n > 10:
            n = 0
        return n + 1

    def outer(n: int) -> int:
        stator.graph_break()
        return inner(n) * 2

    class Lines(Listener):
        wants_lines = True

        def __init__(self) -> None:
            self.seen: set[tuple[str, int]] = set()

        def compiled(self, event: Compiled) -> None:
            self.seen |= event.lines or set()

    with listening(Lines()) as listener:
        stator.compile(outer, backend="eager")(1)
    assert isinstance(listener, Lines)
    first = inner.__code__.co_firstlineno
    assert {line - first for file, line in listener.seen if file == __file__ and line > first} == {1, 3, 6, 7}


def test_what_a_backend_has_compiled_is_told() -> None:
    torch = pytest.importorskip("torch")

    with listening(Heard()) as listener:
        stator.compile(add, backend="eager")(torch.ones(2), torch.ones(2))
    assert isinstance(listener, Heard)
    assert listener.heard == [("begun", "add"), ("called", "eager"), ("compiled", "add")]
