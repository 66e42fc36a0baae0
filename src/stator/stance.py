"""`set_stance`: what compiled functions do when they are called or would have to be compiled again."""

from __future__ import annotations

from typing import Any, Literal

from stator.errors.exceptions import ConfigError

Stance = Literal["default", "force_eager", "eager_on_recompile", "fail_on_recompile"]
STANCES: tuple[Stance, ...] = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")

_current: list[Stance] = ["default"]


def current_stance() -> Stance:
    """The stance in force."""
    return _current[-1]


class set_stance:
    """Change what compiled functions do: at once when called, or for a `with` block.

    Args:
        stance: "default"; "force_eager" runs nothing compiled; "eager_on_recompile" uses what is compiled and runs the
            rest as ordinary Python; "fail_on_recompile" raises RuntimeError instead of compiling anything.

    Raises:
        ConfigError: an unknown stance.

    Example:
        >>> with stator.set_stance("fail_on_recompile"):
        ...     compiled(x)
    """

    def __init__(self, stance: Stance) -> None:
        if stance not in STANCES:
            raise ConfigError(f"unknown stance {stance!r}; known: {', '.join(STANCES)}")
        self._before = _current[-1]
        _set(stance)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: Any) -> None:
        _set(self._before)


def _set(stance: Stance) -> None:
    from stator._core import set_force_eager

    _current[-1] = stance
    set_force_eager(stance == "force_eager")
