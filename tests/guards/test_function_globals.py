"""Functions with one code object and globals of their own: those of one are never read for another's."""

from __future__ import annotations

import types
from typing import Any

import pytest

import stator

SOURCE = compile("def level():\n    return LEVEL\n", "<one source>", "exec")


def function(level: int) -> Any:
    """One of the functions that one code object makes, with a global of its own."""
    space: dict[str, Any] = {}
    exec(SOURCE, space)
    space["LEVEL"] = level
    return space["level"]


def each(text: str, name: str, variable: str, numbers: tuple[int, ...]) -> list[Any]:
    """What one source, compiled once, has under the name, for each number that the variable among its globals is."""
    source = compile(text, "<one source>", "exec")
    made = []
    for number in numbers:
        space: dict[str, Any] = {variable: number}
        exec(source, space)
        made.append(space[name])
    return made


def calls(f: Any) -> Any:
    return f() + 1


def reads(f: Any) -> Any:
    return f.__globals__["LEVEL"]


def calls_held(holder: Any) -> Any:
    return holder.f() + 1


@pytest.mark.parametrize("program", [calls, reads])
def test_an_argument(program: Any) -> None:
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    for level in (1, 2, 1, 3):
        f = function(level)
        assert compiled(f) == program(f)


def test_an_attribute() -> None:
    compiled = stator.compile(calls_held, backend="eager", fullgraph=True)
    holder = types.SimpleNamespace()
    for level in (1, 2, 1):
        holder.f = function(level)
        assert compiled(holder) == level + 1


def test_called_natively_from_a_compiled_program() -> None:
    def program(f: Any) -> Any:
        stator.graph_break()
        return [f(), next(map(type(f).__call__, [f]))]

    compiled = stator.compile(program, backend="eager")
    for level in (1, 2, 1):
        assert compiled(function(level)) == [level, level]


def test_compiled_itself() -> None:
    compiled = [stator.compile(function(level), backend="eager") for level in (1, 2)]
    assert [f() for f in compiled * 2] == [1, 2, 1, 2]


def test_frames_below_a_break() -> None:
    """Two frames of one code object, entered by ordinary Python from one compiled program."""
    text = "import stator\ndef part():\n    stator.graph_break()\n    return LEVEL\n"
    made = each(text, "part", "LEVEL", (1, 2))

    def program(f: Any) -> Any:
        return f()

    compiled = stator.compile(program, backend="eager")
    assert [compiled(f) for f in made * 2] == [1, 2, 1, 2]


def test_a_compiled_function_is_given_the_code_of_another() -> None:
    one, two = function(1), function(2)
    compiled = stator.compile(one, backend="eager")
    assert compiled() == 1
    one.__code__ = two.__code__.replace(co_consts=("other",))
    assert compiled() == 1


def frames_in_c(f: Any, *args: Any) -> Any:
    return sorted([3, 1, 2], key=f)


def test_frames_met_in_c_code() -> None:
    """The frames of the key function are traced by themselves: code and bucket are the same for both."""
    made = each("def key(x):\n    return x * SIGN\n", "key", "SIGN", (1, -1))

    def program(f: Any) -> Any:
        stator.graph_break()
        return frames_in_c(f)

    compiled = stator.compile(program, backend="eager")
    assert [compiled(f) for f in made * 2] == [[1, 2, 3], [3, 2, 1]] * 2


def test_methods_of_one_source() -> None:
    """A compiled object, whose class is another in each call: the frames have one code object."""
    text = "class Scaled:\n    def __call__(self, x):\n        return x * SCALE\n"
    made = each(text, "Scaled", "SCALE", (2, 3))
    held = made[0]()
    compiled = stator.compile(held, backend="eager")
    for cls in made * 2:
        held.__class__ = cls
        assert compiled(1) == held(1)
