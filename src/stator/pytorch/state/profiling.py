"""Labels that a program puts on its parts for a profiler (`torch.profiler.record_function`).

A traced region is not profiled part by part, so a label that begins and ends in it leaves nothing behind. One whose
region spans a graph break begins, late, where generated code takes over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.state.contexts import OpenContext
from stator.space.protocol import NONE, models, register
from stator.space.value import Value

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.pytorch.types import Host
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["install"]


class ProfilerRecord(Value):
    """What entering `torch.profiler.record_function` gives."""

    __slots__ = ("args",)

    def __init__(self, args: list[Value]) -> None:
        self.cls = torch.ScriptObject
        self.source = None
        self.args = args

    def reconstruct(self, writer: Writer) -> str:
        parts = ", ".join(writer.expr(arg) for arg in self.args)
        return writer.assign("record", f"{writer.const(internals.record_begins)}({parts})")


def _begin_record(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return None if kwargs else ProfilerRecord(args)


def _end_record(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """One from before the trace ends after the graph."""
    if len(args) != 1:
        return None
    record = args[0].force()
    if not isinstance(record, ProfilerRecord):
        if record.source is None:
            return None
        space.trace.defer(internals.record_ends, [record])
    return NONE


@models(internals.FastRecord)
class FastRecord(OpenContext):
    """`torch._C._profiler._RecordFunctionFast(name, input_values, keyword_values)`: one object for many regions."""

    __slots__ = ("args", "host", "kwargs")

    def __init__(self, args: tuple[Value, ...], kwargs: dict[str, Value]) -> None:
        self.cls = internals.FastRecord
        self.source = None
        self.args = args
        self.kwargs = kwargs

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        made = cls((), {})
        made.host, made.source = host, source
        return made

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value | None:
        name = args[0] if args else kwargs.get("name")
        # The real one ends the process where this is no text.
        return None if name is None or name.force().cls is not str else FastRecord(args, kwargs)

    @staticmethod
    def tp_init(space: Space, /, *args: Value, **kwargs: Value) -> Value:
        return NONE

    def made(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        given = [writer.expr(arg) for arg in self.args]
        given += [f"{name}={writer.expr(arg)}" for name, arg in self.kwargs.items()]
        return f"{writer.const(self.cls)}({', '.join(given)})"

    def tp_enter(self, space: Space) -> Value:
        self.enter(space)
        return NONE

    def tp_exit(self, space: Space, *exc: Value) -> Value:
        if self in space.trace.recorder.state.open:
            self.leave(space)
        else:  # it was entered before the trace
            space.trace.defer(internals.FastRecord.__exit__, [self, *exc])
        return NONE


def install() -> None:
    """Register the models."""
    with torch.autograd.profiler.record_function("stator"):
        pass  # what it looks for and remembers when first entered is not to be found changed after a trace
    register(internals.record_begins, _begin_record)
    register(internals.record_ends, _end_record)
