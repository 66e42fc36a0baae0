"""Graphs of `torch.fx` that the traced program goes through, as `torch.fx.Interpreter` does.

The iterator over nodes and the function that maps arguments are written in C; these do the same and can be traced. An
iterator that is kept over a graph break says where it stands, which the one in C does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.fx.immutable_collections import immutable_dict, immutable_list

from stator.compiler.mark_models import substitute
from stator.pytorch import internals
from stator.space.protocol import register

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["NodeIter", "map_all", "map_nodes"]

_NODE, _ERASED = internals.NodeBase, "_erased"


class NodeIter:
    """The nodes of a graph from either end; they are linked in a ring, in which the root is no node of the program."""

    def __init__(self, root: Host, reversed: bool) -> None:
        self.root = self.at = root
        self.step = "_prev" if reversed else "_next"

    def __iter__(self) -> NodeIter:
        return self

    def __next__(self) -> Host:
        self.at = getattr(self.at, self.step)
        while self.at is not self.root and getattr(self.at, _ERASED):
            self.at = getattr(self.at, self.step)
        if self.at is self.root:
            raise StopIteration
        return self.at


def _mapped(a: Host, function: Function, kinds: Host) -> Host:
    if isinstance(a, tuple):
        made = tuple([_mapped(each, function, kinds) for each in a])
        return type(a)(*made) if hasattr(a, "_fields") else made
    if isinstance(a, list):
        return immutable_list([_mapped(each, function, kinds) for each in a])
    if isinstance(a, dict):
        return immutable_dict([(key, _mapped(each, function, kinds)) for key, each in a.items()])
    if isinstance(a, slice):
        return slice(*[_mapped(each, function, kinds) for each in (a.start, a.stop, a.step)])
    return function(a) if isinstance(a, kinds) else a


def map_nodes(a: Host, fn: Function) -> Host:
    return _mapped(a, fn, _NODE)


def map_all(a: Host, fn: Function) -> Host:
    return _mapped(a, fn, object)


def _iterator(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return space.call(space.existing(NodeIter), args[1:], kwargs)


register(internals.NodeIter.__new__, _iterator)
substitute(internals.fx_map_arg, map_nodes)
substitute(internals.fx_map_all, map_all)
