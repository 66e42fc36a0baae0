"""Compare what autograd knows of a program's results, and every gradient, eagerly and compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

import stator

#: builds a program anew: the function, and the leaves besides its arguments whose gradients are compared
Make = Callable[[], tuple[Callable[..., Any], list[torch.Tensor]]]
BACKENDS = ("eager", "aot_eager")
SIZES = (3, 5, 2)


def each_once(without: Any, wanted: Any) -> list[tuple[Any, str]]:
    """Inputs and backends: a trace meets inputs that want gradients and such that don't, AOTAutograd the former."""
    return [(without, "eager"), (wanted, "eager"), (wanted, "aot_eager")]


def vector(n: int) -> tuple[torch.Tensor, ...]:
    """The arguments of most programs: a leaf that wants a gradient."""
    return (torch.linspace(0.5, 1.5, n, requires_grad=True),)


def plain(n: int) -> tuple[torch.Tensor, ...]:
    """An argument that wants none."""
    return (torch.linspace(0.5, 1.5, n),)


def alike(
    make: Make,
    inputs: Callable[[int], tuple[torch.Tensor, ...]] = vector,
    *,
    backend: Any = "eager",
    sizes: tuple[int, ...] = SIZES,
    calls: int = 2,
    breaks: int | None = None,
    tolerance: float = 0.0,
) -> Any:
    """Check results, their places in autograd's graph and all gradients, `calls` times at each size."""
    expected = _observe(make, inputs, sizes, calls, lambda fn: fn)
    stator.reset()
    got = _observe(make, inputs, sizes, calls, lambda fn: stator.compile(fn, backend=backend))
    stats = stator.stats()
    for (where, want), (_, have) in zip(expected, got, strict=True):
        _compare(have, want, where, tolerance)
    if breaks is not None:
        assert stats.graph_breaks == breaks, [(b.code, b.reason, b.where) for b in stats.breaks]
    return stats


def _observe(make: Make, inputs: Any, sizes: Any, calls: int, wrap: Any) -> list[tuple[str, Any]]:
    torch.manual_seed(7)
    function, leaves = make()
    function = wrap(function)
    seen: list[tuple[str, Any]] = []
    for n in sizes:
        for call in range(calls):
            args = inputs(n)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    seen.append((f"size {n}, call {call}", _outcome(function, args, leaves)))
                except Exception as e:
                    seen.append((f"size {n}, call {call}", (type(e).__name__, str(e).partition("\n")[0])))
    return seen


def _outcome(function: Any, args: Any, leaves: list[Any]) -> Any:
    result = function(*args)
    tensors = _tensors(result)
    places = [(t.requires_grad, t.is_leaf, t.grad_fn is None) for t in tensors]
    values = [t.detach().clone() for t in tensors]
    total: Any = sum(t.sum() * (i + 1) for i, t in enumerate(tensors) if t.requires_grad)
    if isinstance(total, torch.Tensor):
        total.backward()
    every = [t for t in [*tensors, *args, *leaves] if t.is_leaf or t.retains_grad]
    return places, _plain(result), values, [None if t.grad is None else t.grad.detach().clone() for t in every]


def _tensors(result: Any) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    return [t for item in result for t in _tensors(item)] if isinstance(result, list | tuple) else []


def _plain(result: Any) -> Any:
    if isinstance(result, list | tuple):
        return [_plain(item) for item in result]
    return result if isinstance(result, int | float | str | None) else type(result).__name__


def _compare(have: Any, want: Any, where: str, tolerance: float) -> None:
    assert type(have) is type(want), (where, have, want)
    if isinstance(want, torch.Tensor):
        assert have.shape == want.shape and have.layout == want.layout, (where, have, want)
        close = torch.allclose(have.to_dense(), want.to_dense(), rtol=tolerance, atol=tolerance, equal_nan=True)
        assert close, (where, have, want)
    elif isinstance(want, list | tuple):
        assert len(have) == len(want), (where, have, want)
        for got, expected in zip(have, want, strict=True):
            _compare(got, expected, where, tolerance)
    else:
        assert have == want, (where, have, want)
