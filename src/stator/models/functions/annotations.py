"""Annotations that a function gives when they are first asked for (PEP 649)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from stator.space.space import Space

__all__ = ["check_annotate", "evaluated"]


def evaluated(space: Space, annotate: Value | None) -> Value:
    """The dict that `__annotate__` gives for the values themselves; an empty one where it is None."""
    if annotate is None or space.special(annotate.force(), "__call__") is None:
        return space.new_dict([])
    found = space.call(annotate, [Constant(1)], {}).force()
    if not found.isa(dict):
        raise space.error(TypeError, f"__annotate__ returned non-dict of type '{found.type_name(space)}'")
    return found


def check_annotate(space: Space, value: Value) -> None:
    """What `__annotate__` may be set to."""
    if value.force().cls is not type(None) and space.special(value.force(), "__call__") is None:
        raise space.error(TypeError, "__annotate__ must be callable or None")
