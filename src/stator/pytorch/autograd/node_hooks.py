"""Hooks on nodes of autograd's graph: `y.grad_fn.register_hook(…)`, and `register_prehook(…)`.

One that is called before the node of a new tensor, and only computes, is traced like a hook on the tensor (see
`traced_hooks`). The nodes of tensors that were there before are objects like any other, and their hooks are registered
when the graph has run; so are, with a backend that runs operations as they were recorded, those on new nodes. Otherwise
ordinary Python makes the tensor first, so that it has a node of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.utils.hooks import RemovableHandle

from stator import errors
from stator.pytorch import internals
from stator.pytorch.autograd.handles import HandleValue, TracedHandle, TracedHook
from stator.pytorch.autograd.hooks import hook_up, is_new
from stator.pytorch.autograd.nodes import NodeValue, grad_fn, has_known_node, node_now
from stator.pytorch.autograd.traced_hooks import record_hook
from stator.pytorch.fake.storage import storage_of
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.space import facts
from stator.space.protocol import Handler, register
from stator.space.signals import Restart

if TYPE_CHECKING:
    from stator.pytorch.tensors.tensor import TensorValue
    from stator.pytorch.types import Function
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["node_of"]

#: methods of nodes that register hooks
_HOOKING = ("register_hook", "register_prehook")


class _Existing:
    """The nodes that were there before one trace, with the tensors that led to them."""

    def __init__(self, trace: object) -> None:
        self.tensors: dict[Value, TensorValue] = {}


def node_of(space: Space, tensor: TensorValue) -> Value | None:
    """`tensor.grad_fn` of a tensor that is no leaf; None if it is not known."""
    found = grad_fn(tensor) if has_known_node(tensor) else _existing_node(space, tensor)
    if found is not None:
        _learn_class(found.cls)
    return found


def _existing_node(space: Space, tensor: TensorValue) -> Value | None:
    """`tensor.grad_fn` of a tensor that was there before; None if the trace has given it another."""
    tracked = tensor.recorder.tracked
    if tensor.source is None or tensor.cls not in PLAIN_CLASSES or tensor in tracked.rebound:
        return None
    written = [root for root in tensor.recorder.effects.rewritten if root.host is not None]
    if any(storage_of(root.host) == storage_of(tensor.host) for root in written):
        return None
    found: Any = facts.attribute(space, tensor, "grad_fn").force()
    space.trace.extension(_Existing).tensors[found] = tensor
    return found


def _learn_class(cls: Any) -> None:
    """A class of nodes is met: register the models of its methods, which it has of its own."""
    register(cls.name, _name)
    for name in _HOOKING:
        register(getattr(cls, name), _hooking(getattr(cls, name), name == "register_prehook"))


def _name(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    node = args[0].force()
    return space.fresh(node.made.name()) if isinstance(node, NodeValue) else None


def _hooking(method: Function, before: bool) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        node = args[0].force()
        tensor = node.tensor if isinstance(node, NodeValue) else space.trace.extension(_Existing).tensors.get(node)
        if len(args) != 2 or kwargs or tensor is None:
            return None
        if isinstance(node, NodeValue):
            if not is_new(tensor):
                return None
            if before and _is_only_result(node):
                traced = TracedHook(tensor, space.trace.steps, before_node=True)
                if record_hook(space, tensor, args[1].force(), traced):
                    return TracedHandle(RemovableHandle, traced)
            _refuse_hook(node)
        handle = HandleValue(RemovableHandle)
        tensor.recorder.tracked.hooked.add(tensor.root)
        space.trace.defer(hook_up, [handle, space.existing(method), node, args[1]])
        return handle

    return handler


def _is_only_result(node: NodeValue) -> bool:
    """Whether a node is that of its tensor still, and of no other one."""
    results = getattr(node.made, internals.results_of_node.__name__)  # each class has an attribute of its own
    return node.made is node_now(node.tensor) and len(results) == 1


def _refuse_hook(node: NodeValue) -> None:
    """A hook on a new node: ordinary Python performs the operation, unless it has a node of its own in the graph."""
    operation = node.tensor.operation
    if not node.tensor.recorder.keeps_order and operation is not None:
        brk = errors.AutogradCall(f"a hook on {node.cls.__name__}", "a graph has one node for all that it computes")
        raise Restart(operation.step, brk)
