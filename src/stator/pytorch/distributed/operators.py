"""Functional operators for collectives that torch has none for: `made = stator_c10d::reduce(tensor, "sum", 0, "0")`.

Each begins the collective on a copy, or on new tensors, and registers its Work for what it returns, as torch's own do:
`wait_tensor` waits for it. The messages are those of the method of ProcessGroup, so that a rank which runs the graph
meets one that runs as ordinary Python.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
import torch.fx

from stator.pytorch import internals
from stator.pytorch.own_operators import define

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stator.pytorch.types import Host, Operator

__all__ = ["MESSAGES", "calls_in", "communicates", "in_a_group", "is_message", "operator"]

_NAMESPACE = "stator_c10d"
#: of operators that communicate, torch's and these
_NAMESPACES = frozenset({"_c10d_functional", "_c10d_functional_autograd", _NAMESPACE})
_Tensors = list[torch.Tensor]


def _options(name: str, **values: object) -> Any:
    made = getattr(internals.c10d, name)()
    for field, value in values.items():
        setattr(made, field, value)
    return made


def _reduction(name: str) -> Any:
    return getattr(internals.c10d.ReduceOp, name.upper())


def _begun(made: _Tensors, work: Any) -> None:
    for tensor in made:
        internals.register_work(tensor, work)


def _reduce(tensor: torch.Tensor, reduction: str, root: int, group: str) -> torch.Tensor:
    made = tensor.clone()
    options = _options("ReduceOptions", reduceOp=_reduction(reduction), rootRank=root)
    _begun([made], internals.group_of_name(group).reduce([made], options))
    return made


def _reduce_scatter(tensors: _Tensors, reduction: str, group: str) -> torch.Tensor:
    made = torch.empty_like(tensors[0])
    options = _options("ReduceScatterOptions", reduceOp=_reduction(reduction))
    _begun([made], internals.group_of_name(group).reduce_scatter([made], [tensors], options))
    return made


def _gather(tensor: torch.Tensor, size: int, root: int, group: str) -> _Tensors:
    """What is gathered; on other ranks a tensor to wait for."""
    to = internals.group_of_name(group)
    gathered = [torch.empty_like(tensor) for _ in range(size if to.rank() == root else 0)]
    made = gathered or [tensor.clone()]
    _begun(made, to.gather([gathered] if gathered else [], [tensor], _options("GatherOptions", rootRank=root)))
    return made


def _scatter(tensors: _Tensors, like: torch.Tensor, root: int, group: str) -> torch.Tensor:
    made = torch.empty_like(like)
    given = [tensors] if tensors else []
    _begun([made], internals.group_of_name(group).scatter([made], given, _options("ScatterOptions", rootRank=root)))
    return made


def _send(tensor: torch.Tensor, after: _Tensors, peer: int, tag: int, group: str) -> torch.Tensor:
    made = tensor.clone()
    _begun([made], internals.group_of_name(group).send([made], peer, tag))
    return made


def _recv(like: torch.Tensor, after: _Tensors, peer: int, tag: int, group: str) -> torch.Tensor:
    made = torch.empty_like(like)
    _begun([made], internals.group_of_name(group).recv([made], peer, tag))
    return made


def _sent(begun: torch.Tensor, after: _Tensors) -> torch.Tensor:
    internals.collective_operators.wait_tensor(begun)
    return begun.new_empty(0)


def _arrived(begun: torch.Tensor, after: _Tensors) -> torch.Tensor:
    return internals.collective_operators.wait_tensor(begun).clone()


def _nothing(tensor: torch.Tensor, *args: object) -> torch.Tensor:
    return tensor.new_empty(0)


def _copy(tensor: torch.Tensor, *args: object) -> torch.Tensor:
    return torch.empty_like(tensor)


def _first(tensors: _Tensors, *args: object) -> torch.Tensor:
    return torch.empty_like(tensors[0])


def _all_or_one(tensor: torch.Tensor, size: int, root: int, group: str) -> _Tensors:
    return [torch.empty_like(tensor) for _ in range(size if internals.group_of_name(group).rank() == root else 1)]


def _second(tensors: _Tensors, like: torch.Tensor, *args: object) -> torch.Tensor:
    return torch.empty_like(like)


#: messages between two ranks. `after` is what was begun or waited for before: they are performed in the order of the
#: program, by whatever performs an operation after those whose results it uses
MESSAGES = ("send", "recv", "sent", "arrived")
_MESSAGE = "(Tensor {}, Tensor[] after, int peer, int tag, str group_name) -> Tensor"
#: name → the rest of its schema, what it does, and what it returns
_OPERATORS: dict[str, tuple[str, Callable[..., Any], Callable[..., Any]]] = {
    "arrived": ("(Tensor begun, Tensor[] after) -> Tensor", _arrived, _copy),
    "gather": ("(Tensor input, int size, int root, str group_name) -> Tensor[]", _gather, _all_or_one),
    "recv": (_MESSAGE.format("like"), _recv, _copy),
    "reduce": ("(Tensor input, str reduce_op, int root, str group_name) -> Tensor", _reduce, _copy),
    "reduce_scatter": ("(Tensor[] inputs, str reduce_op, str group_name) -> Tensor", _reduce_scatter, _first),
    "send": (_MESSAGE.format("input"), _send, _copy),
    "sent": ("(Tensor begun, Tensor[] after) -> Tensor", _sent, _nothing),
    "scatter": ("(Tensor[] inputs, Tensor like, int root, str group_name) -> Tensor", _scatter, _second),
}


def is_message(function: Host) -> bool:
    """Whether it is an operator of a message between two ranks."""
    return getattr(function, "namespace", "") == _NAMESPACE and function.__name__.partition(".")[0] in MESSAGES


def communicates(function: Host) -> bool:
    """Whether it is an operator of a collective that others of the group perform too."""
    namespace, _, rest = str(function).partition(".")
    return namespace in _NAMESPACES and not rest.startswith("wait") and not is_message(function)


def in_a_group() -> bool:
    """Whether this process can communicate with others at all."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def calls_in(nodes: Iterable[torch.fx.Node], attribute_of: Callable[[str], Any]) -> Iterator[torch.fx.Node]:
    """The calls that are made when these nodes run: of graphs that are handed to operators too, and of Functions.

    Args:
        attribute_of: gives the modules and graphs that the nodes refer to.
    """
    for node in nodes:
        if node.op in ("get_attr", "call_module"):
            inner = attribute_of(str(node.target))
            inner = getattr(inner, "forward_graph", inner)  # what a Function does in the backward pass is done once
            if isinstance(inner, torch.fx.GraphModule):
                yield from calls_in(inner.graph.nodes, functools.partial(getattr, inner))
        elif node.op in ("call_function", "call_method"):
            yield node


@functools.cache
def operator(name: str) -> Operator:
    """The operator of this name, torch's or one of these; registered when it is first used."""
    if name not in _OPERATORS:
        internals.functional_collectives  # noqa: B018 (it says what the operators return)
        return getattr(internals.collective_operators, name).default
    made = define(name, *_OPERATORS[name], _NAMESPACE)
    return torch.fx.node.has_side_effect(made) if name in MESSAGES else made
