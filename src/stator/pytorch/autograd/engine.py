"""The autograd engine: gradients of what the graph has computed are operations of it, other calls break the graph."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch
import torch.autograd

from stator._core import CodePolicy, set_code_policy
from stator.interp import policy
from stator.pytorch import internals
from stator.pytorch.autograd.backward import backward_handler
from stator.pytorch.autograd.batched import batched_grad
from stator.pytorch.autograd.engine_run import (
    FAILS,
    OTHERWISE,
    arguments_of,
    leave_to_python,
    need_of_its_own,
    refusal,
    run,
    tensors_in,
    with_tuples,
)
from stator.pytorch.autograd.obstacles import in_the_way, name_of
from stator.pytorch.autograd.onlookers import is_unhooked
from stator.pytorch.tensors.lowering import Call, lower_call
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.facts import holds
from stator.space.protocol import register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Function
    from stator.space.space import Space


def _grad(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch.autograd.grad`, where the fake tensors have all of the graph that the engine will go through."""
    grad = torch.autograd.grad
    recorder = space.trace.recorder
    args, kwargs = with_tuples(space, grad, args, kwargs)
    arguments = arguments_of(grad, args, kwargs)
    batched = arguments is not None and space.truth(arguments["is_grads_batched"])
    function = _performing(recorder, batched)
    call = lower_call(space, Call(function, "call_function", function), args, kwargs)
    why = OTHERWISE if arguments is None else _in_its_way(space, arguments, call)
    brk = refusal(grad, why or FAILS)
    if not why:
        return run(recorder, call, brk, batched)
    if batched and not recorder.keeps_order:
        leave_to_python(recorder, call.operands, brk)
    for tensor in tensors_among(call.operands) if not recorder.keeps_order else ():
        need_of_its_own(tensor, brk)
    raise Unsupported(brk)


def _performing(recorder: Recorder, batched: bool) -> Function:
    """What the graph calls for `torch.autograd.grad`."""
    if batched and recorder.shapes.begun:
        return batched_grad
    return torch.autograd.grad if recorder.nodes.graph is recorder.nodes.whole else _keeping


def _keeping(*args: Any, **kwargs: Any) -> Any:
    """The same in a function that is traced, and then run once more on fake tensors, as a whole."""
    given = inspect.signature(torch.autograd.grad).bind(*args, **kwargs)
    given.arguments["retain_graph"] = True
    return torch.autograd.grad(*given.args, **given.kwargs)


def _in_its_way(space: Space, arguments: dict[str, Value], call: Call) -> str:
    """Why `torch.autograd.grad` is no operation of the graph, or nothing."""
    ends, until = tensors_in(space, arguments["outputs"]), tensors_in(space, arguments["inputs"])
    if any(operand.symbolic for operand in call.operands):
        return OTHERWISE
    existing = [tensor for tensor in until if tensor.host is not None]
    hooked = [tensor for tensor in existing if not is_unhooked(tensor.host)]
    if hooked:
        return f"{name_of(hooked[0])} has a hook on its gradient"
    why = in_the_way(space.trace.recorder, ends, until)
    for tensor in existing if not why else ():
        holds(space, tensor, is_unhooked, "has no hooks on its gradient")
    return why


def install() -> None:
    """Register the models."""
    register(torch.autograd.backward, backward_handler(torch.autograd.backward, "tensors", "grad_tensors"))
    register(torch.Tensor.backward, backward_handler(torch.Tensor.backward, "self", "gradient"))
    register(torch.autograd.grad, _grad)
    # What the engine calls back (hooks, backward methods, checkpoints) runs as it was, or as eager runs it.
    calling = (torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward, torch.autograd.Function.apply)
    for function in calling:
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is not None:  # `Function.apply` is a C function in torch 2.15
            set_code_policy(code, CodePolicy.RUN_RECURSIVELY)
    policy.CALLED_BACK.append(internals.FunctionBase)
