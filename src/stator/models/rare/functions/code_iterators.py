"""What a code object tells of its instructions, item by item: `co_positions()` and `co_lines()`."""

from __future__ import annotations

import types

from stator.models.iterators.iterator import IteratorValue, advanced, iterator_type
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import known_host
from stator.space.protocol import register
from stator.space.space import Space
from stator.space.value import Value

_METHODS = (types.CodeType.co_positions, types.CodeType.co_lines)


@iterator_type(*(type(method(known_host.__code__)) for method in _METHODS))
class CodeIterator(IteratorValue):
    """An iterator over what one of the methods says of a code object."""

    __slots__ = ("code", "index", "items", "method")

    def __init__(self, code: types.CodeType, method: Host) -> None:
        self.items = list(method(code))
        super().__init__(type(method(code)))
        self.code = code
        self.method = method
        self.index = 0

    def produce(self, space: Space) -> Value | None:
        if self.index >= len(self.items):
            return None
        space.mark_mutated(self)
        self.index += 1
        return space.fresh(self.items[self.index - 1])

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        return advanced(writer, f"{writer.const(self.method)}({writer.const(self.code)})", self.index)


def _model(method: Host) -> None:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 1 or kwargs or args[0].force().cls is not types.CodeType:
            return space.unmodelled(method, args, kwargs)
        return CodeIterator(known_host(space, args[0], method.__name__), method)

    register(method, handler)


for _method in _METHODS:
    _model(_method)
