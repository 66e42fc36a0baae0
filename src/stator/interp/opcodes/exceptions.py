"""Opcodes: raising and handling exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator import errors
from stator._core import raise_unchanged
from stator.bytecode.continuation import caught
from stator.bytecode.decode import Instr
from stator.host.version_facts import EXCEPT_STAR_COPIES_THE_REST
from stator.interp.frame import Frame, opcode
from stator.interp.handling import Lasti
from stator.models.exceptions import exception
from stator.space.protocol import FALSE, NONE, TRUE, builtin, register
from stator.space.value import Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.space.space import Space


def _raise_unchanged(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    exc = args[0].force()
    if not exc.isa(BaseException):
        given_up = errors.FrameGivenUp("a continuation", "an exception comes up in the handler")
        space.trace.root.unresumable = given_up
        raise Unsupported(given_up)
    raise Raised(exc)


register(raise_unchanged, _raise_unchanged)


@builtin(caught)
def _caught(space: Space, exc: Value, /) -> Value:
    return exc


@opcode
def PUSH_EXC_INFO(f: Frame, instr: Instr) -> None:
    """except: the exception becomes the one being handled."""
    value = f.pop()
    f.push(f.handling.begin(value))
    f.push(value)


@opcode
def POP_EXCEPT(f: Frame, instr: Instr) -> None:
    """The end of an except clause."""
    f.handling.end(f.pop(), f.parent)


@opcode
def CHECK_EXC_MATCH(f: Frame, instr: Instr) -> None:
    """except pattern:"""
    pattern = f.pop()
    f.push(TRUE if exception.matches(f.space, f.peek(), pattern) else FALSE)


def _wrapped_is_traced() -> bool:
    """Whether the group that `except*` wraps around an exception has a traceback: since 3.12.9 and 3.13.2."""
    traced = False
    try:
        raise ValueError
    except* ValueError as group:
        traced = group.__traceback__ is not None
    return traced


_WRAPPED_IS_TRACED = _wrapped_is_traced()


@opcode
def CHECK_EG_MATCH(f: Frame, instr: Instr) -> None:
    """except* pattern:"""
    from stator.models.rare.exceptions import exception_group  # rare: loaded when met

    pattern, value = f.pop(), f.pop()
    rest, match = exception_group.match(f.space, value, pattern)
    if _WRAPPED_IS_TRACED and match is not NONE and not value.isa(BaseExceptionGroup):
        match.add_traceback(f, instr)  # type: ignore[attr-defined]
    if match is NONE and not EXCEPT_STAR_COPIES_THE_REST:
        rest = value
    f.push(rest)
    f.push(match)
    if match is not NONE:
        f.handling.narrow(match)


@opcode
def PREP_RERAISE_STAR(f: Frame, instr: Instr) -> None:
    """The end of the except* clauses: what is left to be raised, or None."""
    from stator.models.rare.exceptions import exception_group  # rare: loaded when met

    raised, original = f.pop(), f.pop()
    f.push(exception_group.prepare_reraise(f.space, original, raised))


@opcode
def RERAISE(f: Frame, instr: Instr) -> None:
    """The exception goes on as if it had not been caught."""
    value = f.pop()
    raised_at = f.peek(instr.arg) if instr.arg else None
    if isinstance(raised_at, Lasti):
        f.handling.reraised = raised_at.index
    raise Raised(value)


@opcode
def RAISE_VARARGS(f: Frame, instr: Instr) -> None:
    """raise; raise exc; raise exc from cause"""
    space = f.space
    cause = f.pop() if instr.arg == 2 else None
    if instr.arg == 0:
        handled = f.being_handled()
        if handled is None:
            raise space.error(RuntimeError, "No active exception to reraise")
        raise Raised(handled.force())
    value = exception.normalize(space, f.pop())
    if cause is not None:
        exception.set_cause(space, value, cause)
    exception.set_context(space, value, f.handling.current)
    raise Raised(value)


@opcode
def WITH_EXCEPT_START(f: Frame, instr: Instr) -> None:
    """The exit of a with statement whose body has raised."""
    exit_, receiver = f.callable_at(5) if instr.arg else (f.peek(4), [])
    f.push(f.space.call(exit_, receiver + exception.exc_info(f.space, f.peek()), {}))


@opcode
def STOPITERATION_ERROR(f: Frame, instr: Instr) -> None:
    """A StopIteration that leaves a generator's body becomes a RuntimeError."""
    value: Value = f.pop()
    f.push(exception.stop_iteration_error(f.space, value, f.code))
