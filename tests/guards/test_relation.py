"""Conditions over ints: the core's verdict is Python's, and what it cannot tell is left to Python."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import pytest

from stator.guards.expression import expression
from stator.guards.guard import Relation
from stator.guards.program import GuardProgram, compile_guards
from stator.guards.source import LocalSource

A, B, C = (LocalSource(i, name) for i, name in enumerate("abc"))
EDGE = 1 << 63
NUMBERS = (-EDGE - 1, -EDGE, -7, -1, 0, 1, 2, 5, 8, EDGE - 1, EDGE)
CONDITIONS = (
    "{0} == {1}",
    "{0} != {1}",
    "{0} < {1}",
    "{0} <= {1} <= 8",
    "{0} > {1}",
    "{0} >= {1}",
    "{0} + {1} == 3",
    "{0} - {1} < 4",
    "{0}*{1} >= 10",
    "{0} // {1} == -4",
    "{0} // {1} <= 0",
    "{0} % {1} == 2",
    "{0} % {1} < 0",
    "min({0}, {1}, 2) == 2",
    "max({0}, -{1}) == 7",
    "not ({0} < {1})",
    "{0} == 5 and {1} < 2 or {1} == 8",
    "({0} + 1)*({0} - 2) // 3 % 4 == 1",
)


def program(text: str, count: int = 2) -> GuardProgram:
    return compile_guards([Relation((A, B, C)[:count], expression(text, count))])


@pytest.mark.parametrize("text", CONDITIONS)
def test_the_core_agrees_with_python(text: str) -> None:
    compiled = program(text)
    answers = set()
    for pair in itertools.product(NUMBERS, repeat=2):
        answer = compiled.check(None, pair)
        assert answer is (compiled.reference.run(None, pair) is not None), pair
        answers.add(answer)
    assert answers == {True, False}


def counting(text: str, count: int) -> tuple[GuardProgram, list[object]]:
    """A program whose expression notes when Python is asked."""
    asked: list[object] = []
    known = expression(text, count)

    class Counted:
        steps, operands, of = known.steps, known.operands, known.of

        def __call__(self, *numbers: object) -> bool:
            asked.append(numbers)
            return known(*numbers)

    counted: Any = Counted()
    return compile_guards([Relation((A, B, C)[:count], counted)]), asked


@pytest.mark.parametrize("text", CONDITIONS)
def test_python_is_asked_only_where_the_core_cannot_tell(text: str) -> None:
    compiled, asked = counting(text, 2)
    compiled.check(None, (9, 4))
    assert not asked
    compiled.check(None, (EDGE, 4))
    assert asked == [(EDGE, 4)]


@pytest.mark.parametrize(
    ("text", "args", "answer"),
    [
        ("{0} + {1} > 0", (EDGE - 1, 1), True),
        ("{0}*{1} < 0", (-EDGE, 2), True),
        ("{0} - {1} > 0", (EDGE - 1, -1), True),
        ("{0} // {1} > 0", (5, 0), False),
        ("{0} % {1} == 0", (5, 0), False),
        ("{0} // {1} == -5", (5, -1), True),
        ("{0} == {1}", (True, 1), True),
        ("{0} <= {1}", (1.5, 2), True),
        ("{0} == {1}", ("a", "a"), True),
    ],
)
def test_what_the_core_cannot_tell(text: str, args: tuple[object, ...], answer: bool) -> None:
    compiled, asked = counting(text, 2)
    assert compiled.check(None, args) is answer
    assert asked == [args]


@pytest.mark.parametrize(
    "text",
    [
        "{0} / 2 == 1",
        "{0} == 1.5",
        "{0}",
        "True",
        "abs({0}) == 1",
        "{0} ** 2 == 4",
        f"{{0}} == {EDGE}",
        "max({0}) == 1",
    ],
)
def test_no_condition_over_ints(text: str) -> None:
    with pytest.raises(ValueError, match="no (condition|expression)"):
        expression(text, 1)


def test_a_condition_too_deep_for_the_core_is_left_to_python() -> None:
    text = "{0} == " + "1 + (" * 20 + "{0}" + ")" * 20
    compiled, asked = counting(text, 1)
    assert not compiled.check(None, (1,))
    assert asked == [(1,)]


@pytest.mark.parametrize("steps", [("n=", (0,)), ("nn=", (0, 2)), ("nn", (0, 1)), ("nn=", (0,)), ("?", ()), ("", ())])
def test_steps_that_make_no_sense_are_left_to_python(steps: tuple[str, tuple[int, ...]]) -> None:
    asked = []

    class Broken:
        def __call__(self, *numbers: object) -> bool:
            asked.append(numbers)
            return True

        def of(self, names: list[str]) -> str:
            return "broken"

    broken: Any = Broken()
    broken.steps, broken.operands = steps
    assert compile_guards([Relation((A, B), broken)]).check(None, (1, 2))
    assert asked == [(1, 2)]


def test_it_is_shown_in_the_users_names_and_pickles() -> None:
    guard = Relation((A, B), expression("{0} <= {1} + 1", 2))
    assert str(guard) == "a <= b + 1"
    assert compile_guards([guard]).failure(None, (5, 2)) == "a <= b + 1: no longer: a <= b + 1 (`a` is 5, `b` is 2)"
    assert pickle.loads(pickle.dumps(guard)) == guard
    assert expression("{0} <= {1} + 1", 2) is guard.fn
