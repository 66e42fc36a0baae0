"""What the supported CPython versions have in common: the tables a version file starts from.

A raw opcode is first *split* into simple raw opcodes (super-instructions, flag bits), and each simple one is then
*converted* into exactly one canonical instruction, or into none (`SKIP`). Continuations rely on that 1:1 relation.
"""

from __future__ import annotations

import opcode
from collections.abc import Callable
from types import CodeType

Pair = tuple[str, object]
Convert = Callable[["Tables", int], "Pair | None"]
Split = Callable[[int], tuple[tuple[str, int], ...]]

BINARY_SYMBOLS: tuple[str, ...] = tuple(symbol for _, symbol in opcode._nb_ops)  # type: ignore[attr-defined]
CONVERSIONS = ("", "s", "r", "a")


class Tables:
    """What the arguments of one code object's instructions refer to."""

    __slots__ = ("cells", "consts", "kwnames", "names", "slots")

    def __init__(self, code: CodeType) -> None:
        self.consts = code.co_consts
        self.names = code.co_names
        self.slots, self.cells = local_slots(code)
        self.kwnames: tuple[str, ...] = ()


def local_slots(code: CodeType) -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """The unique name of each slot of `fastlocals`, and whether the slot holds a cell."""
    cellvars = frozenset(code.co_cellvars)
    names = list(code.co_varnames)
    cells = [name in cellvars for name in names]
    names += [name for name in code.co_cellvars if name not in code.co_varnames]
    taken, written = set(names), {*names, *code.co_freevars}
    for name in code.co_freevars:
        # 3.12+: an inlined comprehension may give a free variable's name to a second, local slot.
        if name in taken:
            while name in written:
                name += "'"
            written.add(name)
        taken.add(name)
        names.append(name)
    cells += [True] * (len(names) - len(cells))
    return tuple(names), tuple(cells)


def plain(op: str) -> Convert:
    """No argument worth keeping."""
    pair = (op, None)
    return lambda tables, arg: pair


def count(op: str) -> Convert:
    """The argument is a plain number."""
    return lambda tables, arg: (op, arg)


def flag(op: str) -> Convert:
    """The argument is a truth value."""
    return lambda tables, arg: (op, bool(arg & 1))


def name(op: str, shift: int = 0) -> Convert:
    """The argument is an index into co_names, above `shift` flag bits."""
    return lambda tables, arg: (op, tables.names[arg >> shift])


def const(op: str) -> Convert:
    """The argument is an index into co_consts."""
    return lambda tables, arg: (op, tables.consts[arg])


def slot(op: str) -> Convert:
    """The argument is a slot, whatever it holds."""
    return lambda tables, arg: (op, tables.slots[arg])


def fast(op: str, cell_op: str) -> Convert:
    """The argument is a slot; one that holds a cell makes it another instruction."""
    return lambda tables, arg: (cell_op if tables.cells[arg] else op, tables.slots[arg])


def intrinsic(table: tuple[str, ...]) -> Convert:
    """The argument selects one of the interpreter's intrinsic functions."""
    return lambda tables, arg: (table[arg], None)


def skip(tables: Tables, arg: int) -> None:
    """An instruction without meaning for the program."""


def kw_names(tables: Tables, arg: int) -> None:
    """Folded into the CALL that follows."""
    tables.kwnames = tables.consts[arg]


def call(tables: Tables, arg: int) -> Pair:
    """CALL together with the KW_NAMES before it."""
    kwnames, tables.kwnames = tables.kwnames, ()
    return "CALL", (arg, kwnames)


def format_value(tables: Tables, arg: int) -> Pair:
    """FORMAT_VALUE of 3.11 and 3.12."""
    return "FORMAT_VALUE", (CONVERSIONS[arg & 3], bool(arg & 4))


