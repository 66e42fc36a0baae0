"""DDP's buckets: how many bytes of gradients it sends at a time, and where a graph is cut so that each can go at once.

DDP sends the gradients of a bucket as soon as the backward pass has computed all of them, while it goes on computing
others. AOTAutograd makes one function of the backward pass of a graph, which gives all gradients at its end: nothing
is sent meanwhile. So the graph of a forward pass is cut into pieces whose parameters make a bucket each, beginning
with those used last, whose gradients come first.

What is decided here changes no result. A cut that is not possible (`cuts.Cuts`) is made at the next place before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from stator.guards.guard import GlobalState
from stator.pytorch import internals
from stator.pytorch.distributed.operators import in_a_group

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedValue

__all__ = ["bounds", "buckets_of"]


class Buckets(NamedTuple):
    """What the DDP whose forward pass runs makes of the parameters of its module.

    Attributes:
        limits: bytes of the buckets in the order in which they are sent; the last holds for all that follow.
        ignored: the parameters that it leaves alone, by `id`.
    """

    limits: tuple[int, ...]
    ignored: frozenset[int]


def buckets_of(recorder: Recorder) -> Buckets | None:
    """Those of the DDP whose forward pass this is; None: there is no such, or it need not be known.

    Whether there is one is guarded where there are processes to communicate with.
    """
    if not _may_communicate(recorder):
        return None
    found = _active()
    recorder.extra_guards.append(GlobalState(_Unchanged(found), "DDP is at work as it was"))
    return found


def _may_communicate(recorder: Recorder) -> bool:
    if recorder.keeps_order or not recorder.trace.config.optimize_ddp or not recorder.state.entry[0]:
        return False  # each operation has its own backward pass; nobody wants it; there is none
    return in_a_group()


def _active() -> Buckets | None:
    ddp = internals.active_ddp()
    if ddp is None:
        return None
    limits = getattr(ddp, "bucket_bytes_cap_list", None) or [ddp.bucket_bytes_cap]
    if ddp.bucket_bytes_cap_default:
        limits = [min(internals.first_bucket, limits[0]), *limits]
    names = ddp.parameters_to_ignore
    ignored = [id(p) for name, p in ddp.module.named_parameters() if name in names] if names else []
    return Buckets(tuple(limits), frozenset(ignored))


class _Unchanged:
    """Whether the same holds of DDP."""

    def __init__(self, found: Buckets | None) -> None:
        self.found = found

    def __call__(self) -> bool:
        return _active() == self.found


def bounds(
    buckets: Buckets, nodes: list[torch.fx.Node], inputs: Iterable[TracedValue], allowed: Callable[[int], bool]
) -> list[int]:
    """Where to cut: the positions in `nodes` before which a piece begins, but for the first.

    Args:
        nodes: the operations of the graph, in order.
        allowed: whether a cut before the node at this position is possible.
    """
    first_uses = _first_uses(buckets, nodes, inputs)
    limits = iter(buckets.limits)
    limit, size = next(limits), 0
    found: list[int] = []
    # Before the first use of any parameter there is nothing to wait for.
    for position in range(len(nodes) - 1, min(first_uses, default=len(nodes)), -1):
        size += first_uses.get(position, 0)
        if size >= limit and allowed(position):
            found.append(position)
            limit, size = next(limits, limit), 0
    return found[::-1]


def _first_uses(buckets: Buckets, nodes: list[torch.fx.Node], inputs: Iterable[TracedValue]) -> dict[int, int]:
    """The bytes of gradients that are complete when the backward pass has come to the node at a position."""
    place = {node: position for position, node in enumerate(nodes)}
    found: dict[int, int] = {}
    for value in inputs:
        if not _is_reduced(buckets, value):
            continue
        uses = [place[user] for user in value.node.users if user in place]
        if uses:
            found[min(uses)] = found.get(min(uses), 0) + _bytes(value)
    return found


def _is_reduced(buckets: Buckets, value: Any) -> bool:
    is_parameter = value.host is not None and issubclass(value.cls, torch.nn.Parameter)
    return is_parameter and value.requires_grad and id(value.host) not in buckets.ignored


def _bytes(value: Any) -> int:
    """Those of a parameter; 0 if its sizes are symbols."""
    count = value.fake.numel()
    return count * value.fake.element_size() if isinstance(count, int) else 0
