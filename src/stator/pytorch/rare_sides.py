"""Sides of a branch that programs hardly ever take, as can be told from the code alone.

What is told here is no more than a guess: whoever assumes that the other side is taken has to check that it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.bytecode.flow import flow

if TYPE_CHECKING:
    from stator.space.interfaces import Frame
    from stator.space.value import Value

__all__ = ["leads_to_raise", "returned_early", "warns"]

#: what may stand between a branch and the raise it leads to: the making of an exception, and of what it tells; what is
#: said or kept besides (`print(…)`, `self.failed = True`)
_HARMLESS = frozenset(
    (
        *("LOAD_CONST", "LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_COMMON_CONSTANT"),
        *("PUSH_NULL", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "FORMAT_VALUE", "CONVERT_VALUE", "COPY", "SWAP"),
        *("BUILD_STRING", "BUILD_TUPLE", "BUILD_LIST", "BUILD_MAP", "BUILD_SLICE", "BINARY_OP", "BINARY_SUBSCR"),
        *("BINARY_SLICE", "COMPARE_OP", "UNARY_NEGATIVE", "UNARY_NOT", "UNARY_INVERT", "STORE_FAST"),
        *("POP_TOP", "STORE_ATTR", "CONTAINS_OP", "IS_OP", "BUILD_SET"),
    )
)
_LONGEST = 60
#: `warnings.warn(…)`, `logger.warning(…)`
_WARNING = frozenset(("warn", "warning", "warn_once", "warning_once"))


def leads_to_raise(frame: Frame, index: int) -> bool:
    """Whether the code at an instruction makes an exception and raises it, without branching."""
    for instr in frame.instrs[index : index + _LONGEST]:
        if instr.op == "RAISE_VARARGS":
            return True
        if instr.op not in _HARMLESS:
            return False
    return False


def warns(frame: Frame, index: int) -> bool:
    """Whether the code at an instruction calls what is named as a function that warns."""
    for instr in frame.instrs[index : index + _LONGEST]:
        if instr.op in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL"):
            if instr.arg in _WARNING:
                return True
        elif instr.op not in ("LOAD_FAST", "LOAD_DEREF", "PUSH_NULL"):
            return False
    return False


def returned_early(frame: Frame, index: int) -> Value | None:
    """The variable that the code at an instruction returns at once; None where it does anything else.

    What is waited for in a `while` or a recursion (`while True: … if done.all(): return done`) comes in the end.
    """
    code = [instr.op for instr in frame.instrs[index : index + 2]]
    if code != ["LOAD_FAST", "RETURN_VALUE"] or flow(frame.code).repeats(frame.index - 1):
        return None
    recursive = [each.code for each in frame.trace.running()].count(frame.code) > 1
    return None if recursive else frame.locals.get(frame.instrs[index].arg)
