"""Sides of a branch that programs hardly ever take, as can be told from the code alone.

What is told here is no more than a guess: whoever assumes that the other side is taken has to check that it is.
"""

from __future__ import annotations

import builtins
import inspect
import os
import sys
from _sitebuiltins import Quitter
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

from stator.bytecode import NULL_FIRST
from stator.bytecode.flow import flow
from stator.guards.raw import type_lookup

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
_JUMPS = frozenset(("JUMP", *(f"POP_JUMP_IF_{when}" for when in ("FALSE", "TRUE", "NONE", "NOT_NONE"))))
_LONGEST = 60
#: flags of code whose calls return at once: of generators and coroutines
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
#: what ends the program, as `exit(1)` does
_ENDS = (sys.exit, os._exit, os.abort)
#: `warnings.warn(…)`, `logger.warning(…)`
_WARNING = frozenset(("warn", "warning", "warn_once", "warning_once"))


def leads_to_raise(frame: Frame, index: int) -> bool:
    """Whether the code at an instruction makes an exception and raises it, or calls what does, on whatever way."""
    pending, seen = [index], set[int]()
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        if at >= len(frame.instrs) or len(seen) > _LONGEST:
            return False
        instr = frame.instrs[at]
        if instr.op == "RAISE_VARARGS" or _never_returns(_called(frame, at)):
            continue
        if instr.op in _JUMPS and instr.arg > at:
            pending.append(instr.arg)
        elif instr.op not in _HARMLESS:
            return False
        if instr.op != "JUMP":
            pending.append(at + 1)
    return True


def _called(frame: Frame, index: int) -> object:
    """What an instruction reads to call it: a method of a variable, a global, a function of a module."""
    instr, before = frame.instrs[index], frame.instrs[index - 1]
    if instr.op == "LOAD_GLOBAL":
        return _global(frame, instr.arg) if _is_called(frame, index, index) else None
    if instr.op == "LOAD_METHOD" and before.op == "LOAD_FAST":
        owner = frame.locals.get(before.arg)
        return None if owner is None else type_lookup(type(owner.host) if owner.lazy else owner.cls, instr.arg)
    if before.op != "LOAD_GLOBAL" or not (instr.op == "LOAD_METHOD" or _is_called(frame, index - 1, index)):
        return None
    module = _global(frame, before.arg)
    return vars(module).get(instr.arg) if type(module) is ModuleType else None


def _is_called(frame: Frame, first: int, last: int) -> bool:
    """Whether what these instructions read is the operand of a call."""
    return frame.instrs[first - 1 if NULL_FIRST else last + 1].op == "PUSH_NULL"


def _global(frame: Frame, name: str) -> object:
    return frame.globals.get(name, vars(builtins).get(name))


def _never_returns(function: object) -> bool:
    """Whether a call ends the program, or there is no way through a function but to raise: `def fail(self, message):
    raise Failed(message)`.
    """
    if type(function) is not FunctionType:
        return type(function) is Quitter or any(function is end for end in _ENDS)
    if function.__code__.co_flags & _SUSPENDS:
        return False
    ways = flow(function.__code__)
    return not any(ways.pieces[number].raw.startswith("RETURN") for number in ways.reachable([0]))


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
