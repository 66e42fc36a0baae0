"""Outcomes of operations, remembered by operation and metadata of the operands.

A miss runs the operation on stand-ins made from the metadata alone, so that identical layers run on fake tensors once
per process. What depends on more than metadata (mutated views, tensors with known contents, symbols) is not remembered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from stator import errors
from stator.objects.value import Unsupported
from stator.tensors.metadata import TensorMeta, forget_all, meta_of
from stator.tensors.outcome import HostResult, Outcome, outcome_of
from stator.tensors.world import World, describe_callable

__all__ = ["MEMO", "Memo"]

_LIMIT = 200_000
_DATA_DEPENDENT = (errors.DynamicOutputShape, errors.DataDependentValue)
#: metadata alone does not tell the outcome
_UNKNOWN = Outcome(HostResult(None), (), False, lasting=False)


class Memo:
    """The process's memory of outcomes."""

    def __init__(self) -> None:
        self._outcomes: dict[Any, Outcome] = {}
        self._stand_ins: dict[TensorMeta, Any] = {}
        self._kept: dict[int, Any] = {}
        self._world: World | None = None
        self._lock = threading.RLock()
        self.hits = 0
        self.misses = 0

    def outcome(
        self, function: Callable[..., Any], args: Any, kwargs: Any, key: Any, metas: list[TensorMeta], fill: Any
    ) -> Outcome | None:
        """The outcome of the operation, or None where metadata alone does not tell it.

        `fill(template, fakes)` puts fake tensors in the place of the operands.
        """
        full = (id(function), key)
        found = self._outcomes.get(full)
        if found is not None:
            self.hits += 1
            return found if found.lasting else None
        with self._lock:
            self.misses += 1
            found = self._ask(function, args, kwargs, metas, fill)
            if len(self._outcomes) > _LIMIT:
                self.clear()
            self._outcomes[full] = found
            self._kept[id(function)] = function
        return found if found.lasting else None

    def _ask(self, function: Any, args: Any, kwargs: Any, metas: list[TensorMeta], fill: Any) -> Outcome:
        world = self._world
        if world is None:
            world = self._world = World()
        fakes = [self._stand_in(meta, i, metas) for i, meta in enumerate(metas)]
        try:
            observed = world.run(function, fill(args, fakes), fill(kwargs, fakes))
        except BaseException as e:
            self._stand_ins.clear()  # a failed operation may have written half of its results
            if isinstance(e, Unsupported) and isinstance(e.brk, _DATA_DEPENDENT):
                return _UNKNOWN  # symbols may do
            raise
        outcome = outcome_of(observed, fakes, describe_callable(function))
        if outcome.written:
            outcome.lasting = outcome.lasting and self._harmless(outcome, metas, fakes)
            for meta in metas:
                self._stand_ins.pop(meta, None)
        return outcome

    @staticmethod
    def _harmless(outcome: Outcome, metas: list[TensorMeta], fakes: list[Any]) -> bool:
        """A write that changed contents only: no view is involved, and the metadata stayed."""
        if any(metas[i].is_view for i in outcome.written):
            return False
        return all(_alike(meta_of(fake), meta) for meta, fake in zip(metas, fakes, strict=True))

    def _stand_in(self, meta: TensorMeta, position: int, metas: list[TensorMeta]) -> Any:
        """A fake tensor of this description; two operands alike get two of them."""
        if any(other is meta for other in metas[:position]):
            return self.make(meta)
        found = self._stand_ins.get(meta)
        if found is None:
            found = self.make(meta)
            if len(self._stand_ins) > 4096:
                self._stand_ins.clear()
            self._stand_ins[meta] = found
        return found

    def stand_in(self, meta: TensorMeta) -> Any:
        """A fake tensor to show (as a node's example value), never to compute with."""
        with self._lock:
            return self._stand_in(meta, 0, [])

    def make(self, meta: TensorMeta) -> Any:
        """A new fake tensor of this description (except for being a view)."""
        if self._world is None:
            self._world = World()
        inference, grad = meta.bits[2], meta.requires_grad
        # A backend at work may ask, with its own modes on.
        with _disable_current_modes(), self._world.mode, torch.inference_mode(inference), torch.set_grad_enabled(grad):
            return _made(meta)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._outcomes.clear()
            self._stand_ins.clear()
            self._kept.clear()
            forget_all()


def _alike(a: TensorMeta | None, b: TensorMeta) -> bool:
    """Equal but for being a view, which a stand-in is not."""
    return a is b or (a is not None and a.parts(views=False) == b.parts(views=False))


def _made(meta: TensorMeta) -> Any:
    span = meta.offset + 1 + sum((n - 1) * s for n, s in zip(meta.shape, meta.stride, strict=True))
    if 0 in meta.shape:
        span = meta.offset
    with torch.no_grad():
        if meta.offset:
            memory = torch.empty(span, dtype=meta.dtype, device=meta.device)
            tensor = memory.as_strided(meta.shape, meta.stride, meta.offset).detach()
        else:
            tensor = torch.empty_strided(meta.shape, meta.stride, dtype=meta.dtype, device=meta.device)
        if meta.bits[0]:
            tensor = torch._conj(tensor)
        if meta.bits[1]:
            tensor = torch._neg_view(tensor)
    if not meta.requires_grad:
        return tensor
    if meta.is_leaf:
        return tensor.requires_grad_()
    leaf = torch.empty((), dtype=meta.dtype, device=meta.device, requires_grad=True)
    return _Graft.apply(tensor, leaf)


class _Graft(torch.autograd.Function):
    """Makes a tensor part of an autograd graph without changing anything else about it."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, leaf: Any) -> Any:
        ctx.mark_dirty(tensor)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None


MEMO = Memo()
