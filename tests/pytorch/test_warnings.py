"""What torch and NumPy warn about while tracing is the program's: the same warnings, and exceptions made of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import stator
from tests.pytorch.alone import run_alone
from tests.pytorch.programs import assert_same

PROGRAMS: dict[str, tuple[Any, Any]] = {
    "of torch": (lambda x: x.T + 1, lambda: torch.ones(2, 3, 1)),
    "of torch, of an error": (lambda x: x.T.reshape(5), lambda: torch.ones(2, 3, 1)),
    "of numpy": (lambda x: np.sqrt(-1.0), lambda: None),
    "of a known scalar": (lambda x: np.float64(1.0) / 0.0, lambda: None),
    "several": (lambda x: (x.T, np.log(0.0), x.mT + np.float64(2.0) ** 4000.0), lambda: torch.ones(2, 3, 1)),
    "handled": (lambda x: handled(x), lambda: torch.ones(2, 3, 1)),
}


def handled(x: Any) -> Any:
    try:
        return x.T
    except UserWarning as e:
        return x + 1, str(e)[:20]


def seen(fn: Callable[..., Any], argument: Any, action: Any) -> Any:
    """The outcome of two calls, and what is shown; torch warns again each time."""
    found = []
    torch.set_warn_always(True)
    try:
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter(action)
                try:
                    result = fn(argument)
                except Exception as e:
                    result = (type(e), str(e))
            shown = [(w.category, str(w.message), w.filename, w.lineno) for w in caught]
            found.append((str(result), [(c, m.partition("(Triggered")[0], f, n) for c, m, f, n in shown]))
    finally:
        torch.set_warn_always(False)
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("action", ["always", "error", "ignore"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_warnings(name: str, action: str, backend: str) -> None:
    program, make = PROGRAMS[name]
    assert seen(stator.compile(program, backend=backend), make(), action) == seen(program, make(), action)


@pytest.mark.parametrize("name", PROGRAMS)
def test_filters_are_guarded(name: str) -> None:
    program, make = PROGRAMS[name]
    compiled = stator.compile(program, backend="aot_eager")
    for action in ("ignore", "always", "error", "ignore"):
        assert seen(compiled, make(), action) == seen(program, make(), action)


def test_what_is_ignored_is_in_the_graph() -> None:
    stator.reset()
    assert seen(stator.compile(lambda x: x.T + 1, backend="eager", fullgraph=True), torch.ones(2, 3, 1), "ignore")
    assert stator.stats().graph_breaks == 0


ONCE = """
import warnings, torch, stator
warnings.simplefilter("always")
compiled = stator.compile(lambda x: x.T + 1, backend="aot_eager")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    compiled(torch.ones(2, 3, 1)), compiled(torch.ones(2, 3, 1)), compiled(torch.ones(5, 3, 1))
assert not torch.is_warn_always_enabled()
print([str(w.message)[:17] for w in caught])
"""


def test_torch_warns_once() -> None:
    done = run_alone(ONCE)
    assert done.stdout == "['The use of `x.T` ']\n", done.stderr


ERRORS: dict[str, tuple[Any, Any]] = {
    "known": (lambda a: np.sqrt(-1.0), lambda: None),
    "known scalar": (lambda a: np.float64(1.0) / 0.0, lambda: None),
    "an array": (lambda a: np.log(a), lambda: np.zeros(2)),
    "a scalar": (lambda s: s / 0, lambda: np.float64(1)),
    "inside": (lambda a: inside(a), lambda: np.zeros(2)),
}


def inside(a: Any) -> Any:
    with np.errstate(divide="raise"):
        b = a + 1
        return b, 1 / a


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ERRORS)
def test_error_states_are_guarded(name: str, backend: str) -> None:
    program, make = ERRORS[name]
    compiled = stator.compile(program, backend=backend)
    for mode in ("ignore", "raise", "ignore", "call", "ignore"):
        outcomes = []
        for fn in (program, compiled):
            calls: list[Any] = []
            with np.errstate(all=mode, call=lambda *what, calls=calls: calls.append(what)):
                try:
                    result = repr(fn(make()))
                except FloatingPointError as e:
                    result = repr(e)
            outcomes.append((result, calls))
        assert_same(outcomes[1], outcomes[0], f"{name} {mode}")
