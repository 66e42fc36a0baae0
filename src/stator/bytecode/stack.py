"""What each canonical instruction does to the stack: the depth, and the exceptions being handled, before each."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .canonical import JUMPS, TERMINATORS
from .decode import Decoded, Instr

_FIXED: dict[int, str] = {
    1: """LOAD_CONST LOAD_FAST LOAD_FAST_AND_CLEAR LOAD_CELL_AND_CLEAR LOAD_CLOSURE LOAD_DEREF LOAD_GLOBAL LOAD_NAME
        LOAD_LOCALS LOAD_BUILD_CLASS LOAD_ASSERTION_ERROR PUSH_NULL IMPORT_FROM GET_ANEXT COPY GET_LEN MATCH_MAPPING
        MATCH_SEQUENCE MATCH_KEYS WITH_EXCEPT_START PUSH_EXC_INFO LOAD_METHOD BEFORE_WITH BEFORE_ASYNC_WITH
        RETURN_GENERATOR FOR_ITER""",
    0: """DELETE_FAST MAKE_CELL COPY_FREE_VARS DELETE_DEREF LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS
        DELETE_NAME DELETE_GLOBAL LOAD_ATTR UNARY_NEGATIVE UNARY_NOT UNARY_INVERT UNARY_POSITIVE TO_BOOL JUMP SEND
        GET_ITER GET_YIELD_FROM_ITER YIELD_VALUE GET_AWAITABLE GET_AITER ASYNC_GEN_WRAP CHECK_EXC_MATCH
        CHECK_EG_MATCH STOPITERATION_ERROR SWAP LIST_TO_TUPLE CONVERT_VALUE IMPORT_STAR SETUP_ANNOTATIONS PRINT_EXPR
        TYPEVAR PARAMSPEC TYPEVARTUPLE SUBSCRIPT_GENERIC TYPEALIAS RAISE_VARARGS RERAISE""",
    -1: """STORE_FAST STORE_CELL STORE_DEREF STORE_NAME STORE_GLOBAL POP_TOP POP_EXCEPT RETURN_VALUE BINARY_OP
        BINARY_SUBSCR COMPARE_OP IS_OP CONTAINS_OP DELETE_ATTR LIST_APPEND SET_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE
        DICT_MERGE IMPORT_NAME END_SEND PREP_RERAISE_STAR CLEANUP_THROW SET_FUNCTION_ATTRIBUTE
        SET_FUNCTION_TYPE_PARAMS TYPEVAR_WITH_BOUND TYPEVAR_WITH_CONSTRAINTS SET_TYPEPARAM_DEFAULT POP_JUMP_IF_FALSE
        POP_JUMP_IF_TRUE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP""",
    -2: "MAP_ADD DELETE_SUBSCR BINARY_SLICE STORE_ATTR END_ASYNC_FOR MATCH_CLASS",
    -3: "STORE_SUBSCR",
    -4: "STORE_SLICE",
}

_EFFECT: dict[str, int] = {op: effect for effect, ops in _FIXED.items() for op in ops.split()}

_BY_ARG: dict[str, Callable[[Any], int]] = {
    "LOAD_SUPER_ATTR": lambda arg: -1 if arg[1] else -2,
    "UNPACK_SEQUENCE": lambda arg: arg - 1,
    "UNPACK_EX": lambda arg: arg[0] + arg[1],
    "FORMAT_VALUE": lambda arg: -1 if arg[1] else 0,
    "MAKE_FUNCTION": lambda arg: -(arg & 15).bit_count(),
    "CALL": lambda arg: -(arg[0] + 1),
    "CALL_KW": lambda arg: -(arg + 2),
    "CALL_FUNCTION_EX": lambda arg: -3 if arg else -2,
    "BUILD_TUPLE": lambda arg: 1 - arg,
    "BUILD_LIST": lambda arg: 1 - arg,
    "BUILD_SET": lambda arg: 1 - arg,
    "BUILD_STRING": lambda arg: 1 - arg,
    "BUILD_SLICE": lambda arg: 1 - arg,
    "BUILD_MAP": lambda arg: 1 - 2 * arg,
    "BUILD_CONST_KEY_MAP": lambda arg: -arg,
}

_WHEN_JUMPING: dict[str, int] = {
    "FOR_ITER": -1,
    "SEND": -1,
    "JUMP_IF_FALSE_OR_POP": 0,
    "JUMP_IF_TRUE_OR_POP": 0,
}


def effect(instr: Instr, *, jump: bool = False) -> int:
    """By how much the instruction changes the depth when it falls through, or when it jumps."""
    if jump and instr.op in _WHEN_JUMPING:
        return _WHEN_JUMPING[instr.op]
    fixed = _EFFECT.get(instr.op)
    return _BY_ARG[instr.op](instr.arg) if fixed is None else fixed


def successors(instr: Instr) -> list[tuple[int, int]]:
    """(index, change of depth) of each instruction that may come next without an exception."""
    found = []
    if instr.op in JUMPS:
        found.append((instr.arg, effect(instr, jump=True)))
    if instr.op not in TERMINATORS:
        found.append((instr.index + 1, effect(instr)))
    return found


class StackError(Exception):
    """Two paths reach an instruction with different depths: the decoder is wrong about something."""


_QUIET = frozenset(
    {"PUSH_EXC_INFO", "POP_EXCEPT", "COPY", "SWAP", "POP_TOP", "PUSH_NULL", "LOAD_CONST", "RETURN_VALUE"}
)
"""Instructions that never raise: exception tables cover some where an exception would find another state."""


class _Shapes:
    """The depth before each instruction, and how many exceptions are then being handled; -1 where no path leads."""

    def __init__(self, decoded: Decoded) -> None:
        instrs = decoded.instrs
        self.depths = [-1] * len(instrs)
        self.handled = [-1] * len(instrs)
        pending = [(0, 0, 0)] if instrs else []
        while pending:
            index, depth, handled = pending.pop()
            if self._known(instrs[index], depth, handled):
                continue
            instr = instrs[index]
            handler = instr.handler
            if handler is not None and instr.op not in _QUIET:
                if handler.depth > depth:
                    raise StackError(f"{instr!r}: depth {depth} under its handler's {handler.depth}")
                pending.append((handler.target, handler.depth + 1 + handler.push_lasti, handled))
            handled += (instr.op == "PUSH_EXC_INFO") - (instr.op == "POP_EXCEPT")
            pending += [(target, depth + change, handled) for target, change in successors(instr)]

    def _known(self, instr: Instr, depth: int, handled: int) -> bool:
        index = instr.index
        if self.depths[index] < 0:
            if depth < 0 or handled < 0:
                raise StackError(f"{instr!r}: depth {depth}, {handled} handled")
            self.depths[index], self.handled[index] = depth, handled
            return False
        if (self.depths[index], self.handled[index]) != (depth, handled):
            raise StackError(f"{instr!r}: {self.depths[index], self.handled[index]} and {depth, handled}")
        return True


_cache: weakref.WeakKeyDictionary[Decoded, _Shapes] = weakref.WeakKeyDictionary()


def _shapes(decoded: Decoded) -> _Shapes:
    found = _cache.get(decoded)
    if found is None:
        found = _cache[decoded] = _Shapes(decoded)
    return found


def depths(decoded: Decoded) -> Sequence[int]:
    """The depth of the stack before each instruction; -1 where no path leads."""
    return _shapes(decoded).depths


def handled(decoded: Decoded) -> Sequence[int]:
    """How many exceptions the frame is handling before each instruction; -1 where no path leads."""
    return _shapes(decoded).handled
