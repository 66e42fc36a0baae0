"""CPython 3.11's bytecode; what each name says is in `versions.Version`."""

from __future__ import annotations

from opcode import cmp_op

from . import common
from .common import Convert, Split

NULL_FIRST = True
END_FOR_LENGTH = 0
SEND_SKIPS_END = False
TAKE: tuple[str, ...] = ("LOAD_FAST", "DELETE_FAST")
LOOKS_BEFORE_CALLS = False
KEYWORDS_OR_NULL = False

_PLAIN = "UNARY_POSITIVE PRINT_EXPR LIST_TO_TUPLE IMPORT_STAR ASYNC_GEN_WRAP PREP_RERAISE_STAR LOAD_LOCALS"

CONVERT: dict[str, Convert] = {
    **common.CONVERT,
    **{op: common.plain(op) for op in _PLAIN.split()},
    "PRECALL": common.skip,
    "KW_NAMES": common.kw_names,
    "LOAD_CLOSURE": common.slot("LOAD_CLOSURE"),
    "LOAD_CLASSDEREF": common.slot("LOAD_FROM_DICT_OR_DEREF"),
    "LOAD_ATTR": common.name("LOAD_ATTR"),
    "LOAD_METHOD": common.name("LOAD_METHOD"),
    "COMPARE_OP": lambda tables, arg: ("COMPARE_OP", cmp_op[arg]),
    "FORMAT_VALUE": common.format_value,
}

SPLIT: dict[str, Split] = {
    "LOAD_GLOBAL": lambda arg: (("PUSH_NULL", 0), ("LOAD_GLOBAL", arg & ~1)) if arg & 1 else (("LOAD_GLOBAL", arg),),
    # The next three occur in class and module bodies only, never in a continuation: later versions' forms.
    "LOAD_CLASSDEREF": lambda arg: (("LOAD_LOCALS", 0), ("LOAD_CLASSDEREF", arg)),
    "PRINT_EXPR": lambda arg: (("PRINT_EXPR", 0), ("POP_TOP", 0)),
    "IMPORT_STAR": lambda arg: (("IMPORT_STAR", 0), ("POP_TOP", 0)),
}

JUMPS: dict[str, tuple[str, int]] = {
    **common.JUMPS,
    "JUMP_IF_FALSE_OR_POP": ("JUMP_IF_FALSE_OR_POP", 1),
    "JUMP_IF_TRUE_OR_POP": ("JUMP_IF_TRUE_OR_POP", 1),
    "POP_JUMP_FORWARD_IF_FALSE": ("POP_JUMP_IF_FALSE", 1),
    "POP_JUMP_FORWARD_IF_TRUE": ("POP_JUMP_IF_TRUE", 1),
    "POP_JUMP_FORWARD_IF_NONE": ("POP_JUMP_IF_NONE", 1),
    "POP_JUMP_FORWARD_IF_NOT_NONE": ("POP_JUMP_IF_NOT_NONE", 1),
    "POP_JUMP_BACKWARD_IF_FALSE": ("POP_JUMP_IF_FALSE", -1),
    "POP_JUMP_BACKWARD_IF_TRUE": ("POP_JUMP_IF_TRUE", -1),
    "POP_JUMP_BACKWARD_IF_NONE": ("POP_JUMP_IF_NONE", -1),
    "POP_JUMP_BACKWARD_IF_NOT_NONE": ("POP_JUMP_IF_NOT_NONE", -1),
}

NOT_DECODED: dict[str, str] = common.NOT_DECODED
