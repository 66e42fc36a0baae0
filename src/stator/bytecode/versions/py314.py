"""CPython 3.14's bytecode, as it differs from 3.13's; what each name says is in `versions.Version`."""

from __future__ import annotations

import opcode

from . import common, py313
from .common import Convert, Split

NULL_FIRST = False
END_FOR_LENGTH = 2
SEND_SKIPS_END = True
TAKE: tuple[str, ...] = ("LOAD_FAST_AND_CLEAR",)
LOOKS_BEFORE_CALLS = True
KEYWORDS_OR_NULL = True

_GONE = frozenset(
    ("BEFORE_ASYNC_WITH", "BEFORE_WITH", "BINARY_SUBSCR", "BUILD_CONST_KEY_MAP", "LOAD_ASSERTION_ERROR", "RETURN_CONST")
)

_SPECIAL: list[str] = opcode._special_method_names  # type: ignore[attr-defined]
_COMMON: list[object] = opcode._common_constants  # type: ignore[attr-defined]
_SUBSCR = common.BINARY_SYMBOLS.index("[]")


def _binary(tables: common.Tables, arg: int) -> common.Pair:
    return ("BINARY_SUBSCR", None) if arg == _SUBSCR else ("BINARY_OP", common.BINARY_SYMBOLS[arg])


CONVERT: dict[str, Convert] = {
    **{op: convert for op, convert in py313.CONVERT.items() if op not in _GONE},
    "NOT_TAKEN": common.skip,
    "LOAD_FAST_BORROW": py313.CONVERT["LOAD_FAST"],
    "LOAD_SMALL_INT": common.count("LOAD_CONST"),
    "LOAD_COMMON_CONSTANT": lambda tables, arg: ("LOAD_COMMON_CONSTANT", _COMMON[arg]),
    "LOAD_SPECIAL": lambda tables, arg: ("LOAD_SPECIAL", _SPECIAL[arg]),
    "POP_ITER": common.plain("POP_TOP"),
    "BINARY_OP": _binary,
    "CALL_FUNCTION_EX": lambda tables, arg: ("CALL_FUNCTION_EX", True),
    "WITH_EXCEPT_START": lambda tables, arg: ("WITH_EXCEPT_START", True),
    "BUILD_INTERPOLATION": lambda tables, arg: ("BUILD_INTERPOLATION", (common.CONVERSIONS[arg >> 2], bool(arg & 1))),
    "BUILD_TEMPLATE": common.plain("BUILD_TEMPLATE"),
}

SPLIT: dict[str, Split] = {
    **{op: split for op, split in py313.SPLIT.items() if op not in _GONE},
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": lambda arg: (("LOAD_FAST_BORROW", arg >> 4), ("LOAD_FAST_BORROW", arg & 15)),
}

JUMPS: dict[str, tuple[str, int]] = py313.JUMPS

NOT_DECODED: dict[str, str] = py313.NOT_DECODED
