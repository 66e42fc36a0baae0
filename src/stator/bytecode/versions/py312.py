"""CPython 3.12's bytecode; what each name says is in `versions.Version`."""

from __future__ import annotations

from opcode import cmp_op, opmap

from . import common
from .common import Convert, Split

NULL_FIRST = True
END_FOR_LENGTH = 1
SEND_SKIPS_END = True
TAKE: tuple[str, ...] = ("LOAD_FAST_AND_CLEAR",)
LOOKS_BEFORE_CALLS = False
KEYWORDS_OR_NULL = False

_PLAIN = "END_SEND CLEANUP_THROW LOAD_LOCALS BINARY_SLICE STORE_SLICE"

CONVERT: dict[str, Convert] = {
    **common.CONVERT,
    **{op: common.plain(op) for op in _PLAIN.split()},
    "KW_NAMES": common.kw_names,
    "END_FOR": common.skip,
    "LOAD_CLOSURE": common.slot("LOAD_CLOSURE"),
    "LOAD_FAST_CHECK": common.fast("LOAD_FAST", "LOAD_CLOSURE"),
    "LOAD_FAST_AND_CLEAR": common.fast("LOAD_FAST_AND_CLEAR", "LOAD_CELL_AND_CLEAR"),
    "LOAD_FROM_DICT_OR_DEREF": common.slot("LOAD_FROM_DICT_OR_DEREF"),
    "LOAD_FROM_DICT_OR_GLOBALS": common.name("LOAD_FROM_DICT_OR_GLOBALS"),
    "LOAD_ATTR": lambda tables, arg: ("LOAD_METHOD" if arg & 1 else "LOAD_ATTR", tables.names[arg >> 1]),
    "LOAD_SUPER_ATTR": lambda tables, arg: (
        "LOAD_SUPER_ATTR",
        (tables.names[arg >> 2], bool(arg & 1), bool(arg & 2)),
    ),
    "COMPARE_OP": lambda tables, arg: ("COMPARE_OP", cmp_op[arg >> 4]),
    "FORMAT_VALUE": common.format_value,
    "CALL_INTRINSIC_1": common.intrinsic(common.INTRINSIC_1),
    "CALL_INTRINSIC_2": common.intrinsic(common.INTRINSIC_2),
}

SPLIT: dict[str, Split] = {
    "LOAD_GLOBAL": lambda arg: (("PUSH_NULL", 0), ("LOAD_GLOBAL", arg & ~1)) if arg & 1 else (("LOAD_GLOBAL", arg),),
    "RETURN_CONST": lambda arg: (("LOAD_CONST", arg), ("RETURN_VALUE", 0)),
}

JUMPS: dict[str, tuple[str, int]] = {
    **common.JUMPS,
    "POP_JUMP_IF_FALSE": ("POP_JUMP_IF_FALSE", 1),
    "POP_JUMP_IF_TRUE": ("POP_JUMP_IF_TRUE", 1),
    "POP_JUMP_IF_NONE": ("POP_JUMP_IF_NONE", 1),
    "POP_JUMP_IF_NOT_NONE": ("POP_JUMP_IF_NOT_NONE", 1),
}

NOT_DECODED: dict[str, str] = {
    **common.NOT_DECODED,
    "INTERPRETER_EXIT": "only in the interpreter's entry trampoline",
    "RESERVED": "not an instruction",
    **{op: "monitoring's form; co_code shows the original" for op in opmap if op.startswith("INSTRUMENTED_")},
    **{op: "the compiler's pseudo-instruction" for op, number in opmap.items() if number > 255},
}
