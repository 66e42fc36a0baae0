"""Run a small program eagerly and compiled, and compare everything that can be seen from outside."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import stator

Make = Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]


def agree(
    make: Make,
    *,
    breaks: int | None = 0,
    graphs: int | None = None,
    calls: int = 2,
    grad: bool = False,
    backend: Any = "eager",
    rtol: float = 0.0,
) -> Any:
    """Check that the program `make()` gives behaves alike, eagerly and compiled; returns the statistics.

    `make` builds the function and its arguments anew (with the same random numbers each time). With `grad`, the sum of
    the results is differentiated. `breaks` is the number of graph breaks expected, None for any. `rtol` is for
    backends that compute in another order.
    """
    expected = _run(make, calls, grad, lambda fn: fn)
    stator.reset()
    got = _run(make, calls, grad, lambda fn: stator.compile(fn, backend=backend))
    stats = stator.stats()
    for i, (want, have) in enumerate(zip(expected, got, strict=True)):
        assert_same(have, want, f"call {i}", rtol)
    if breaks is not None:
        assert stats.graph_breaks == breaks, [(b.code, b.reason, b.where) for b in stats.breaks]
    if graphs is not None:
        assert stats.graphs == graphs
    return stats


def _run(make: Make, calls: int, grad: bool, wrap: Callable[[Any], Any]) -> list[Any]:
    torch.manual_seed(7)
    fn, args = make()
    compiled = wrap(fn)
    outcomes = []
    for _ in range(calls):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result: Any = compiled(*args)
                if grad:
                    _total(result).backward()
            except Exception as e:
                result = (type(e), str(e))
        seen = [(w.category, str(w.message)) for w in caught if "Triggered internally" not in str(w.message)]
        outcomes.append(_snapshot((result, args, _state(fn), seen, torch.get_rng_state(), torch.is_grad_enabled())))
    return outcomes


def _total(result: Any) -> Any:
    tensors = [t for t in _tensors(result) if t.requires_grad]
    return sum((t.sum() for t in tensors), torch.zeros(()))


def _tensors(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    return [t for item in result for t in _tensors(item)] if isinstance(result, list | tuple) else []


def _state(fn: Any) -> Any:
    module = getattr(fn, "__self__", fn)
    if not isinstance(module, torch.nn.Module):
        return None
    plain = {n: dict(m.__dict__) for n, m in module.named_modules()}
    for attributes in plain.values():
        for name in ("_parameters", "_buffers", "_modules"):
            attributes.pop(name)
        for name in attributes:
            if "_hooks" in name:  # keyed by numbers that no two handles share
                attributes[name] = len(attributes[name])
    return dict(module.named_parameters()), dict(module.named_buffers()), plain


def _snapshot(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return (type(value), str(value.dtype), value.shape, value.tolist())
    if isinstance(value, torch.nn.parameter.UninitializedTensorMixin):
        return type(value)
    if isinstance(value, torch.Tensor):
        grad = None if not value.is_leaf or value.grad is None else value.grad.clone()
        return (type(value), value.detach().clone(), value.requires_grad, grad)
    if isinstance(value, dict):
        return {k: _snapshot(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_snapshot, value)) if type(value) in (list, tuple) else [_snapshot(v) for v in value]
    return value if isinstance(value, int | float | str | type | None) else type(value)


def assert_same(got: Any, want: Any, where: str, rtol: float = 0.0) -> None:
    """Equal types, tensors bit for bit unless a tolerance is given."""
    assert type(got) is type(want), (where, got, want)
    if isinstance(want, torch.Tensor):
        assert got.dtype == want.dtype and got.shape == want.shape and got.stride() == want.stride(), where
        close = torch.equal(got, want) or torch.allclose(got, want, rtol=rtol, atol=rtol / 10, equal_nan=True)
        assert close, (where, got, want)
    elif isinstance(want, dict):
        assert list(got) == list(want), where
        for key in want:
            assert_same(got[key], want[key], f"{where}[{key!r}]", rtol)
    elif isinstance(want, list | tuple):
        assert len(got) == len(want), (where, got, want)
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            assert_same(g, w, f"{where}[{i}]", rtol)
    elif isinstance(want, float) and rtol:
        assert math.isclose(got, want, rel_tol=rtol, abs_tol=rtol / 10), (where, got, want)
    else:
        assert got == want or (got != got and want != want), (where, got, want)
