"""From raw instructions with symbolic jumps and handlers to a code object; the library `bytecode` writes the tables."""

from __future__ import annotations

import dis
import itertools
import opcode
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import TYPE_CHECKING, NamedTuple

from .versions import current

if TYPE_CHECKING:
    from bytecode import ConcreteBytecode, ConcreteInstr
    from bytecode.concrete import ExceptionTableEntry
    from bytecode.instr import InstrLocation

Position = tuple[int | None, int | None, int | None, int | None]
"""Line, end line, column, end column, as in co_positions()."""


class Handler(NamedTuple):
    """Where an exception goes: an item, and what becomes of the stack."""

    target: Item
    depth: int
    push_lasti: bool


class Item:
    """One raw instruction to be laid out."""

    __slots__ = ("arg", "handler", "index", "position", "prefixes", "raw", "start", "target")

    def __init__(self, raw: str, arg: int, position: Position, index: int = -1) -> None:
        self.raw = raw
        self.arg = arg
        self.position = position
        self.index = index  # of the canonical instruction it stands for, or -1
        self.target: Item | None = None  # of a jump
        self.handler: Handler | None = None
        self.start = 0  # in code units
        self.prefixes = 0  # EXTENDED_ARGs


class Template(NamedTuple):
    """What the new code object has other than the code object it is made from."""

    params: int
    varnames: tuple[str, ...]
    cellvars: tuple[str, ...]
    freevars: tuple[str, ...]
    consts: tuple[object, ...]
    extra_stack: int


_BY_NAME: bool = isinstance(dis._inline_cache_entries, dict)  # type: ignore[attr-defined]
_VARIADIC = 0x04 | 0x08  # CO_VARARGS, CO_VARKEYWORDS


def _caches(raw: str) -> int:
    entries = dis._inline_cache_entries  # type: ignore[attr-defined]
    return int(entries.get(raw, 0) if _BY_NAME else entries[opcode.opmap[raw]])


def _has_argument(raw: str) -> bool:
    number = opcode.opmap[raw]
    has: list[int] | None = getattr(opcode, "hasarg", None)
    return number >= opcode.HAVE_ARGUMENT if has is None else number in has


def _end(item: Item) -> int:
    return item.start + item.prefixes + 1 + _caches(item.raw)


def lay_out(items: Sequence[Item]) -> None:
    """Places every item; an argument's size depends on places and places on sizes, which only grow."""
    if current.LOOKS_BEFORE_CALLS:
        _precede_first_handled(items)
    settled = False
    while not settled:
        settled = True
        place = 0
        for item in items:
            item.start = place
            place = _end(item)
        for item in items:
            if item.target is not None:
                item.arg = (item.target.start - _end(item)) * current.JUMPS[item.raw][1]
                if item.arg < 0:
                    raise ValueError(f"{item.raw} leads the wrong way")
            needed = max(0, (item.arg.bit_length() - 1) >> 3)
            if needed > item.prefixes:
                item.prefixes, settled = needed, False


def _precede_first_handled(items: Sequence[Item]) -> None:
    """Begins each range of the exception table one unit before its first instruction: with an EXTENDED_ARG of 0.

    A compiler's ranges begin with what pushes a call's operands; a continuation's may begin with the call itself.
    """
    for before, item in itertools.pairwise(items):
        if item.handler is not None and item.handler != before.handler:
            item.prefixes = max(item.prefixes, 1)


def _location(position: Position) -> InstrLocation:
    from bytecode.instr import InstrLocation

    line, end_line, column, end_column = position
    if line is None or end_line is None or column is None or end_column is None:
        return InstrLocation(line, None, None, None)
    if (end_line, end_column) < (line, column):
        return InstrLocation(line, None, None, None)
    if max(column, end_column) > 127:
        # The library puts these into single bytes, whose highest bit says that another entry begins.
        return InstrLocation(line, None, None, None)
    return InstrLocation(line, end_line, column, end_column)


def _instructions(items: Sequence[Item]) -> Iterator[ConcreteInstr]:
    from bytecode import ConcreteInstr

    known: dict[Position, tuple[InstrLocation, ConcreteInstr]] = {}
    for item in items:
        found = known.get(item.position)
        if found is None:
            where = _location(item.position)
            found = known[item.position] = where, ConcreteInstr("CACHE", 0, location=where)
        where, cache = found
        if _has_argument(item.raw):
            yield ConcreteInstr(item.raw, item.arg, location=where, extended_args=item.prefixes or None)
        else:
            yield from [ConcreteInstr("EXTENDED_ARG", 0, location=where)] * item.prefixes
            yield ConcreteInstr(item.raw, location=where)
        for _ in range(_caches(item.raw)):
            yield cache


def _exception_table(items: Sequence[Item]) -> list[ExceptionTableEntry]:
    from bytecode.concrete import ExceptionTableEntry

    table: list[ExceptionTableEntry] = []
    last: Handler | None = None
    for item in items:
        handler = item.handler
        if handler is not None and handler == last:
            table[-1].stop_offset = _end(item) - 1
        elif handler is not None:
            row = ExceptionTableEntry(
                item.start, _end(item) - 1, handler.target.start, handler.depth, handler.push_lasti
            )
            table.append(row)
        last = handler
    return table


def assemble(original: CodeType, items: Sequence[Item], template: Template) -> CodeType:
    """A code object like `original` with the given instructions and variables."""
    from bytecode import CompilerFlags, ConcreteBytecode

    lay_out(items)
    result: ConcreteBytecode = ConcreteBytecode(
        list(_instructions(items)),
        consts=template.consts,
        names=original.co_names,
        varnames=template.varnames,
        exception_table=_exception_table(items),
    )
    result.argcount = result.posonlyargcount = template.params
    result.flags = CompilerFlags(original.co_flags & ~_VARIADIC)
    result.name, result.qualname = original.co_name, original.co_qualname
    result.filename, result.first_lineno = original.co_filename, original.co_firstlineno
    result.cellvars, result.freevars = list(template.cellvars), list(template.freevars)
    return result.to_code(
        stacksize=original.co_stacksize + template.extra_stack,
        compute_exception_stack_depths=False,
    )
