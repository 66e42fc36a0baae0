"""What the code finds when it runs again, as far as its trace shows: what is another then becomes a symbol at once.

    self.steps += 1                                  an attribute that the program assigns
    while not done: tokens = torch.cat(...)          a variable with which a loop goes on behind a graph break

The entry for the numbers of this call would be of no use in the next one. So the frame is traced again, before the
backend is given a graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.guards.source import CallSource, LocalSource
from stator.models.containers.mutable_sequence import MutableSequence
from stator.models.containers.sequence import Sequence
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.shapes import dynamism
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.signals import DoFirst

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stator.guards.source import Source
    from stator.pytorch.interfaces import Recorder
    from stator.space.value import Value

__all__ = ["look_ahead"]

_WHAT = "what varies is a symbol"


def look_ahead(recorder: Recorder) -> None:
    """Begin again, once, if the code is known to find other sizes or numbers the next time."""
    trace = recorder.trace
    if _WHAT in trace.done_first or trace.dynamic is False or not trace.config.automatic_dynamic:
        return
    others = [_varies(recorder, source, value) for source, value in _next(recorder)]
    if True in others:
        raise DoFirst(_WHAT)


def _next(recorder: Recorder) -> Iterator[tuple[Source, Value]]:
    """What the code will find, and where."""
    effects = recorder.trace.effects
    yield from effects.assigned.items()
    for value in effects.changed():
        if isinstance(value, MutableSequence) and value.source is not None:
            yield value.source, value
    if recorder.goes_round:
        values = recorder.resumed[-1].locals
        for place, name in enumerate(recorder.trace.root.code.co_varnames[: len(recorder.trace.root.args)]):
            if name in values:
                yield LocalSource(place, name), values[name]


def _varies(recorder: Recorder, source: Source, value: Value) -> bool:
    """Whether the trace has taken for good what will be another; remembers that it varies."""
    state = recorder.trace.region_state
    if isinstance(value, Sequence) and (value.source is None or value.changed):
        count, items = value.left_with(source)
        others = [_varies(recorder, place, item) for place, item in items]
        return dynamism.note_number(state, CallSource(value.kind.__len__, source, "len"), count) or True in others
    if value.lazy or value.source is not None:
        return False
    if isinstance(value, TensorValue):
        meta = value.meta  # a fake tensor is made by running all operations so far
        shape, stride = (value.fake.shape, value.fake.stride()) if meta is None else (meta.shape, meta.stride)
        return dynamism.note_tensor(state, source, _hints(shape), _hints(stride))
    return value.constant and dynamism.note_number(state, source, value.host)


def _hints(numbers: torch.Size) -> tuple[int, ...]:
    """The numbers in this call; -1 for one that is known when the graph has run."""
    return tuple(-1 if hint is None else hint for hint in map(hint_of, numbers))
