"""The autograd engine: gradients of what the graph has computed are operations of it, other calls break the graph."""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING

import torch
import torch.autograd
import torch.utils.hooks

from stator import errors
from stator._core import CodePolicy, set_code_policy
from stator.guards.guard import GlobalState
from stator.pytorch.autograd.accumulation import Accumulation
from stator.pytorch.autograd.context_value import is_none
from stator.pytorch.autograd.history import leaves_reached
from stator.pytorch.autograd.hooks import need_of_its_own
from stator.pytorch.autograd.onlookers import is_engine_unwatched, is_unhooked, only_accumulate
from stator.pytorch.fake.failure import Failure, describe_callable
from stator.pytorch.nesting import values_in
from stator.pytorch.state.global_state import without_gradients
from stator.pytorch.tensors.attributes import is_leaf
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.latent import rely_on_leaf
from stator.pytorch.tensors.lowering import Call, lower_call
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.facts import holds
from stator.space.protocol import FALSE, NONE, TRUE, Handler, register
from stator.space.signals import Restart
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedTensor
    from stator.pytorch.types import Host
    from stator.space.space import Space


def _refusing(host: Host) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise _refusal(host)

    return handler


def _refusal(host: Host) -> Unsupported:
    return Unsupported(errors.AutogradCall(describe_callable(host)))


# -- gradients as results ---------------------------------------------------------------------------------------------


