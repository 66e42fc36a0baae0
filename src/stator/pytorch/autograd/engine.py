"""The autograd engine: gradients of what the graph has computed are an operation of it, other calls break the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.autograd
import torch.utils.hooks

from stator import errors
from stator._core import CodePolicy, set_code_policy
from stator.guards.guard import IdIs
from stator.guards.source import GetAttrSource
from stator.pytorch import internals
from stator.pytorch.autograd.hooks import need_of_its_own
from stator.pytorch.fake.failure import Failure, describe_callable
from stator.pytorch.nesting import values_in
from stator.pytorch.tensors.latent import rely_on_leaf
from stator.pytorch.tensors.lowering import Call, lower_call
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.protocol import NONE, Handler, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Host
    from stator.space.space import Space


def _refusing(host: Host) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise _refusal(host)

    return handler


def _refusal(host: Host) -> Unsupported:
    return Unsupported(errors.AutogradCall(describe_callable(host)))


def _grad(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch.autograd.grad`, where the fake tensors have all of the graph that the engine will go through."""
    grad = torch.autograd.grad
    recorder = space.trace.recorder
    call = lower_call(space, Call(grad, "call_function", grad), args, kwargs)
    call.key = None  # metadata does not tell where a tensor has come from
    if not any(operand.symbolic for operand in call.operands) and _is_whole(recorder):
        try:
            return recorder.record(call)
        except Failure:
            pass
    refusal = _refusal(grad)
    for tensor in tensors_among(call.operands) if not recorder.keeps_order else ():
        need_of_its_own(tensor, refusal.brk)
    raise refusal


def _backward(host: Host) -> Handler:
    """`backward`: the tensors that it is told to accumulate gradients in are tensors of their own."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        refusal = _refusal(host)  # one that is kept would keep its traceback, and the trace
        inputs = kwargs.get("inputs", NONE).force()
        if inputs is not NONE and not space.trace.recorder.keeps_order:
            for tensor in tensors_among(values_in(space, inputs)):
                need_of_its_own(tensor, refusal.brk)
        raise refusal

    return handler


def _is_whole(recorder: Recorder) -> bool:
    """Whether no graph of autograd reaches into the trace, and nobody waits for gradients in it."""
    for value in recorder.tracked.existing:
        host = value.host
        if not host.requires_grad:
            continue
        rely_on_leaf(value)
        if not host.is_leaf or internals.gradient_hooks(host) is not None:
            return False
        assert value.source is not None
        recorder.trace.guard(IdIs(GetAttrSource(value.source, "_backward_hooks"), None))
    return not (recorder.tracked.hooked or recorder.tracked.scattered)


def install() -> None:
    """Register the models."""
    hooks = torch.utils.hooks.BackwardHook
    for host in (torch.autograd.backward, torch.Tensor.backward):
        register(host, _backward(host))
    for host in (hooks.setup_input_hook, hooks.setup_output_hook):
        register(host, _refusing(host))
    register(torch.autograd.grad, _grad)
    # What the engine calls back (hooks, backward methods, checkpoints) runs as it was, or as eager runs it.
    calling = (torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward, torch.autograd.Function.apply)
    for function in calling:
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is not None:  # `Function.apply` is a C function in torch 2.15
            set_code_policy(code, CodePolicy.RUN_RECURSIVELY)
