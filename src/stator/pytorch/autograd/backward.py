"""`backward()`: the gradients are an operation of the graph, and so is what is done with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch.autograd.context_value import is_none
from stator.pytorch.autograd.engine_run import (
    OTHERWISE,
    arguments_of,
    need_of_its_own,
    refusal,
    tensors_in,
    with_tuples,
)
from stator.pytorch.autograd.history import leaves_reached
from stator.pytorch.autograd.leaf_gradients import LeafGradients
from stator.pytorch.autograd.leaf_hooks import LeafHooks, hooks_in_the_way
from stator.pytorch.autograd.obstacles import in_the_way
from stator.pytorch.nesting import values_in
from stator.pytorch.tensors.classes import PLAIN_CLASSES, is_traceable
from stator.pytorch.tensors.latent import is_known_leaf
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.protocol import NONE, Handler
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
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
        args, kwargs = with_tuples(space, host, args, kwargs)
        arguments = arguments_of(host, args, kwargs)
        backward = None if arguments is None else Backward(space, arguments, tensors, gradients)
        why = OTHERWISE if backward is None else backward.in_the_way()
        if backward is not None and not why:
            backward.perform(host)
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
        if any(hook.tensor in tracked.engine.retaining for hook in tracked.engine.traced_hooks):
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

    def perform(self, host: Host) -> None:
        """Record the gradients, and what is done with them."""
        retaining = tensors_among(self.recorder.tracked.engine.retaining) if self.takes_all else []
        gradients = LeafGradients(self.space, self.leaves, self.hooks, retaining)
        ends = [self.tensors, self.gradients]
        gradients.record(ends, self.arguments["retain_graph"], self.create_graph, host)


def _is_plain(value: Value) -> bool:
    return isinstance(value, TensorValue) and (value.cls in PLAIN_CLASSES or is_traceable(value.cls))