_PLAIN = """
POP_TOP PUSH_NULL UNARY_NEGATIVE UNARY_NOT UNARY_INVERT BINARY_SUBSCR STORE_SUBSCR DELETE_SUBSCR GET_LEN
MATCH_MAPPING MATCH_SEQUENCE MATCH_KEYS PUSH_EXC_INFO CHECK_EXC_MATCH CHECK_EG_MATCH GET_AITER
GET_ANEXT BEFORE_ASYNC_WITH BEFORE_WITH END_ASYNC_FOR GET_ITER GET_YIELD_FROM_ITER LOAD_BUILD_CLASS
RETURN_GENERATOR RETURN_VALUE SETUP_ANNOTATIONS YIELD_VALUE POP_EXCEPT
"""

_COUNT = """
UNPACK_SEQUENCE SWAP COPY BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP BUILD_CONST_KEY_MAP BUILD_STRING BUILD_SLICE
RERAISE RAISE_VARARGS GET_AWAITABLE MAKE_FUNCTION LIST_APPEND SET_ADD MAP_ADD LIST_EXTEND SET_UPDATE DICT_MERGE
DICT_UPDATE COPY_FREE_VARS MATCH_CLASS
"""

_NAME = """
STORE_NAME DELETE_NAME STORE_ATTR DELETE_ATTR STORE_GLOBAL DELETE_GLOBAL LOAD_NAME IMPORT_NAME IMPORT_FROM
"""

CONVERT: dict[str, Convert] = {
    **{op: plain(op) for op in _PLAIN.split()},
    **{op: count(op) for op in _COUNT.split()},
    **{op: name(op) for op in _NAME.split()},
    **dict.fromkeys(("NOP", "RESUME"), skip),
    **{op: flag(op) for op in ("IS_OP", "CONTAINS_OP", "CALL_FUNCTION_EX")},
    **{op: slot(op) for op in ("MAKE_CELL", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF")},
    "LOAD_CONST": const("LOAD_CONST"),
    "LOAD_ASSERTION_ERROR": lambda tables, arg: ("LOAD_COMMON_CONSTANT", AssertionError),
    "WITH_EXCEPT_START": lambda tables, arg: ("WITH_EXCEPT_START", False),
    "LOAD_FAST": fast("LOAD_FAST", "LOAD_CLOSURE"),
    "STORE_FAST": fast("STORE_FAST", "STORE_CELL"),
    "DELETE_FAST": slot("DELETE_FAST"),
    "LOAD_GLOBAL": name("LOAD_GLOBAL", 1),
    "BINARY_OP": lambda tables, arg: ("BINARY_OP", BINARY_SYMBOLS[arg]),
    "UNPACK_EX": lambda tables, arg: ("UNPACK_EX", (arg & 0xFF, arg >> 8)),
    "CALL": call,
}

JUMPS: dict[str, tuple[str, int]] = {
    "JUMP_FORWARD": ("JUMP", 1),
    "JUMP_BACKWARD": ("JUMP", -1),
    "JUMP_BACKWARD_NO_INTERRUPT": ("JUMP", -1),
    "FOR_ITER": ("FOR_ITER", 1),
    "SEND": ("SEND", 1),
}
"""Raw jump: its canonical name and its direction."""

NOT_DECODED: dict[str, str] = {
    "CACHE": "inline cache, not an instruction",
    "EXTENDED_ARG": "prefix, folded into the argument of the instruction it belongs to",
}
"""Raw opcodes that have no row in a version's tables, and why."""

# Flag values and sub-operations of 3.12 and 3.13.
INTRINSIC_1 = (
    "INVALID",
    "PRINT_EXPR",
    "IMPORT_STAR",
    "STOPITERATION_ERROR",
    "ASYNC_GEN_WRAP",
    "UNARY_POSITIVE",
    "LIST_TO_TUPLE",
    "TYPEVAR",
    "PARAMSPEC",
    "TYPEVARTUPLE",
    "SUBSCRIPT_GENERIC",
    "TYPEALIAS",
)
INTRINSIC_2 = (
    "INVALID",
    "PREP_RERAISE_STAR",
    "TYPEVAR_WITH_BOUND",
    "TYPEVAR_WITH_CONSTRAINTS",
    "SET_FUNCTION_TYPE_PARAMS",
    "SET_TYPEPARAM_DEFAULT",
)
