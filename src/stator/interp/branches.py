"""Truth values on which the control flow of a frame depends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from stator.bytecode.loop_exits import ends_loop
from stator.interp.sides import Sides
from stator.models.numbers.advice import FOR_STOPS, advising
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.errors import Break
    from stator.space.interfaces import Frame

#: asked last where a branch cannot be decided, if `config.capture_branches` is set: (frame, value, its sides) → whether
#: the frame has gone on behind both; else the branch breaks the graph, and the hook may say why it has not
CAPTURES: list[Callable[[Frame, Value, Sides], bool]] = []
#: asked where a branch cannot be decided: (frame, value, where it goes when true, when false) → the truth; None; or
#: with which reason the branch breaks the graph if nothing else decides it
BRANCH_HOOKS: list[Callable[[Frame, Value, int, int], bool | Break | None]] = []


def branch(frame: Frame, value: Value, when_true: int, when_false: int) -> None:
    """A conditional jump, which depends on the truth value."""
    try:
        truth = frame.space.truth(value)
    except Unsupported as e:
        asked = _asked(frame, value, when_true, when_false)
        decided = asked if isinstance(asked, bool) else _guarded(frame, value)
        if decided is None:
            if _captured(frame, value.force(), when_true, when_false):
                return
            with _advising(frame, frame.index - 1, when_true, when_false):
                raise e if asked is None else Unsupported(asked) from None
        truth = decided
    frame.index = when_true if truth else when_false


def operand_truth(frame: Frame, value: Value) -> bool:
    """The truth value of the left operand of `and` or `or`, which may be its result."""
    try:
        return frame.space.truth(value)
    except Unsupported:
        decided = _guarded(frame, value)
        if decided is None:
            raise
        return decided


def truth(frame: Frame, value: Value, negated: bool = False) -> bool:
    """The truth value that the instruction being executed pushes, or `negated` the opposite of it."""
    try:
        return frame.space.truth(value)
    except Unsupported:
        decided = assumed(frame, value, negated)
        if decided is None:
            ahead = _branch_ahead(frame, negated)
            with nullcontext() if ahead is None else _advising(ahead[0], *ahead[1:]):
                raise
        return decided


def assumed(frame: Frame, value: Value, negated: bool = False) -> bool | None:
    """The same where it is not known, if a guard tells, or if all it does is to decide the next branch, as assumed.

    Raises:
        Unsupported: neither, and what keeps that branch from being assumed is known.
    """
    ahead = _branch_ahead(frame, negated)
    decided = None if ahead is None else _asked(ahead[0], value, *ahead[2:])
    if isinstance(decided, bool):
        return decided
    guarded = _guarded(frame, value)
    if guarded is None and decided is not None:
        raise Unsupported(decided)
    return guarded


def _captured(frame: Frame, value: Value, when_true: int, when_false: int) -> bool:
    if not frame.trace.config.capture_branches:
        return False
    sides = Sides(frame, when_true, when_false)
    return any(capture(frame, value, sides) for capture in CAPTURES)


def _asked(frame: Frame, value: Value, when_true: int, when_false: int) -> bool | Break | None:
    for hook in BRANCH_HOOKS:
        decided = hook(frame, value.force(), when_true, when_false)
        if decided is not None:
            return decided
    return None


def _guarded(frame: Frame, value: Value) -> bool | None:
    return frame.space.outcome(bool, value)  # type: ignore[no-any-return]


def _advising(frame: Frame, branch: int, when_true: int, when_false: int) -> AbstractContextManager[None]:
    """What helps where nothing decides a branch, if that is known of such branches."""
    return advising(FOR_STOPS if ends_loop(frame.decoded, branch, (when_true, when_false)) else "")


def _branch_ahead(frame: Frame, negated: bool) -> tuple[Frame, int, int, int] | None:
    """The branch that takes what the instruction being executed pushes, and is all that takes it: it comes next,
    here or, where the value is returned, in a caller. Its frame and index, where it goes when the value is true, and
    when it is false.

    Args:
        negated: whether that instruction pushes the negation of the value.
    """
    at, index = frame, frame.index
    while True:
        instr = at.instrs[index]
        index += 1
        if instr.op == "UNARY_NOT":
            negated = not negated
        elif instr.op == "RETURN_VALUE":
            if not at.in_tail_position or at.parent is None:
                return None
            at = at.parent
            index = at.index
        elif instr.op in ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE"):
            jumps = (instr.op == "POP_JUMP_IF_TRUE") is not negated
            return (at, index - 1, instr.arg, index) if jumps else (at, index - 1, index, instr.arg)
        elif instr.op != "TO_BOOL":
            return None
