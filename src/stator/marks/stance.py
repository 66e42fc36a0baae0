"""`set_stance`: what compiled functions do when they are called or would have to be compiled again.

Torch's own (`torch.compiler.set_stance`) holds as well, and before Stator's where it is not the default one.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal, TypeVar, get_args

from stator.controls.dynamo_config import warn_once
from stator.errors.exceptions import ConfigError
from stator.host.waiting import when_loaded

F = TypeVar("F", bound=Callable[..., Any])
Stance = Literal[
    "default",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
    "eager_then_compile",
    "aot_eager_then_compile",
]
STANCES: tuple[Stance, ...] = get_args(Stance)
#: the module in which torch keeps its stance
_TORCHS = "torch._dynamo.eval_frame"

_current: list[Stance] = ["default"]


def current_stance() -> Stance:
    """The stance in force."""
    stance = _torchs_stance()
    return _current[-1] if stance == "default" else stance


class set_stance:
    """Change what compiled functions do: at once when called, for a `with` block, or for a function it decorates.

    Args:
        stance: "default"; "force_eager" runs nothing compiled; "eager_on_recompile" uses what is compiled and runs the
            rest as ordinary Python; "fail_on_recompile" raises RuntimeError instead of compiling anything;
            "eager_then_compile" runs a function as ordinary Python at its first call, compiles it at the second, and
            takes sizes for dynamic that differed; "aot_eager_then_compile" uses the backend "aot_eager" for the first.

    Raises:
        ConfigError: an unknown stance. RuntimeError: called in a compiled function.

    Example:
        >>> with stator.set_stance("fail_on_recompile"):
        ...     compiled(x)
    """

    def __init__(self, stance: Stance) -> None:
        if stance not in STANCES:
            raise ConfigError(f"unknown stance {stance!r}; known: {', '.join(STANCES)}")
        self._stance = stance
        self._before = change(stance)

    def __enter__(self) -> None:
        change(self._stance)

    def __exit__(self, *exc: Any) -> None:
        change(self._before)

    def __call__(self, function: F) -> F:
        change(self._before)

        @functools.wraps(function)
        def with_stance(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self._stance):
                return function(*args, **kwargs)

        with_stance._stator_sets_stance = True  # type: ignore[attr-defined]
        return with_stance  # type: ignore[return-value]


def change(stance: Stance) -> Stance:
    """Change the stance, not in a compiled function; returns the one before."""
    from stator._core import set_force_eager

    before, _current[-1] = _current[-1], stance
    set_force_eager(stance == "force_eager")
    return before


def _torchs_stance() -> Stance:
    stance = getattr(sys.modules.get(_TORCHS), "_stance", None)
    if stance is None:
        return "default"
    if getattr(stance, "skip_guard_eval_unsafe", False):
        warn_once("set_stance(skip_guard_eval_unsafe=True) is not honoured by Stator: all guards are checked")
    if getattr(stance, "backend", None) is not None:
        warn_once("set_stance(force_backend=…) is not honoured by Stator: compile() calls keep their backends")
    found: Stance = stance.stance
    return found if found in STANCES else "default"


def follow_torch() -> None:
    """Have compiled callables heed torch's stance in every call, from when torch keeps one."""
    from stator._core import watch_stance

    def watch(module: ModuleType) -> None:
        watch_stance(vars(module), lambda: _torchs_stance() == "force_eager")

    when_loaded(_TORCHS, watch)


#: told about the arguments of a first call that runs as ordinary Python: `note(state of the code, code, arguments)`
NOTE_FIRST_CALL: list[Callable[[dict[Any, Any], Any, list[Any]], None]] = []


def is_first_call(state: dict[Any, Any], learnt: dict[Any, Any], code: Any, args: list[Any]) -> bool:
    """Whether the code has not been met before under one of the stances that treat a first call differently.

    Args:
        state: of the compile() call, for this code.
        learnt: where it is noted what the first trace may learn of this call: the sizes that it was made with.
    """
    if state.get("was called"):
        return False
    state["was called"] = True
    for note in NOTE_FIRST_CALL:
        note(learnt, code, args)
    return True
