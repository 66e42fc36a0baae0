"""The parser of templates for `string.Formatter`."""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
from typing import Any

from stator.models.iterators.iterator import IteratorValue, iterator_type
from stator.space.operands import known_host
from stator.space.protocol import bad_call, builtin
from stator.space.space import Space
from stator.space.value import Constant, Raised, Value


class Parsed(IteratorValue):
    """An iterator over what `_string` has found, all at once."""

    __slots__ = ("error", "index", "parts")

    def __init__(self, cls: type, found: Any) -> None:
        super().__init__(cls)
        self.index = 0
        self.parts: list[Any] = []
        self.error: Exception | None = None
        try:
            self.parts.extend(found)
        except ValueError as e:
            self.error = e

    def produce(self, space: Space) -> Value | None:
        if self.index < len(self.parts):
            space.mark_mutated(self)
            self.index += 1
            return space.fresh(self.parts[self.index - 1])
        if self.error is not None:
            raise Raised(space.exception(self.error))
        return None


@iterator_type(type(_string.formatter_parser("")))
class ParsedTemplate(Parsed):
    """`_string.formatter_parser(template)`."""

    __slots__ = ()


@iterator_type(type(_string.formatter_field_name_split("a")[1]))
class ParsedField(Parsed):
    """The second result of `_string.formatter_field_name_split(name)`."""

    __slots__ = ()


def _parsed(space: Space, parser: Any, text: Value) -> Any:
    if not text.isa(str):
        bad_call(space, parser, [text], {})
    return parser(known_host(space, text, f"_string.{parser.__name__}"))


@builtin(_string.formatter_parser)
def formatter_parser(space: Space, template: Value, /) -> Value:
    return ParsedTemplate(type(_string.formatter_parser("")), _parsed(space, _string.formatter_parser, template))


@builtin(_string.formatter_field_name_split)
def formatter_field_name_split(space: Space, name: Value, /) -> Value:
    first, rest = _parsed(space, _string.formatter_field_name_split, name)
    return space.new_tuple([Constant(first), ParsedField(type(rest), rest)])
