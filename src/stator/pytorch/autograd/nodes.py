"""The nodes of autograd's graph (`y.grad_fn`): whether there is one, of which class, and what it is called.

A backend that rewrites the graph makes other nodes; what the trace says of one is what eager execution would show. A
graph of which a node leaves the trace, as an object, is run in the program's order by no such backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator import errors
from stator.pytorch import internals
from stator.pytorch.autograd.history import path_between
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from torch.autograd.graph import Node

    from stator.pytorch.tensors.tensor import TensorValue
    from stator.space.interfaces import Writer

__all__ = ["NodeValue", "grad_fn", "has_known_node", "name_node", "node_name", "node_now"]


#: how nodes are called of operators that stand for a function of torch's
_OF_OURS = "GeneratedBackwardFor_stator_"


class NodeValue(Value):
    """A node that has made a tensor, which may have been written to since, and have another now."""

    __slots__ = ("made", "tensor")

    def __init__(self, made: Node, tensor: TensorValue) -> None:
        self.cls = type(made)
        self.source = None
        #: the node of the fake tensor
        self.made = made
        self.tensor = tensor

    def reconstruct(self, writer: Writer) -> str:
        # The program may look at it, at those before it, or hook them: they must be the ones of eager execution.
        self.tensor.recorder.tracked.in_order = True
        steps = path_between(node_now(self.tensor), self.made)
        if steps is None:
            why = f"the tensor that {self.cls.__name__} has made has another history since"
            raise Unsupported(errors.AutogradCall("grad_fn", why))
        return f"{writer.expr(self.tensor)}.grad_fn" + "".join(f".next_functions[{step}][0]" for step in steps)


def has_known_node(tensor: TensorValue) -> bool:
    """Whether the node of a tensor that is no leaf is that of its fake tensor."""
    nodes = tensor.recorder.trace.extension(_Nodes)
    if tensor.source is not None or tensor.meta is None or tensor in nodes.others:
        return False
    if type(node_now(tensor)).__name__.startswith(_OF_OURS):
        return False
    # Written to, a view gets another node, and fake tensors get that otherwise.
    written = any(tensor.root in counts for counts in tensor.recorder.effects.writes.values())
    return not (written and internals.is_view(tensor.fake))


def node_now(tensor: TensorValue) -> Node:
    """The node of its fake tensor, which may wait to be written to."""
    tensor.recorder.fakes.replay()
    return tensor.fake.grad_fn


def name_node(tensor: TensorValue, name: str) -> None:
    """The class of the tensor's node is called so; the trace, which looks into what made it, has another for it."""
    tensor.recorder.trace.extension(_Nodes).others[tensor] = name


def node_name(tensor: TensorValue) -> str | None:
    """What the class of the node of a tensor that is no leaf is called; None if that isn't known."""
    found = tensor.recorder.trace.extension(_Nodes).others.get(tensor)
    return type(node_now(tensor)).__name__ if found is None and has_known_node(tensor) else found


def grad_fn(tensor: TensorValue) -> Value:
    """`tensor.grad_fn`, of a new tensor that is no leaf: one object as long as the tensor stays where it is."""
    nodes = tensor.recorder.trace.extension(_Nodes).found
    made = node_now(tensor)
    if made not in nodes:
        nodes[made] = NodeValue(made, tensor)
    return nodes[made]


class _Nodes:
    """The nodes that one trace has met, by those of its fake tensors."""

    def __init__(self, trace: object) -> None:
        self.found: dict[object, NodeValue] = {}
        #: tensors that have others, and what their classes are called
        self.others: dict[TensorValue, str] = {}
