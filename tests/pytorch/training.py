"""Compare what programs leave that run the autograd engine: results, gradients that leaves have, parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

import stator

#: builds a program anew: the function, and the leaves whose gradients it accumulates
Make = Callable[[], tuple[Callable[..., Any], list[torch.Tensor]]]
BACKENDS = ("eager", "aot_eager")
SIZES = (3, 3, 5, 2)


def rows(n: int) -> tuple[torch.Tensor, ...]:
    """The arguments of most programs: data, of another kind in each call."""
    return ((torch.arange(3.0 * n) * n).sin().reshape(n, 3),)


def trains_alike(
    make: Make,
    inputs: Callable[[int], tuple[torch.Tensor, ...]] = rows,
    *,
    backend: Any = "eager",
    sizes: tuple[int, ...] = SIZES,
    breaks: int | None = 0,
    graphs: int | None = None,
    tolerance: float = 1e-5,
    options: Any = None,
) -> Any:
    """Check all that the program leaves after each call, one at each size; returns the statistics."""
    expected = _run(make, inputs, sizes, lambda fn: fn)
    stator.reset()
    got = _run(make, inputs, sizes, lambda fn: stator.compile(fn, backend=backend, options=options))
    stats = stator.stats()
    for n, want, have in zip(sizes, expected, got, strict=True):
        _compare(have, want, f"size {n}", tolerance)
    if breaks is not None:
        assert stats.graph_breaks == breaks, [(b.code, b.reason, b.where) for b in stats.breaks]
    if graphs is not None:
        assert stats.graphs == graphs, stats.graphs
    return stats


def _run(make: Make, inputs: Any, sizes: Any, wrap: Any) -> list[Any]:
    torch.manual_seed(5)
    function, leaves = make()
    function = wrap(function)
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in sizes:
            try:
                result = function(*inputs(n))
            except RuntimeError as error:
                result = _first_line(error)
            seen.append(
                (_seen(result), [_seen(leaf.grad) for leaf in leaves], [leaf.detach().clone() for leaf in leaves])
            )
    return seen


def _seen(result: Any) -> Any:
    """What there is to see of a result, a copy; of a tensor also its place in autograd's graph."""
    if isinstance(result, torch.Tensor):
        about = (result.dtype, result.stride(), result.requires_grad, result.is_leaf, result.layout)
        return result.detach().clone(), about, _again(result)
    if isinstance(result, list | tuple):
        return [_seen(item) for item in result]
    return result


def _again(result: torch.Tensor) -> str:
    """What `backward()` says of a result that leaves the program with a history."""
    if result.requires_grad and not result.is_leaf:
        try:
            result.backward(torch.ones_like(result))
        except RuntimeError as error:
            return _first_line(error)
    return ""


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _compare(have: Any, want: Any, where: str, tolerance: float) -> None:
    if isinstance(want, torch.Tensor):
        assert have.shape == want.shape, (where, have, want)
        close = torch.allclose(have.to_dense(), want.to_dense(), rtol=tolerance, atol=tolerance, equal_nan=True)
        assert close, (where, have, want)
    elif isinstance(want, list | tuple):
        assert type(have) is type(want) and len(have) == len(want), (where, have, want)
        for i, (got, expected) in enumerate(zip(have, want, strict=True)):
            _compare(got, expected, f"{where}[{i}]", tolerance)
    else:
        assert have == want, (where, have, want)
