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
from stator.pytorch.autograd.onlookers import (
    is_engine_unwatched,
    is_unhooked,
    only_accumulate,
    who_watches_the_engine,
)
from stator.pytorch.fake.failure import Failure, describe_callable
from stator.pytorch.nesting import values_in
from stator.pytorch.state.global_state import without_gradients
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.latent import is_known_leaf, rely_on_leaf
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
        raise Unsupported(_refusal(host, "the module has hooks on its gradients"))

    return handler


def _refusal(host: Host, why: str) -> errors.Break:
    return errors.AutogradCall(describe_callable(host), why)


# -- gradients as results ---------------------------------------------------------------------------------------------


def _grad(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch.autograd.grad`, where the fake tensors have all of the graph that the engine will go through."""
    grad = torch.autograd.grad
    recorder = space.trace.recorder
    call = lower_call(space, Call(grad, "call_function", grad), args, kwargs)
    bound = _bound(grad, args, kwargs)
    why = _OTHERWISE if bound is None else _in_grads_way(space, bound, call)
    if not why:
        return _run(recorder, call, _refusal(grad, _FAILS))
    brk = _refusal(grad, why)
    for tensor in tensors_among(call.operands) if not recorder.keeps_order else ():
        need_of_its_own(tensor, brk)
    raise Unsupported(brk)


#: why a call breaks that is no operation of the graph, whatever its arguments are
_OTHERWISE = "it is called in a way that is not recorded"
_FAILS = "it fails, or gives tensors that cannot be recorded"


def _in_grads_way(space: Space, arguments: dict[str, Value], call: Call) -> str:
    """Why `torch.autograd.grad` is no operation of the graph, or nothing."""
    ends, until = tensors_in(space, arguments["outputs"]), tensors_in(space, arguments["inputs"])
    if any(operand.symbolic for operand in call.operands):
        return _OTHERWISE
    why = _in_the_way(space.trace.recorder, ends, until)
    hooked = [tensor for tensor in until if tensor.host is not None and not is_unhooked(tensor.host)]
    if hooked:
        return f"{_name(hooked[0])} has a hook on its gradient"
    for tensor in until if not why else ():
        if tensor.host is not None:
            holds(space, tensor, is_unhooked, "has no hooks on its gradient")
    return why


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


def _in_the_way(recorder: Recorder, ends: list[TensorValue], until: list[TensorValue]) -> str:
    """Why a graph cannot compute gradients, or nothing: they go on outside, or somebody sees them on their way."""
    if not recorder.trace.config.trace_backward:
        return "stator.config.trace_backward is off"
    if recorder.nodes.graph is not recorder.nodes.whole:
        return "it is called in a function that an operation of the graph runs"
    if recorder.tracked.hooked:
        return "a hook that was registered before waits for gradients"
    if recorder.tracked.scattered:
        return "the data of a leaf was exchanged before, so that its gradient comes from several places"
    onlooker = who_watches_the_engine()
    if onlooker:
        return onlooker
    leaves = leaves_reached(recorder, [t.fake for t in ends], [t.fake for t in until])
    if leaves is None:
        return f"gradients go on into what was computed before: {_from_before(recorder)}"
    recorder.trace.guard(GlobalState(is_engine_unwatched, "nobody sees the autograd engine at work"))
    for leaf in leaves:
        rely_on_leaf(leaf)
    return ""


def _from_before(recorder: Recorder) -> str:
    """The names of the tensors which autograd has operations before the trace for."""
    found = [_name(value) for value in recorder.tracked.existing if value.requires_grad and not value.host.is_leaf]
    return ", ".join(found[:3])


def _name(value: TracedTensor) -> str:
    """How the program calls an existing tensor."""
    return "a tensor" if value.source is None else value.source.expr()


def _run(recorder: Recorder, call: Call, brk: errors.Break) -> Value:
    """Record a run of the engine."""
    call.key = None  # metadata does not tell where a tensor has come from
    call.reads_history = True
    steps = recorder.tracked.backward_steps
    steps.append(recorder.trace.steps)
    try:
        return recorder.record(call)
    except (Failure, Unsupported):
        # The fake tensors have lost what the engine has used before it failed. If it failed for want of what an earlier
        # run has used, that belongs to the program's error too.
        raise Restart(steps[0], brk) from None


# -- gradients that leaves accumulate ---------------------------------------------------------------------------------


def _backward(host: Host, tensors: str, gradients: str) -> Handler:
    """`backward`: the gradients are an operation of the graph, and so is what is done with them.

    Args:
        tensors, gradients: how the parameters are called.
    """

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        bound = _bound(host, args, kwargs)
        run = None if bound is None else _Backward(space, bound, tensors, gradients)
        why = _OTHERWISE if run is None else run.in_the_way()
        if run is not None and not why:
            run.perform(_refusal(host, _FAILS))
            return NONE
        brk = _refusal(host, why)
        for tensor in run.inputs if run is not None and not space.trace.recorder.keeps_order else ():
            need_of_its_own(tensor, brk)  # gradients are accumulated in it
        raise Unsupported(brk)

    return handler


class _Backward:
    """One call of `backward`."""

    def __init__(self, space: Space, arguments: dict[str, Value], tensors: str, gradients: str) -> None:
        self.space = space
        self.recorder: Recorder = space.trace.recorder
        self.arguments = arguments
        self.tensors, self.gradients = arguments[tensors], arguments[gradients]
        self.ends = tensors_in(space, self.tensors)
        self.takes_all = is_none(arguments["inputs"])
        self.inputs = tensors_in(space, arguments["inputs"])
        self.create_graph = space.known(arguments["create_graph"]) is True
        self.leaves: list[TensorValue] = []

    def in_the_way(self) -> str:
        """Why the graph cannot do it, or nothing."""
        if not self.has_plain_arguments():
            return _OTHERWISE
        if not all(map(is_known_leaf, self.inputs)):
            return "it accumulates gradients in a tensor that is no leaf"
        why = _in_the_way(self.recorder, self.ends, [])
        if why:
            return why
        reached = leaves_reached(self.recorder, [t.fake for t in self.ends]) or []
        self.leaves = [leaf for leaf in tensors_among(reached) if self.takes_all or any(leaf is t for t in self.inputs)]
        return "" if not self.leaves else self.hooked()

    def has_plain_arguments(self) -> bool:
        flags = [self.space.known(self.arguments[name]) for name in ("retain_graph", "create_graph")]
        given = [*values_in(self.space, self.tensors), *values_in(self.space, self.gradients)]
        return (
            all(flag is None or flag is True or flag is False for flag in flags)
            and is_none(self.arguments.get("grad_variables", NONE))
            and all(_is_plain(value) for value in given if not is_none(value))
            and (not self.create_graph or torch.is_grad_enabled())
            and (self.takes_all or bool(self.inputs))
        )

    def hooked(self) -> str:
        """Why more is done with a gradient than to accumulate it, or nothing, which is guarded when the trace ends."""
        existing = [leaf for leaf in self.leaves if leaf.host is not None]
        for leaf in existing:
            if not only_accumulate(leaf.host):
                return f"more is done with the gradient of {_name(leaf)} than to accumulate it in `.grad`"
        self.recorder.tracked.accumulating.update(dict.fromkeys(existing))
        return ""

    def perform(self, brk: errors.Break) -> None:
        """Record the gradients, and their accumulation."""
        space, grad, steps = self.space, torch.autograd.grad, self.recorder.tracked.backward_steps
        accumulation = Accumulation(space, self.leaves, self.create_graph)
        options = {
            "retain_graph": self.arguments["retain_graph"],
            "create_graph": TRUE if self.create_graph else FALSE,
            "allow_unused": TRUE,
        }
        arguments = [self.tensors, space.new_tuple([*self.leaves]), self.gradients]
        call = lower_call(space, Call(grad, "call_function", grad), arguments, options)
        made = [value.force() for value in space.unpack(_run(self.recorder, call, brk))]
        if not accumulation.can_follow(made):
            raise Restart(steps[0], brk)
        with contextlib.nullcontext() if self.create_graph else without_gradients(self.recorder.state.change):
            if not accumulation.record(made, call.operands):
                raise Restart(steps[0], brk)


def _is_plain(value: Value) -> bool:
    return isinstance(value, TensorValue) and value.cls in PLAIN_CLASSES


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