def _grad(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch.autograd.grad`, where the fake tensors have all of the graph that the engine will go through."""
    grad = torch.autograd.grad
    recorder = space.trace.recorder
    call = lower_call(space, Call(grad, "call_function", grad), args, kwargs)
    bound = _bound(grad, args, kwargs)
    refusal = _refusal(grad)  # one that is kept would keep its traceback, and the trace
    if bound is not None and not any(operand.symbolic for operand in call.operands):
        ends, until = tensors_in(space, bound["outputs"]), tensors_in(space, bound["inputs"])
        if _can_run(recorder, ends, until) and all(_is_unhooked(space, tensor) for tensor in until):
            return _run(recorder, call, refusal.brk)
    for tensor in tensors_among(call.operands) if not recorder.keeps_order else ():
        need_of_its_own(tensor, refusal.brk)
    raise refusal


def tensors_in(space: Space, value: Value) -> list[TensorValue]:
    """The tensors that an argument consists of."""
    return tensors_among(values_in(space, value.force()))


def _bound(host: Host, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value] | None:
    """The arguments by their names; None where they do not fit."""
    signature = inspect.signature(host)
    try:
        found = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    return {name: found.get(name, NONE).force() for name in signature.parameters}


def _can_run(recorder: Recorder, ends: list[TensorValue], until: list[TensorValue]) -> bool:
    """Whether all of autograd's graph that gradients go through was recorded here, and nobody sees them on their way."""
    if not recorder.trace.config.trace_backward or recorder.tracked.hooked or not is_engine_unwatched():
        return False
    leaves = leaves_reached(recorder, [t.fake for t in ends], [t.fake for t in until])
    if leaves is None:
        return False
    recorder.trace.guard(GlobalState(is_engine_unwatched, "nobody sees the autograd engine at work"))
    for leaf in leaves:
        rely_on_leaf(leaf)
    return True


def _is_unhooked(space: Space, tensor: TracedTensor) -> bool:
    return tensor.host is None or holds(space, tensor, is_unhooked, "has no hooks on its gradient")


def _run(recorder: Recorder, call: Call, brk: errors.Break) -> Value:
    """Record a run of the engine."""
    call.key = None  # metadata does not tell where a tensor has come from
    step = recorder.trace.steps
    try:
        made = recorder.record(call)
    except (Failure, Unsupported):
        # The fake tensors have lost what the engine has used before it failed.
        raise Restart(step, brk) from None
    recorder.tracked.backward_steps.append(step)
    return made


# -- gradients that leaves accumulate ---------------------------------------------------------------------------------


def _backward(host: Host, tensors: str, gradients: str) -> Handler:
    """`backward`: the gradients are an operation of the graph, and so is what is done with them.

    Args:
        tensors, gradients: how the parameters are called.
    """

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        bound = _bound(host, args, kwargs)
        refusal = _refusal(host)
        run = None if bound is None else _Backward(space, bound, tensors, gradients)
        if run is not None and run.is_known():
            run.perform(refusal.brk)
            return NONE
        inputs = kwargs.get("inputs", NONE).force()
        if not is_none(inputs) and not space.trace.recorder.keeps_order:
            for tensor in tensors_in(space, inputs):  # gradients are accumulated in it: a tensor of its own
                need_of_its_own(tensor, refusal.brk)
        raise refusal

    return handler


class _Backward:
    """One call of `backward`."""

    def __init__(self, space: Space, arguments: dict[str, Value], tensors: str, gradients: str) -> None:
        self.space = space
        self.recorder: Recorder = space.trace.recorder
        self.arguments = arguments
        self.ends = tensors_in(space, arguments[tensors])
        self.tensors = arguments[tensors]
        self.gradients = arguments[gradients]
        self.inputs = arguments["inputs"]
        self.create_graph = space.known(arguments["create_graph"]) is True
        self.leaves: list[TensorValue] = []

    def is_known(self) -> bool:
        """Whether it is known what the engine would do."""
        return self.has_plain_arguments() and self.finds_leaves() and _only_accumulate(self.recorder, self.leaves)

    def has_plain_arguments(self) -> bool:
        flags = [self.space.known(self.arguments[name]) for name in ("retain_graph", "create_graph")]
        given = values_in(self.space, self.tensors), values_in(self.space, self.gradients)
        plain = [value for values in given for value in values if not is_none(value)]
        return (
            all(flag in (None, False, True) for flag in flags)
            and is_none(self.arguments.get("grad_variables", NONE))
            and all(isinstance(value, TensorValue) and value.cls in PLAIN_CLASSES for value in plain)
            and (not self.create_graph or torch.is_grad_enabled())
        )

    def finds_leaves(self) -> bool:
        """Whether all leaves are found in which gradients are to be accumulated."""
        until = [] if is_none(self.inputs) else tensors_in(self.space, self.inputs)
        if not all(map(is_leaf, until)) or not _can_run(self.recorder, self.ends, []):
            return False
        reached = leaves_reached(self.recorder, [t.fake for t in self.ends])
        self.leaves = [leaf for leaf in reached or () if is_none(self.inputs) or any(leaf is t for t in until)]
        return bool(self.leaves)

    def perform(self, brk: errors.Break) -> None:
        """Record the gradients, and their accumulation."""
        space, grad, step = self.space, torch.autograd.grad, self.recorder.trace.steps
        accumulation = Accumulation(space, self.leaves, self.create_graph)
        options = {
            "retain_graph": self.arguments["retain_graph"],
            "create_graph": TRUE if self.create_graph else FALSE,
            "allow_unused": TRUE,
        }
        arguments = [self.tensors, space.new_tuple(self.leaves), self.gradients]
        call = lower_call(space, Call(grad, "call_function", grad), arguments, options)
        made = [value.force() for value in space.unpack(_run(self.recorder, call, brk))]
        if not accumulation.can_follow(made):
            raise Restart(step, brk)
        with contextlib.nullcontext() if self.create_graph else without_gradients(self.recorder.state.change):
            if not accumulation.record(made):
                raise Restart(step, brk)


def _only_accumulate(recorder: Recorder, leaves: list[TensorValue]) -> bool:
    """Whether nothing but accumulation awaits the gradients of the leaves; guarded when the trace ends."""
    existing = [leaf for leaf in leaves if leaf.host is not None]
    if not only_accumulate(*[leaf.host for leaf in existing]):
        return False
    recorder.tracked.accumulating.update(dict.fromkeys(existing))
    return True


def install() -> None:
    """Register the models."""
    hooks = torch.utils.hooks.BackwardHook
    register(torch.autograd.backward, _backward(torch.autograd.backward, "tensors", "grad_tensors"))
    register(torch.Tensor.backward, _backward(torch.Tensor.backward, "self", "gradient"))
    for host in (hooks.setup_input_hook, hooks.setup_output_hook):
        register(host, _refusing(host))
    register(torch.autograd.grad, _grad)
    # What the engine calls back (hooks, backward methods, checkpoints) runs as it was, or as eager runs it.
    calling = (torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward, torch.autograd.Function.apply)
    for function in calling:
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is not None:  # `Function.apply` is a C function in torch 2.15
            set_code_policy(code, CodePolicy.RUN_RECURSIVELY)
