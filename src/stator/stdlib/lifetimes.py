"""What shows when objects die and how they lie in memory: garbage collection, reference counts, sizes."""

from __future__ import annotations

import gc
import sys
import types
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.objects.protocol import builtin, register
from stator.objects.value import Known, Unsupported, Value

if TYPE_CHECKING:
    from stator.objects.space import Space


def _shows(host: Any) -> None:
    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Unsupported(errors.LifetimeObserved(f"{host.__module__}.{host.__name__}"))

    register(host, model)


for _host in (gc.collect, gc.get_objects, gc.get_referrers, gc.get_count, sys.getrefcount):
    _shows(_host)


@builtin(sys.getsizeof)
def getsizeof(space: Space, value: Value, default: Value | None = None, /) -> Value | None:
    """Left to the real function where that would see the very object that ordinary Python has."""
    value = value.force()
    if isinstance(value, Known) or (value.source is not None and not space.trace.effects.is_mutated(value)):
        return None
    if not isinstance(space.host_lookup(value.cls, "__sizeof__"), types.MethodDescriptorType):
        return None
    raise Unsupported(errors.MemoryObserved("sys.getsizeof", value.describe()))
