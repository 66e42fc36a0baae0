"""What autograd has recorded of the fake tensors of a trace: the leaves that gradients reach, and what is used up.

    h = (x @ w).relu()
    loss = h.sum()           # SumBackward0 → ReluBackward0 → MmBackward0 → AccumulateGrad of w
    loss.backward()          # frees what the last two have saved: a second backward() raises there

Fake tensors have histories like those of real ones, up to what existed before the trace. Of such a tensor that is no
leaf, the history lies outside of the trace, and a leaf that no traced tensor stands for is found in its place.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch.autograd.graph import Node

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedTensor
    from stator.pytorch.types import Fake

__all__ = ["Rest", "leaves_reached", "path_between", "rest_of"]


def leaves_reached(recorder: Recorder, ends: Iterable[Fake], until: Iterable[Fake] = ()) -> list[TracedTensor] | None:
    """The leaves that the gradients of `ends` reach, without going beyond `until`; None if some lie outside the trace.

    They are in the order in which the trace met them.
    """
    known: dict[int, TracedTensor] = {}
    for value in (*recorder.tracked.existing, *recorder.tracked.made):
        if value._fake is not None:
            # A wrapper may hold the very tensor that it was made of: the leaf is that, and not the part.
            known.setdefault(id(value._fake), value)
    seen: set[Node] = {fake.grad_fn for fake in until if fake.grad_fn is not None}
    reached = {id(fake) for fake in ends if fake.grad_fn is None}
    waiting = [fake.grad_fn for fake in ends if fake.grad_fn is not None]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        leaf = _leaf(node)
        if leaf is not None:
            reached.add(id(leaf))
        waiting += _before(node)
    if not reached <= known.keys():
        return None
    return [value for key, value in known.items() if key in reached]


def path_between(end: Node, wanted: Node) -> list[int] | None:
    """How to come from a node to one before it: indices in `next_functions`, one after the other; None if no way."""
    waiting: list[tuple[Node, list[int]]] = [(end, [])]
    seen: set[Node] = set()
    while waiting:
        node, steps = waiting.pop(0)
        if node is wanted:
            return steps
        if node not in seen:
            seen.add(node)
            waiting += [(other, [*steps, i]) for i, (other, _) in enumerate(node.next_functions) if other is not None]
    return None


def _before(node: Node) -> list[Node]:
    """The nodes that a node hands its gradients to."""
    return [before for before, _ in node.next_functions if before is not None]


def _leaf(node: Node) -> torch.Tensor | None:
    """The leaf that the node accumulates gradients in, if it is such a node."""
    return getattr(node, "variable", None)


class Rest(enum.Enum):
    """What is left of a history after gradients have been computed."""

    WHOLE = "all of it"
    SPENT = "nothing: whoever computes gradients through it gets an error, before any leaf has got one"
    PARTS = "some of it"


def rest_of(fake: Fake) -> Rest:
    """What is left of the history of a tensor."""
    found: dict[Node, Rest] = {}
    waiting = [fake.grad_fn]
    while waiting:
        node = waiting[-1]
        if node in found:
            waiting.pop()
            continue
        before = _before(node)
        unknown = [other for other in before if other not in found]
        if unknown:
            waiting += unknown
            continue
        found[waiting.pop()] = _rest(node, [found[other] for other in before])
    return found[fake.grad_fn]


def _rest(node: Node, before: list[Rest]) -> Rest:
    """What is left of a history that ends with this node, if that much is left before it; nothing is before a leaf."""
    kinds = set(before) or {Rest.WHOLE}
    left = kinds.pop() if len(kinds) == 1 else Rest.PARTS
    if left is Rest.SPENT or not _is_freed(node):
        return left
    # A Function of the program's need not look at what it has saved, and then it does not fail.
    return Rest.PARTS if hasattr(type(node), "saved_tensors") else Rest.SPENT


def _is_freed(node: Node) -> bool:
    """Whether the tensors that the node has saved are gone. What it had no need to save is None before and after."""
    return any(_is_gone(node, name.removeprefix(_RAW)) for name in dir(type(node)) if name.startswith(_RAW))


def _is_gone(node: Node, name: str) -> bool:
    """Whether a tensor that the node has saved is gone. `_saved_self` is one, if there is a `_raw_saved_self`."""
    try:
        getattr(node, f"_saved_{name}" if hasattr(type(node), f"_saved_{name}") else f"saved_{name}")
    except RuntimeError as error:
        return "second time" in str(error)  # else it was kept, and has been written since
    return False


_RAW = "_raw_saved_"
