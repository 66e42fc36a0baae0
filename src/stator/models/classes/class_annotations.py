"""Annotations of a class that the traced program makes, and the dict that its annotation scopes look into.

From 3.14 on the compiler makes a function of a class's annotations, `__annotate_func__` in its dict, which is called
when they are first asked for; its result is kept there as `__annotations_cache__` (PEP 649).
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from stator.models.functions.annotations import check_annotate, evaluated
from stator.models.functions.cell import CellValue
from stator.space.attributes import MISSING
from stator.space.protocol import NONE
from stator.space.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["ClassDict", "annotate_of", "annotations_of", "dict_cell", "set_annotate", "set_annotations"]


class ClassDict(Value):
    """The dict of a class of the traced program, in the cell `__classdict__` of functions inside of it."""

    __slots__ = ("of",)

    def __init__(self, of: Value) -> None:
        self.cls = dict
        self.source = None
        self.of = of

    def find(self, name: str) -> Value | None:
        """What the class itself has of that name."""
        found: Value | None = self.of.recipe.attributes.get(name)  # type: ignore[attr-defined]
        return found

    def held(self) -> Iterable[Value]:
        return (self.of,)

    def reconstruct(self, writer: Writer) -> str:
        return writer.assign("namespace", f"{writer.const(_own_dict)}({writer.expr(self.of)})")


def _own_dict(cls: type) -> Any:
    """The dict itself, and not the view of it that `__dict__` gives."""
    return gc.get_referents(vars(cls))[0]


def dict_cell(space: Space, value: Value) -> CellValue:
    """The cell that a class body gives `type.__new__` to put the dict into."""
    if isinstance(value, CellValue):
        return value
    text = f"__classdictcell__ must be a nonlocal cell, not <class '{value.type_name(space)}'>"
    raise space.error(TypeError, text)


def _as_attribute(space: Space, cls: type, value: Value) -> Value:
    if space.host_lookup(value.force().cls, "__get__") is MISSING:
        return value
    return space.descr_get(value, None, cls)


def annotate_of(space: Space, recipe: Any) -> Value:
    """`type_get_annotate`."""
    for name in ("__annotate__", "__annotate_func__"):
        if name in recipe.attributes:
            return _as_attribute(space, recipe.skeleton, recipe.attributes[name])
    recipe.assign(space, "__annotate_func__", NONE)
    return NONE


def annotations_of(space: Space, recipe: Any) -> Value:
    """`type_get_annotations`."""
    for name in ("__annotations__", "__annotations_cache__"):
        if name in recipe.attributes:
            return _as_attribute(space, recipe.skeleton, recipe.attributes[name])
    found = evaluated(space, space.getattr(recipe.value, "__annotate__"))
    recipe.assign(space, "__annotations_cache__", found)
    return found


def set_annotate(space: Space, recipe: Any, value: Value) -> None:
    """`type_set_annotate`."""
    check_annotate(space, value)
    recipe.assign(space, "__annotate_func__", value)
    if value.force().cls is not type(None) and "__annotations_cache__" in recipe.attributes:
        recipe.assign(space, "__annotations_cache__", None)


def set_annotations(space: Space, recipe: Any, value: Value) -> None:
    """`type_set_annotations`."""
    own = "__annotations__" in recipe.attributes
    recipe.assign(space, "__annotations__" if own else "__annotations_cache__", value)
    for name in ("__annotate_func__", "__annotate__"):
        if name in recipe.attributes:
            recipe.assign(space, name, None)
