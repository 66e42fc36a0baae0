"""`functools.cached_property` of 3.11, which takes a lock: traced as it is from 3.12 on, where the lock is gone.

The lock only kept two threads from computing the same value twice.
"""

from __future__ import annotations

import functools
from typing import Any

from stator.host.version_facts import CACHED_PROPERTIES_LOCK
from stator.space.protocol import register
from stator.space.space import Space
from stator.space.value import Value

_MISSING = object()


def cached(self: Any, instance: Any, owner: Any = None) -> Any:
    """`cached_property.__get__`."""
    if instance is None:
        return self
    if self.attrname is None:
        raise TypeError("Cannot use cached_property instance without calling __set_name__ on it.")
    try:
        cache = instance.__dict__
    except AttributeError:
        msg = f"No '__dict__' attribute on {type(instance).__name__!r} instance to cache {self.attrname!r} property."
        raise TypeError(msg) from None
    val = cache.get(self.attrname, _MISSING)
    if val is _MISSING:
        val = self.func(instance)
        try:
            cache[self.attrname] = val
        except TypeError:
            msg = (
                f"The '__dict__' attribute on {type(instance).__name__!r} instance does not support item assignment "
                f"for caching {self.attrname!r} property."
            )
            raise TypeError(msg) from None
    return val


def _model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return space.call(space.existing(cached), args, kwargs)


if CACHED_PROPERTIES_LOCK:
    register(functools.cached_property.__get__, _model)
