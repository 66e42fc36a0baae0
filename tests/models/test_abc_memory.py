"""An abstract class remembers what it was asked: its hook is called as often as in eager execution."""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import abc
from collections.abc import Callable
from typing import Any

import pytest

import stator

ANSWERS: dict[str, Callable[[type], Any]] = {
    "not implemented": lambda cls: NotImplemented,
    "all": lambda cls: True,
    "none": lambda cls: False,
    "one": lambda cls: cls.__name__ == "Another",
}


def nothing(asked: Any, another: Any) -> None:
    pass


def register(asked: Any, another: Any) -> None:
    asked.register(another)


def register_elsewhere(asked: Any, another: Any) -> None:
    class Other(abc.ABC):  # noqa: B024
        pass

    Other.register(another)


def forget(asked: Any, another: Any) -> None:
    _abc._reset_caches(asked)


def outcomes(
    answer: Callable[[type], Any], change: Callable[[Any, Any], None], wrap: Callable[[Any], Any]
) -> list[Any]:
    calls: list[str] = []

    class Asked(abc.ABC):  # noqa: B024
        @classmethod
        def __subclasshook__(cls, other: type) -> Any:
            calls.append(f"{cls.__name__} of {other.__name__}")
            return answer(other)

    class Derived(Asked):
        pass

    class Another:
        pass

    def program(x: Any) -> Any:
        class Fresh(Another):
            pass

        new, old = [isinstance(Fresh(), Asked) for _ in range(2)], [isinstance(Another(), Asked) for _ in range(2)]
        return new, old, isinstance(x, Asked), issubclass(Derived, Asked), issubclass(Asked, Derived)

    compiled = wrap(program)
    seen = []
    for turn in range(4):
        seen.append((compiled(1.5), tuple(calls)))
        if turn == 1:
            change(Asked, Another)
    kept = [{getattr(ref(), "__name__", None) for ref in part} for part in _abc._get_dump(Asked)[:3]]
    return [*seen, [names - {None, "Fresh"} for names in kept]]


@pytest.mark.parametrize("change", [nothing, register, register_elsewhere, forget])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_hook_is_called_as_often_as_in_eager(
    answer: Callable[[type], Any], change: Callable[[Any, Any], None]
) -> None:
    expected = outcomes(answer, change, lambda program: program)
    assert outcomes(answer, change, lambda program: stator.compile(program, backend="eager")) == expected


def test_registered_inside_of_the_program() -> None:
    def make(wrap: Callable[[Any], Any]) -> list[Any]:
        calls: list[str] = []

        class Asked(abc.ABC):  # noqa: B024
            @classmethod
            def __subclasshook__(cls, other: type) -> Any:
                calls.append(other.__name__)
                return NotImplemented

        class Another:
            pass

        def program() -> Any:
            before = isinstance(Another(), Asked), isinstance(Another(), Asked)
            Asked.register(Another)
            return before, isinstance(Another(), Asked), isinstance(Another(), Asked), len(calls)

        compiled = wrap(program)
        return [compiled(), compiled(), list(calls)]

    assert make(lambda program: stator.compile(program, backend="eager")) == make(lambda program: program)
