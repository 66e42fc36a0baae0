"""Text from values, as opcodes and models ask for it."""

from __future__ import annotations

from typing import Any

from stator.objects.pending import joined
from stator.objects.repr_ import repr_of, str_of
from stator.objects.space import Space
from stator.objects.str_format import CONVERSIONS, format_value, text_of
from stator.objects.value import Value


class Text(Space):
    """Part of the space: repr, str, formatting and joining of strings."""

    def repr(self, value: Value) -> Value:
        """`repr(value)`."""
        return repr_of(self, value)

    def str(self, value: Value) -> Value:
        """`str(value)`."""
        return str_of(self, value)

    def format_value(self, value: Value, conversion: Any, spec: Value | None) -> Value:
        """`f"{value!conversion:spec}"`."""
        return format_value(self, value, conversion, spec)

    def convert_value(self, value: Value, conversion: Any) -> Value:
        """`value!conversion` in an f-string, by the number that the bytecode has."""
        return CONVERSIONS[conversion](self, value)

    def join_strings(self, parts: list[Value]) -> Value:
        """`"".join(parts)` of what formatting gave: str or instances of its subclasses."""
        return joined(parts, lambda part: text_of(self, part, "str.join"))
