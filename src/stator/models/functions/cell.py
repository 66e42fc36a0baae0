"""Cells: the variables that closures share."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from stator.guards.guard import Predicate
from stator.guards.source import CellContentsSource, Source
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import among
from stator.space.protocol import models
from stator.space.space import Space
from stator.space.value import Constant, ObjectValue, Value


@models(types.CellType)
class CellValue(ObjectValue):
    """A cell: `contents` is None while the variable is unbound."""

    __slots__ = ("contents",)
    FIELDS = {"cell_contents": lambda self, space: self.filled(space)}

    def __init__(self, contents: Value | None = None) -> None:
        super().__init__(types.CellType)
        self.contents = contents

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source, contents_source: Source | None = None) -> CellValue:
        self = cls()
        self.host, self.source = host, source
        try:
            contents = host.cell_contents
        except ValueError:
            space.trace.guard(Predicate((source,), is_empty, "cell is unbound"))
        else:
            self.contents = space.wrap(contents, contents_source or CellContentsSource(source))
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> CellValue:
        return cls(space.fresh(host.cell_contents))

    @staticmethod
    def tp_new(space: Space, cls: Value, contents: Value | None = None, /) -> Value:
        return CellValue(contents)

    @among(types.CellType)
    def tp_richcompare(self, space: Space, symbol: str, other: CellValue) -> Value:
        """`cell_richcompare`: by the contents; an empty one comes first."""
        if self.contents is not None and other.contents is not None:
            return space.compare(symbol, self.contents, other.contents)
        full = [Constant(cell.contents is not None) for cell in (self, other)]
        return space.compare(symbol, *full)

    def set(self, space: Space, contents: Value | None) -> None:
        """Bind or unbind the variable."""
        space.mark_mutated(self)
        self.contents = contents

    def held(self) -> Iterable[Value]:
        return () if self.contents is None else (self.contents,)

    def filled(self, space: Space) -> Value:
        """What the variable is bound to."""
        if self.contents is None:
            raise space.error(ValueError, "Cell is empty")
        return self.contents

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        if name != "cell_contents":
            return False
        self.set(space, value)
        return True

    def shell(self, writer: Writer) -> str:
        return f"{writer.const(types.CellType)}()"

    def rebuilt(self, writer: Writer) -> str:
        # Created before its contents, because a function in the cell may close over the cell.
        name = writer.early(self)
        self.fill(writer)
        return name

    def fill(self, writer: Writer) -> None:
        """Emit the contents of a cell that has been created."""
        if self.contents is not None:
            contents = writer.expr(self.contents)
            writer.line(f"{writer.expr(self)}.cell_contents = {contents}")

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        name = writer.source(self.source)
        if self.contents is None:
            return [f"del {name}.cell_contents"]
        return [f"{name}.cell_contents = {writer.expr(self.contents)}"]


def is_empty(cell: Any) -> bool:
    """Whether the cell is unbound."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False
