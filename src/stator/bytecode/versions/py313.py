"""CPython 3.13's bytecode; what each name says is in `versions.Version`."""

from __future__ import annotations

from opcode import cmp_op, opmap

from . import common
from .common import Convert, Split

NULL_FIRST = False
END_FOR_LENGTH = 2
SEND_SKIPS_END = True
TAKE: tuple[str, ...] = ("LOAD_FAST_AND_CLEAR",)
LOOKS_BEFORE_CALLS = True
KEYWORDS_OR_NULL = False

_PLAIN = "END_SEND CLEANUP_THROW LOAD_LOCALS BINARY_SLICE STORE_SLICE TO_BOOL"

CONVERT: dict[str, Convert] = {
    **common.CONVERT,
    **{op: common.plain(op) for op in _PLAIN.split()},
    "END_FOR": common.skip,
    "LOAD_FAST_CHECK": common.fast("LOAD_FAST", "LOAD_CLOSURE"),
    "LOAD_FAST_AND_CLEAR": common.fast("LOAD_FAST_AND_CLEAR", "LOAD_CELL_AND_CLEAR"),
    "LOAD_FROM_DICT_OR_DEREF": common.slot("LOAD_FROM_DICT_OR_DEREF"),
    "LOAD_FROM_DICT_OR_GLOBALS": common.name("LOAD_FROM_DICT_OR_GLOBALS"),
    "LOAD_ATTR": lambda tables, arg: ("LOAD_METHOD" if arg & 1 else "LOAD_ATTR", tables.names[arg >> 1]),
    "LOAD_SUPER_ATTR": lambda tables, arg: (
        "LOAD_SUPER_ATTR",
        (tables.names[arg >> 2], bool(arg & 1), bool(arg & 2)),
    ),
    "COMPARE_OP": lambda tables, arg: ("COMPARE_OP", cmp_op[arg >> 5]),
    "MAKE_FUNCTION": lambda tables, arg: ("MAKE_FUNCTION", 0),
    "SET_FUNCTION_ATTRIBUTE": common.count("SET_FUNCTION_ATTRIBUTE"),
    "CALL_KW": common.count("CALL_KW"),
    "CONVERT_VALUE": lambda tables, arg: ("CONVERT_VALUE", common.CONVERSIONS[arg]),
    "FORMAT_SIMPLE": lambda tables, arg: ("FORMAT_VALUE", ("", False)),
    "FORMAT_WITH_SPEC": lambda tables, arg: ("FORMAT_VALUE", ("", True)),
    "CALL_INTRINSIC_1": common.intrinsic(common.INTRINSIC_1),
    "CALL_INTRINSIC_2": common.intrinsic(common.INTRINSIC_2),
}

_BOOL = 16  # COMPARE_OP's bit: the result is made a bool

SPLIT: dict[str, Split] = {
    "LOAD_GLOBAL": lambda arg: (("LOAD_GLOBAL", arg & ~1), ("PUSH_NULL", 0)) if arg & 1 else (("LOAD_GLOBAL", arg),),
    "RETURN_CONST": lambda arg: (("LOAD_CONST", arg), ("RETURN_VALUE", 0)),
    "LOAD_FAST_LOAD_FAST": lambda arg: (("LOAD_FAST", arg >> 4), ("LOAD_FAST", arg & 15)),
    "STORE_FAST_LOAD_FAST": lambda arg: (("STORE_FAST", arg >> 4), ("LOAD_FAST", arg & 15)),
    "STORE_FAST_STORE_FAST": lambda arg: (("STORE_FAST", arg >> 4), ("STORE_FAST", arg & 15)),
    "COMPARE_OP": lambda arg: (("COMPARE_OP", arg & ~_BOOL), ("TO_BOOL", 0)) if arg & _BOOL else (("COMPARE_OP", arg),),
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
    "EXIT_INIT_CHECK": "only in the trampoline that calls __init__",
    "ENTER_EXECUTOR": "the JIT's form; co_code shows the original",
    "RESERVED": "not an instruction",
    **{op: "monitoring's form; co_code shows the original" for op in opmap if op.startswith("INSTRUMENTED_")},
    **{op: "the compiler's pseudo-instruction" for op, number in opmap.items() if number > 255},
}
