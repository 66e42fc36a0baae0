"""The text of values: the part of the space that formats and shows them."""

from __future__ import annotations

from typing import Any

from stator.models.text.repr_ import repr_of, str_of
from stator.models.text.str_format import CONVERSIONS, format_value, text_of
from stator.space.deferred import joined
from stator.space.space import Space
from stator.space.value import Value


class Text(Space):
    """Part of the space: repr, str, format, f-strings."""

    def repr(self, value: Value) -> Value:
        """`repr(value)`."""
        return repr_of(self, value)

    def format_value(self, value: Value, conversion: Any, spec: Value | None) -> Value:
        """`f"{value!conversion:spec}"`."""
        return format_value(self, value, conversion, spec)

    def convert_value(self, value: Value, conversion: Any) -> Value:
        """`value!conversion` in an f-string, by the number that the bytecode has."""
        return CONVERSIONS[conversion](self, value)

    def join_strings(self, parts: list[Value]) -> Value:
        """`"".join(parts)` of what formatting gave: str or instances of its subclasses."""
        return joined(parts, lambda part: text_of(self, part, "str.join"))

    # Last: what follows could not name the type.
    def str(self, value: Value) -> Value:
        """`str(value)`."""
        return str_of(self, value)
