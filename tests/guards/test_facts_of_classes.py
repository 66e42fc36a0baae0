"""Facts about classes and exceptions that were read without a guard, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

import stator


def test_a_class_that_becomes_abstract() -> None:
    class Base:
        pass

    def program() -> Any:
        return Base(), getattr(Base, "__abstractmethods__", None)

    compiled = stator.compile(program, backend="eager")
    assert compiled()[1] is None
    Base.__abstractmethods__ = frozenset(["area"])  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="abstract"):
        compiled()
    Base.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
    assert compiled()[1] == frozenset()


def test_a_class_without_a_module() -> None:
    space: dict[str, Any] = {}
    exec("Meta = type('Meta', (type,), {'level': 3})\nC = Meta('C', (), {})", {"__builtins__": __builtins__}, space)
    compiled = stator.compile(lambda cls: type(cls).level, backend="eager", fullgraph=True)
    assert compiled(space["C"]) == 3


def test_a_field_that_an_exception_lacks_until_it_is_set() -> None:
    def program(e: OSError) -> Any:
        return getattr(e, "characters_written", None)

    compiled = stator.compile(program, backend="eager")
    error = OSError(2, "no file")
    assert compiled(error) is None
    assert {found.code for found in stator.stats().breaks} == {"SB0103"}
    error.characters_written = 3
    assert compiled(error) == 3
