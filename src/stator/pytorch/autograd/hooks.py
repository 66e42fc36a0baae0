"""Hooks on tensors: registered when the graph has run, for nothing in the graph calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.utils.hooks import RemovableHandle

from stator import errors
from stator.pytorch import internals
from stator.pytorch.autograd.handles import HandleValue, TracedHandle, TracedHook
from stator.pytorch.autograd.traced_hooks import record_hook
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.latent import is_known_leaf
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import NONE, Handler, bad_call, register
from stator.space.signals import Restart
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.space import Space

__all__ = ["check_hookable", "hook_up", "install", "is_new"]


def hook_up(handle: RemovableHandle, method: Function, tensor: torch.Tensor, hook: Function) -> None:
    """Register a hook and give `handle` what its handle holds."""
    handle.__dict__.update(vars(method(tensor, hook)))


def is_new(tensor: TensorValue) -> bool:
    """Whether the graph makes the tensor, and a hook may be registered on it there."""
    return (
        tensor.cls in PLAIN_CLASSES
        and tensor.requires_grad
        and tensor.operation is not None
        and tensor.recorder.nodes.graph is tensor.recorder.nodes.whole
        and not internals.are_transforms_active()
    )


def check_hookable(space: Space, tensor: Value, brk: errors.Break) -> None:
    """Break the graph unless the tensor will be there after it, with the place in autograd's graph that it has now."""
    recorder = space.trace.recorder
    if not isinstance(tensor, TensorValue) or tensor.cls not in PLAIN_CLASSES or not tensor.requires_grad:
        raise Unsupported(brk)
    if recorder.keeps_order:
        return
    if tensor.operation is not None:
        # Made by ordinary Python: a tensor that is one of several results of a graph shares its place in autograd's
        # graph with them, and the hook would be called, with None, when only another one has a gradient.
        raise Restart(tensor.operation.step, brk)
    if tensor.source is None or tensor.root in recorder.effects.rewritten:
        raise Unsupported(brk)


def _not_given(method: Function) -> errors.Break:
    return errors.AutogradCall(describe_callable(method), "the tensor must be one that the graph is given")


def _hooking(method: Function) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tensor = args[0].force()
        if len(args) != 2 or kwargs:
            return bad_call(space, method, args, kwargs)
        if isinstance(tensor, TensorValue) and method is torch.Tensor.register_hook and is_new(tensor):
            traced = TracedHook(tensor, space.trace.steps)
            if record_hook(space, tensor, args[1].force(), traced):
                return TracedHandle(RemovableHandle, traced)
        check_hookable(space, tensor, _not_given(method))
        handle = HandleValue(RemovableHandle)
        space.trace.recorder.tracked.hooked.add(tensor.root)  # type: ignore[attr-defined]
        space.trace.defer(hook_up, [handle, space.existing(method), tensor, args[1]])
        return handle

    return handler


def _retain_grad(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    method = torch.Tensor.retain_grad
    tensor = args[0].force()
    recorder = space.trace.recorder
    if isinstance(tensor, TensorValue) and tensor.requires_grad:
        if is_known_leaf(tensor):
            return NONE  # it does so in any case
        if is_new(tensor) and tensor.root not in recorder.effects.rewritten:
            recorder.tracked.engine.retaining[tensor] = None
            return NONE
    check_hookable(space, tensor, _not_given(method))
    recorder.tracked.hooked.add(tensor.root)  # type: ignore[attr-defined]
    space.trace.defer(method, [tensor])
    return NONE


def install() -> None:
    """Register the models."""
    for method in (torch.Tensor.register_hook, torch.Tensor.register_post_accumulate_grad_hook):
        register(method, _hooking(method))
    register(torch.Tensor.retain_grad, _retain_grad)
