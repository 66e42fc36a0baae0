"""`backward()`: the gradients are an operation of the graph, and so is what is done with them."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch.autograd.accumulation import Accumulation
from stator.pytorch.autograd.context_value import is_none
from stator.pytorch.autograd.engine_run import FAILS, OTHERWISE, arguments_of, in_the_way, refusal, run, tensors_in
from stator.pytorch.autograd.history import leaves_reached
from stator.pytorch.autograd.hooks import need_of_its_own
from stator.pytorch.autograd.leaf_hooks import LeafHooks, hooks_in_the_way, past_hooks
from stator.pytorch.nesting import values_in
from stator.pytorch.state.global_state import without_gradients
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.latent import is_known_leaf
from stator.pytorch.tensors.lowering import Call, lower_call
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.protocol import FALSE, NONE, TRUE, Handler
from stator.space.signals import Restart
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.errors import Break
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = ["backward_handler"]


def backward_handler(host: Host, tensors: str, gradients: str) -> Handler:
    """The model of a function that runs the engine and has leaves accumulate what it gives.

    Args:
        tensors, gradients: how its parameters are called.
    """

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        arguments = arguments_of(host, args, kwargs)
        backward = None if arguments is None else Backward(space, arguments, tensors, gradients)
        why = OTHERWISE if backward is None else backward.in_the_way()
        if backward is not None and not why:
            backward.perform(refusal(host, FAILS))
            return NONE
        brk = refusal(host, why)
        for tensor in backward.inputs if backward is not None and not space.trace.recorder.keeps_order else ():
            need_of_its_own(tensor, brk)  # gradients are accumulated in it
        raise Unsupported(brk)

    return handler


class Backward:
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
        self.hooks: dict[TensorValue, LeafHooks] = {}

    def in_the_way(self) -> str:
        """Why the graph cannot do it, or nothing."""
        if not self.has_plain_arguments():
            return OTHERWISE
        if not all(map(is_known_leaf, self.inputs)):
            return "it accumulates gradients in a tensor that is no leaf"
        why = in_the_way(self.recorder, self.ends, [])
        if why:
            return why
        tracked = self.recorder.tracked
        if any(hook.tensor in tracked.retaining for hook in tracked.traced_hooks):
            return "a tensor that retains its gradient has a hook on it"
        reached = tensors_among(leaves_reached(self.recorder, [t.fake for t in self.ends]) or [])
        self.leaves = [leaf for leaf in reached if self.takes_all or any(leaf is t for t in self.inputs)]
        return hooks_in_the_way(self.space, self.leaves, self.hooks, self.create_graph) if self.leaves else OTHERWISE

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

    def perform(self, brk: Break) -> None:
        """Record the gradients, and what is done with them."""
        space, recorder, grad = self.space, self.recorder, torch.autograd.grad
        retaining = tensors_among(recorder.tracked.retaining) if self.takes_all else []
        options = {
            "retain_graph": self.arguments["retain_graph"],
            "create_graph": TRUE if self.create_graph else FALSE,
            "allow_unused": TRUE,
        }
        arguments = [self.tensors, space.new_tuple([*self.leaves, *retaining]), self.gradients]
        target = past_hooks if any(hooks.on_gradient for hooks in self.hooks.values()) else grad
        call = lower_call(space, Call(grad, "call_function", target), arguments, options)
        order = _Order(self.hooks)
        with order:
            made = [value.force() for value in space.unpack(run(recorder, call, brk))]
        pairs = list(zip((*self.leaves, *retaining), made, strict=True))
        with nullcontext() if self.create_graph else without_gradients(recorder.state.change):
            accumulation = Accumulation(space, call.operands, self.create_graph)
            done = all(accumulation.retain(tensor, new) for tensor, new in pairs[len(self.leaves) :])
            leaves = order.sorted(pairs[: len(self.leaves)])
            done = done and all(self.accumulate(accumulation, leaf, new) for leaf, new in leaves)
        if not done:
            raise Restart(recorder.tracked.backward_steps[0], brk)

    def accumulate(self, accumulation: Accumulation, leaf: TensorValue, new: Value) -> bool:
        """Let the gradient of a leaf pass its hooks, and accumulate it; False if it is not known what that does."""
        hooks = self.hooks.get(leaf)
        if hooks is None:
            return accumulation.add(leaf, new)
        passed = hooks.passed(self.space, new)
        return (
            passed is not None
            and accumulation.add(leaf, passed, held=passed is not new)
            and hooks.accumulated(self.space, leaf)
        )


class _Order:
    """A context in which the engine runs on fake tensors: notes in which order gradients come to leaves with hooks."""

    def __init__(self, leaves: dict[TensorValue, LeafHooks]) -> None:
        self.leaves = leaves
        self.seen: list[TensorValue] = []
        self.handles: list[Any] = []

    def __enter__(self) -> None:
        self.handles = [leaf.fake.register_hook(partial(self.note, leaf)) for leaf in self.leaves]

    def __exit__(self, *exc: object) -> None:
        for handle in self.handles:
            handle.remove()

    def note(self, leaf: TensorValue, gradient: torch.Tensor) -> None:
        """The gradient of a leaf has come."""
        self.seen.append(leaf)

    def sorted(self, pairs: list[tuple[TensorValue, Value]]) -> list[tuple[TensorValue, Value]]:
        """Leaves and gradients, those with hooks in that order, after the others."""
        places = {leaf: i for i, leaf in enumerate(self.seen)}
        return sorted(pairs, key=lambda pair: places.get(pair[0], -1))


def _is_plain(value: Value) -> bool:
    return isinstance(value, TensorValue) and value.cls in PLAIN_CLASSES
