"""`torch.fx.traceback.annotate`: what the program says of the nodes made in a block is in their `meta`, under "custom".

torch's function keeps it in a dict of its module, which each block changes and puts back; here it goes with the graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch.fx.traceback

from stator.space.protocol import NONE, builtin, register
from stator.space.value import NotKnown, Value

if TYPE_CHECKING:
    from stator.space.space import Space


def _annotate(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`annotate(annotation_dict)`."""
    if len(args) != 1 or kwargs or space.known(args[0].force()) is NotKnown:
        return None
    return space.call(space.existing(_annotated), args, {})


@contextlib.contextmanager
def _annotated(annotations: dict[str, object]) -> Iterator[None]:
    """Python that is traced."""
    _begin(annotations)
    try:
        yield
    finally:
        _end()


def _begin(annotations: dict[str, object]) -> None:
    """Where a break has ended the trace that the block is in, nothing: there are no nodes."""


def _end() -> None:
    """The same."""


@builtin(_begin)
def _begin_in_trace(space: Space, annotations: Value, /) -> Value:
    found = space.trace.recorder.nodes.annotations
    found.append({**(found[-1] if found else {}), **space.known(annotations.force())})
    return NONE


@builtin(_end)
def _end_in_trace(space: Space) -> Value:
    found = space.trace.recorder.nodes.annotations
    if found:  # else the block has begun before a break
        found.pop()
    return NONE


def install() -> None:
    """Register the model."""
    register(torch.fx.traceback.annotate, _annotate)
