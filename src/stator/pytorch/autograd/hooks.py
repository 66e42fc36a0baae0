"""Hooks on tensors: registered when the graph has run, for nothing in the graph calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.utils.hooks import RemovableHandle

from stator import errors
from stator.models.classes.instance import InstanceValue
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import NONE, Handler, bad_call, register
from stator.space.signals import Restart
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.errors.catalogue import Break
    from stator.models.classes.attr_dict import AttrDict
    from stator.pytorch.types import Function
    from stator.space.interfaces import Writer
    from stator.space.space import Space


class HandleValue(InstanceValue):
    """What registering a hook gives: an object that is filled when the hook is registered."""

    __slots__ = ()

    def attr_dict(self, space: Space) -> AttrDict:
        raise Unsupported(errors.UnsupportedAttribute(self.cls.__name__, "__dict__"))

    def reconstruct(self, writer: Writer) -> str:
        return writer.assign("handle", self.shell(writer))


def hook_up(handle: RemovableHandle, method: Function, tensor: torch.Tensor, hook: Function) -> None:
    """Register a hook and give `handle` what its handle holds."""
    handle.__dict__.update(vars(method(tensor, hook)))


def _check(space: Space, tensor: torch.Tensor, method: Function) -> None:
    """Break the graph unless the tensor will be there after it, with the place in autograd's graph that it has now."""
    brk = errors.AutogradCall(describe_callable(method), "the tensor must be one that the graph is given")
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


def need_of_its_own(tensor: TensorValue, brk: Break) -> None:
    """What uses a new tensor must be another graph than what makes it, for autograd to know one from the other.

    A backend may compute both at once: gradients then do not pass through the tensor that it gives.
    """
    if tensor.operation is not None and tensor.requires_grad and tensor.node.users:
        raise Restart(tensor.operation.step + 1, brk)


def _hooking(method: Function) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tensor = args[0].force()
        if len(args) != 2 or kwargs:
            return bad_call(space, method, args, kwargs)
        _check(space, tensor, method)
        handle = HandleValue(RemovableHandle)
        space.trace.recorder.tracked.hooked.add(tensor.root)  # type: ignore[attr-defined]
        space.trace.defer(hook_up, [handle, space.existing(method), tensor, args[1]])
        return handle

    return handler


def _retain_grad(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    method = torch.Tensor.retain_grad
    tensor = args[0].force()
    _check(space, tensor, method)
    space.trace.recorder.tracked.hooked.add(tensor.root)  # type: ignore[attr-defined]
    space.trace.defer(method, [tensor])
    return NONE


def install() -> None:
    """Register the models."""
    for method in (torch.Tensor.register_hook, torch.Tensor.register_post_accumulate_grad_hook):
        register(method, _hooking(method))
    register(torch.Tensor.retain_grad, _retain_grad)
