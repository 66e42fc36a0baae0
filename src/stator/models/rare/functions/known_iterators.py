"""Iterators over what is all known when they are made: `co_positions()`, `co_lines()`, the parser of templates."""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
import types
from collections.abc import Callable, Iterable

from stator.models.iterators.iterator import IteratorValue, advanced, iterator_type
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import known_host
from stator.space.protocol import bad_call, builtin, register
from stator.space.space import Space
from stator.space.value import Constant, Raised, Value

_METHODS = (types.CodeType.co_positions, types.CodeType.co_lines)
_TEMPLATE = type(_string.formatter_parser(""))
_FIELD = type(_string.formatter_field_name_split("a")[1])


@iterator_type(*(type(method(known_host.__code__)) for method in _METHODS), _TEMPLATE, _FIELD)
class KnownIterator(IteratorValue):
    """An iterator over host objects that have all been found; then comes the error that ended them, if one did."""

    __slots__ = ("error", "expression", "found", "taken")

    def __init__(self, cls: type, found: Iterable[Host], expression: Callable[[Writer], str] | None = None) -> None:
        super().__init__(cls)
        self.taken = 0
        self.found: list[Host] = []
        self.error: Exception | None = None
        #: the text that makes it, for generated code
        self.expression = expression
        try:
            self.found.extend(found)
        except ValueError as e:
            self.error = e

    def produce(self, space: Space) -> Value | None:
        if self.taken < len(self.found):
            space.mark_mutated(self)
            self.taken += 1
            return space.fresh(self.found[self.taken - 1])
        if self.error is not None:
            raise Raised(space.exception(self.error))
        return None

    def rebuilt(self, writer: Writer) -> str:
        if self.expression is None:
            return super().rebuilt(writer)
        return advanced(writer, self.expression(writer), self.taken)


def _model(method: Host) -> None:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 1 or kwargs or args[0].force().cls is not types.CodeType:
            return space.unmodelled(method, args, kwargs)
        code = known_host(space, args[0], method.__name__)
        found = method(code)
        return KnownIterator(type(found), found, lambda writer: f"{writer.const(method)}({writer.const(code)})")

    register(method, handler)


for _method in _METHODS:
    _model(_method)


def _parsed(space: Space, parser: Host, text: Value) -> Host:
    if not text.isa(str):
        bad_call(space, parser, [text], {})
    return parser(known_host(space, text, f"_string.{parser.__name__}"))


@builtin(_string.formatter_parser)
def formatter_parser(space: Space, template: Value, /) -> Value:
    return KnownIterator(_TEMPLATE, _parsed(space, _string.formatter_parser, template))


@builtin(_string.formatter_field_name_split)
def formatter_field_name_split(space: Space, name: Value, /) -> Value:
    first, rest = _parsed(space, _string.formatter_field_name_split, name)
    return space.new_tuple([Constant(first), KnownIterator(_FIELD, rest)])
