"""Any supported CPython version's bytecode, decoded to the canonical instruction set."""

from __future__ import annotations

import dis
import inspect
import opcode
import weakref
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

from .by_code import ByCode
from .canonical import Argument
from .versions import current
from .versions.common import Tables, local_slots


class DecodeError(Exception):
    """The code object holds something no compiler of a supported version emits."""


_SUSPENDABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def argument_count(code: CodeType) -> int:
    """How many slots of a frame are arguments, `*args` and `**kwargs` among them."""
    return code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)


def is_suspendable(code: CodeType) -> bool:
    """Whether a call of it makes a generator, a coroutine or an asynchronous generator, and runs nothing yet."""
    return bool(code.co_flags & _SUSPENDABLE)


class ExceptionEntry(NamedTuple):
    """Where an exception goes: unwind the stack to `depth`, push the lasti if asked, push the exception, go on."""

    target: int
    depth: int
    push_lasti: bool


class Instr:
    """One canonical instruction; its row in `canonical.CANONICAL` says what it does and what `arg` is."""

    __slots__ = ("arg", "handler", "index", "line", "offset", "op", "raw")

    def __init__(
        self,
        op: str,
        arg: Argument,
        index: int,
        offset: int,
        line: int | None,
        handler: ExceptionEntry | None,
        raw: str,
    ) -> None:
        self.op = op
        self.arg = arg
        self.index = index
        self.offset = offset
        self.line = line
        self.handler = handler
        self.raw = raw

    def __repr__(self) -> str:
        return f"{self.index} {self.op}" if self.arg is None else f"{self.index} {self.op} {self.arg!r}"


class Decoded:
    """A code object's canonical instructions and the names of its variables."""

    __slots__ = ("__weakref__", "_code", "_index_at", "cellvars", "freevars", "instrs", "varnames")

    def __init__(self, code: CodeType, instrs: tuple[Instr, ...], index_at: list[int]) -> None:
        self._code = weakref.ref(code)
        self._index_at = index_at
        self.instrs = instrs
        slots, cells = local_slots(code)
        self.varnames = tuple(name for name, cell in zip(slots, cells, strict=True) if not cell)
        """Plain locals, arguments first."""
        self.cellvars = code.co_cellvars
        self.freevars = slots[len(slots) - len(code.co_freevars) :]
        """As co_freevars, but a name that a cell or local slot also bears is made unique."""

    @property
    def code(self) -> CodeType:
        """The code object; held weakly, so that a decoded code object can die."""
        code = self._code()
        if code is None:
            raise ReferenceError("the code object is gone")
        return code

    def index_of_offset(self, offset: int) -> int:
        """The instruction at a byte offset (f_lasti); what is skipped counts as the next, a cache as its owner."""
        return self._index_at[offset >> 1]


class Piece(NamedTuple):
    """One simple raw instruction: a real one, or one of those a super-instruction stands for."""

    raw: str
    arg: int
    start: int  # of its EXTENDED_ARGs
    offset: int
    end: int  # after its caches
    original: str  # raw name in the code object
    detached: bool  # END_FOR and what belongs to it: only an exhausted FOR_ITER steps over it


_EXTENDED_ARG = opcode.opmap["EXTENDED_ARG"]
_BY_NAME: bool = isinstance(dis._inline_cache_entries, dict)  # type: ignore[attr-defined]
_CACHES: list[int] = [
    dis._inline_cache_entries.get(opcode.opname[op], 0) if _BY_NAME else dis._inline_cache_entries[op]  # type: ignore[attr-defined]
    for op in range(256)
]


def pieces(code: CodeType) -> Iterator[Piece]:
    """The simple raw instructions of a code object, in order."""
    raw_code = code.co_code
    names, split = opcode.opname, current.SPLIT
    arg = start = offset = detached = 0
    extended = False
    while offset < len(raw_code):
        op = raw_code[offset]
        arg = (arg << 8) | raw_code[offset + 1]
        if not extended:
            start = offset
        extended = op == _EXTENDED_ARG
        if extended:
            offset += 2
            continue
        raw = names[op]
        end = offset + 2 + 2 * _CACHES[op]
        if raw == "END_FOR":
            detached = current.END_FOR_LENGTH
        splitter = split.get(raw)
        if splitter is None:
            yield Piece(raw, arg, start, offset, end, raw, detached > 0)
        else:
            for simple, simple_arg in splitter(arg):
                yield Piece(simple, simple_arg, start, offset, end, raw, detached > 0)
        if detached:
            detached -= 1
        arg, offset = 0, end


