"""What shows when objects die: garbage collection, reference counts."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.objects.protocol import register
from stator.objects.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.objects.space import Space


def _shows(host: Any) -> None:
    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Unsupported(errors.LifetimeObserved(f"{host.__module__}.{host.__name__}"))

    register(host, model)


for _host in (gc.collect, gc.get_objects, gc.get_referrers, gc.get_count, sys.getrefcount):
    _shows(_host)
