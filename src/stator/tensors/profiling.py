"""`record_function`: labels for the profiler, modelled as a whole. One that ends in the trace leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import profiler

from stator.objects.protocol import NONE, TRUE, register
from stator.objects.value import Value
from stator.tensors.contexts import ProfilerRecord

if TYPE_CHECKING:
    from stator.objects.space import Space

_ops: Any = torch.ops.profiler
_record: Any = profiler.record_function


def _init(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`record_function.__init__`."""
    if not 2 <= len(args) <= 3 or kwargs:
        return None
    self, name, *rest = args
    fields = {"name": name, "args": rest[0] if rest else NONE, "run_callbacks_on_exit": TRUE}
    for field, value in (fields | {"record": NONE, "_cupti_monitor_external_id": NONE}).items():
        space.setattr(self, field, value)
    return NONE


def _enter(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`record_function.__enter__`."""
    self = args[0].force()
    if self.source is not None or profiler._maybe_cupti_monitor() is not None:
        return None
    space.setattr(self, "record", ProfilerRecord([space.getattr(self, "name"), space.getattr(self, "args")]))
    return self


def _exit(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`record_function.__exit__`."""
    self = args[0].force()
    if space.known(space.getattr(self, "run_callbacks_on_exit").force()) is not True:
        return None
    if space.known(space.getattr(self, "_cupti_monitor_external_id").force()) is not None:
        return None
    record = space.getattr(self, "record").force()
    if record.source is not None:
        space.trace.defer(_ops._record_function_exit._RecordFunction, [record])
    return NONE


def install() -> None:
    """Register the models."""
    register(_record.__init__, _init)
    register(_record.__enter__, _enter)
    register(_record.__exit__, _exit)
