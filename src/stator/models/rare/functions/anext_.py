"""`aiter` and `anext`: what `Python/bltinmodule.c` and `Objects/iterobject.c` make of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stator.models.functions.generator import awaitable
from stator.models.functions.suspendable import AwaitableIterator, stop_with
from stator.space.operands import call_slot
from stator.space.protocol import builtin, models
from stator.space.space import Space
from stator.space.value import Raised, Value


async def _nothing() -> Any:
    yield


_probe: Any = anext(_nothing(), None)
_ANEXT_AWAITABLE: Any = type(_probe)
_probe.close()


@builtin(aiter)
def aiter_of(space: Space, value: Value, /) -> Value:
    iterator = call_slot(space, value, "__aiter__", "'%T' object is not an async iterable")
    if space.special(iterator, "__anext__") is None:
        raise space.error(TypeError, f"aiter() returned not an async iterator of type '{iterator.type_name(space)}'")
    return iterator


@builtin(anext)
def anext_of(space: Space, iterator: Value, default: Value | None = None, /) -> Value:
    found = call_slot(space, iterator, "__anext__", "'%T' object is not an async iterator")
    return found if default is None else AnextAwaitable(found, default)


@models(_ANEXT_AWAITABLE)
class AnextAwaitable(AwaitableIterator):
    """`anext(iterator, default)`: the end of the iterator gives the default."""

    __slots__ = ("default", "wrapped")

    def __init__(self, wrapped: Value, default: Value) -> None:
        super().__init__(_ANEXT_AWAITABLE)
        self.wrapped = wrapped
        self.default = default

    def tp_next(self, space: Space) -> Value:
        return self._or_default(space, space.advance)

    def send(self, space: Space, value: Value, /) -> Value:
        return self._or_default(space, lambda waiting: space.call_method(waiting, "send", value))

    def throw(self, space: Space, *args: Value) -> Value:
        return self._or_default(space, lambda waiting: space.call_method(waiting, "throw", *args))

    def close(self, space: Space) -> Value:
        return self._or_default(space, lambda waiting: space.call_method(waiting, "close"))

    def _or_default(self, space: Space, ask: Callable[[Value], Value]) -> Value:
        waiting = awaitable(space, self.wrapped)
        try:
            return ask(waiting)
        except Raised as e:
            if not e.matches(StopAsyncIteration):
                raise
        raise stop_with(space, self.default)


__all__ = ["AnextAwaitable"]
