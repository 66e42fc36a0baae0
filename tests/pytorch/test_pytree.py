"""`torch.utils._pytree` inside of a traced function: it is Python, and is traced as such."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from tests.pytorch.programs import agree

Pair = namedtuple("Pair", "a b")


class Node:
    def __init__(self, left: Any, right: Any) -> None:
        self.left = left
        self.right = right


@dataclasses.dataclass
class Record:
    a: Any
    b: Any


pytree.register_pytree_node(Node, lambda node: ([node.left, node.right], None), lambda parts, _: Node(*parts))
pytree.register_dataclass(Record)


def twice(t: Any) -> Any:
    return t * 2


def mapped_in_place(x: Any) -> Any:
    seen: list[Any] = []
    pytree.tree_map_only_(torch.Tensor, seen.append, [x, (x + 1, 3)])
    return seen


def rebuilt(x: Any) -> Any:
    leaves, spec = pytree.tree_flatten({"a": [x, x + 1], "b": OrderedDict(c=(x, None))})
    return pytree.tree_unflatten([twice(leaf) for leaf in leaves], spec), spec.num_leaves


def parts(node: Any) -> Any:
    return node.left, node.right


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "only tensors": lambda x: pytree.tree_map_only(torch.Tensor, twice, {"a": [x, 3], "b": (x, None, "s")}),
    "only two types": lambda x: pytree.tree_map_only((torch.Tensor, int), twice, {"a": [x, 3], "b": (x, 2.5)}),
    "only what a predicate finds": lambda x: pytree.tree_map_only(lambda t: isinstance(t, int), twice, [x, 3, (4,)]),
    "only tensors of nodes": lambda x: parts(pytree.tree_map_only(torch.Tensor, twice, Node(x, [1, x]))),
    "only tensors, in place": mapped_in_place,
    "all and any": lambda x: (
        pytree.tree_all_only(torch.Tensor, lambda t: t.ndim == 2, [x, 1]),
        pytree.tree_any_only(int, lambda n: n > 3, [x, 1]),
    ),
    "with dataclasses": lambda x: dict(vars(pytree.tree_map(twice, [Record(x, 2)])[0])),
    "with named tuples": lambda x: pytree.tree_map(twice, Pair(x, [x + 1])),
    "two trees": lambda x: pytree.tree_map(torch.add, [x, (x, {"k": x})], [x, (x + 1, {"k": x + 2})]),
    "with paths": lambda x: pytree.tree_map_with_path(lambda path, t: t * len(path), {"a": [x, (x,)]}),
    "flattened and back": rebuilt,
    "broadcast": lambda x: pytree._broadcast_to_and_flatten((x, 1), pytree.tree_structure(([x, x], x))),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_is_one_graph(name: str, backend: str) -> None:
    for sizes in ((2, 3), (4, 3), (1, 5)):
        agree(lambda sizes=sizes: (PROGRAMS[name], (torch.randn(*sizes),)), backend=backend)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients(backend: str) -> None:
    agree(
        lambda: (PROGRAMS["only tensors of nodes"], (torch.randn(2, requires_grad=True),)), grad=True, backend=backend
    )
