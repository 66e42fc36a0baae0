"""`record_function`: labels for the profiler. One that begins and ends inside a trace leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import profiler

from stator.objects.protocol import NONE, register
from stator.objects.value import Value

if TYPE_CHECKING:
    from stator.objects.space import Space
    from stator.residual.writer import Writer

_ops: Any = torch.ops.profiler


class RecordValue(Value):
    """An event begun by the traced program. It is begun for real only if the program is left before its end."""

    __slots__ = ("args", "name")

    def __init__(self, name: Value, args: Value) -> None:
        self.cls = torch.ScriptObject
        self.source = None
        self.name = name
        self.args = args

    def reconstruct(self, writer: Writer) -> str:
        parts = f"{writer.expr(self.name)}, {writer.expr(self.args)}"
        return writer.assign("record", f"{writer.const(_ops._record_function_enter_new)}({parts})")


def _enter(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`record_function.__enter__`."""
    self = args[0].force()
    if self.source is not None or profiler._maybe_cupti_monitor() is not None:
        return None
    space.setattr(self, "record", RecordValue(space.getattr(self, "name"), space.getattr(self, "args")))
    return self


def _exit(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`record_function.__exit__`."""
    self = args[0].force()
    if space.known(space.getattr(self, "run_callbacks_on_exit")) is not True:
        return None
    if space.known(space.getattr(self, "_cupti_monitor_external_id").force()) is not None:
        return None
    record = space.getattr(self, "record").force()
    if record.source is not None:
        space.trace.defer(_ops._record_function_exit._RecordFunction, [record])
    return NONE


def install() -> None:
    """Register the models."""
    register(profiler.record_function.__enter__, _enter)
    register(profiler.record_function.__exit__, _exit)