class RawEntry(NamedTuple):
    """One row of the exception table, in byte offsets; `end` is exclusive."""

    start: int
    end: int
    target: int
    depth: int
    push_lasti: bool


def exception_table(code: CodeType) -> list[RawEntry]:
    """The rows of co_exceptiontable."""
    numbers: list[int] = []
    value = 0
    for byte in code.co_exceptiontable:
        value = (value << 6) | (byte & 63)
        if not byte & 64:
            numbers.append(value)
            value = 0
    table = []
    for start, length, target, depth_lasti in zip(*[iter(numbers)] * 4, strict=True):
        table.append(RawEntry(2 * start, 2 * (start + length), 2 * target, depth_lasti >> 1, bool(depth_lasti & 1)))
    return table


def _lines(code: CodeType, units: int) -> list[int | None]:
    lines: list[int | None] = [None] * units
    for start, end, line in code.co_lines():
        lines[start >> 1 : end >> 1] = [line] * ((end - start) >> 1)
    return lines


def _resolve_jumps(jumps: list[Instr], code: CodeType, index_at: list[int]) -> None:
    """Replaces the byte offsets that jumps carry by instruction indexes."""
    for instr in jumps:
        target = instr.arg
        if instr.op == "SEND" and current.SEND_SKIPS_END:
            reached = opcode.opname[code.co_code[target]]
            if reached != "END_SEND":
                raise DecodeError(f"SEND leads to {reached}, not to END_SEND")
            target += 2
        instr.arg = index_at[target >> 1]


def _decode(code: CodeType) -> Decoded:
    units = len(code.co_code) >> 1
    tables, lines = Tables(code), _lines(code, units)
    index_at = [-1] * (units + 1)
    instrs: list[Instr] = []
    jumping: list[Instr] = []
    for raw, raw_arg, start, offset, end, original, detached in pieces(code):
        unit = offset >> 1
        if index_at[start >> 1] < 0:
            index_at[start >> 1] = index_at[unit] = len(instrs)
        if detached:
            continue
        jump = current.JUMPS.get(raw)
        if jump is None:
            converter = current.CONVERT.get(raw)
            if converter is None:
                raise DecodeError(f"unknown instruction {raw}")
            pair = converter(tables, raw_arg)
            if pair is None:
                continue
        else:
            pair = jump[0], end + 2 * jump[1] * raw_arg
        instr = Instr(pair[0], pair[1], len(instrs), offset, lines[unit], None, original)
        instrs.append(instr)
        if jump is not None:
            jumping.append(instr)
        caches = (end >> 1) - unit - 1
        if caches:
            index_at[unit + 1 : end >> 1] = [instr.index] * caches
    index_at[units] = len(instrs)
    for unit in range(units - 1, -1, -1):
        if index_at[unit] < 0:
            index_at[unit] = index_at[unit + 1]
    _resolve_jumps(jumping, code, index_at)
    if code.co_exceptiontable:
        handlers = _handlers(code, index_at, units)
        for instr in instrs:
            instr.handler = handlers[instr.offset >> 1]
    return Decoded(code, tuple(instrs), index_at)


def _handlers(code: CodeType, index_at: list[int], units: int) -> list[ExceptionEntry | None]:
    handlers: list[ExceptionEntry | None] = [None] * units
    for row in exception_table(code):
        entry = ExceptionEntry(index_at[row.target >> 1], row.depth, row.push_lasti)
        handlers[row.start >> 1 : row.end >> 1] = [entry] * ((row.end - row.start) >> 1)
    return handlers


_decoded = ByCode[Decoded]()


def decode(code: CodeType) -> Decoded:
    """The canonical form of a code object, made once as long as the code object lives."""
    return _decoded.of(code, _decode)
