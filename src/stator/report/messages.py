"""What users are told of breaks, recompiles, frames given up and backends that fail, in the one form of `Message`."""

from __future__ import annotations

import logging
import sys
from traceback import FrameSummary
from types import CodeType
from typing import TYPE_CHECKING

from stator import errors
from stator.bytecode.continuation import resume_line
from stator.errors.message import Message, parted, place
from stator.guards.base import short_name
from stator.host.loggers import UnlessConfigured
from stator.interp.policy import is_users, users_frame
from stator.report.source_lines import line_at
from stator.report.stats import STATS, RecompileRecord

if TYPE_CHECKING:
    from stator.report.events import Broke

__all__ = [
    "LOG",
    "about",
    "backend_failed",
    "broke",
    "definition",
    "limit_reached",
    "not_again",
    "place",
    "recompiled",
    "resumption",
]

LOG = logging.getLogger("stator")
if not LOG.handlers:
    # The program's own warnings and what it has put in place of sys.stderr are left alone.
    LOG.addHandler(UnlessConfigured(sys.__stderr__))

#: how many of the latest changes a message tells
_MOST_TOLD = 4
_WITHIN = "{} runs as ordinary Python, so this is compiled by itself: mend SB0501 there first"
_LEFT = "the function runs as ordinary Python from now on, and calls inside that change with it do too"


def definition(code: CodeType) -> FrameSummary:
    """Where a function is defined, as the place of what is told about all of it."""
    return FrameSummary(code.co_filename, code.co_firstlineno, short_name(code.co_qualname))


def compiled_function(record: RecompileRecord) -> FrameSummary:
    """Where the function is defined of which something was compiled again: it may be called through a library's."""
    file, line = parted(record.definition)
    return FrameSummary(file, line, record.function)


def resumption(code: CodeType) -> FrameSummary:
    """Where a frame is gone on with after a break."""
    return FrameSummary(code.co_filename, resume_line(code), short_name(code.co_qualname))


def about(at: FrameSummary) -> tuple[str, tuple[FrameSummary, ...]]:
    """The place and the stack for what is told of a whole function; of a library's, with the user's call of it."""
    frame = None if is_users(at.filename) else users_frame()
    if frame is None:
        return place(at), (at,)
    caller = FrameSummary(frame.f_code.co_filename, frame.f_lineno, short_name(frame.f_code.co_qualname))
    return place(caller), (caller, at)


def broke(event: Broke, count: int = 1) -> Message:
    """A graph break, or a frame that is given up."""
    brk, given_up = event.brk, isinstance(event.brk, errors.FrameGivenUp)
    meanwhile = "this runs as ordinary Python, and a new graph begins behind it"
    if given_up:
        meanwhile = "the function runs as ordinary Python; what it calls may still be compiled"
    elif isinstance(brk, errors.RecompileLimit):
        meanwhile = _LEFT
    hint = event.cause.hint if event.cause is not None else brk.hint
    stack = event.stack or (_frame(event.where),)
    details = [] if event.within is None else [_WITHIN.format(event.within.name)]
    return Message(brk.code, brk.reason, stack, details, meanwhile, hint, count)


def recompiled(record: RecompileRecord, count: int = 1) -> Message:
    """A frame is compiled again."""
    brk = errors.Recompiled(record.function, record.change)
    meanwhile = "it is compiled for this case too; what fits is chosen at each call"
    hint = record.hint or brk.hint
    return Message(brk.code, brk.reason, (_needed_at(record),), meanwhile=meanwhile, hint=hint, count=count)


def not_again(record: RecompileRecord) -> Message:
    """A frame would be compiled again, and that is forbidden."""
    text = f"{record.function} would be compiled again (error_on_recompile): {record.change}"
    meanwhile = "the call is not made"
    hint = record.hint or errors.Recompiled.hint
    return Message(errors.Recompiled.code, text, (_needed_at(record),), meanwhile=meanwhile, hint=hint)


def limit_reached(record: RecompileRecord, limit: tuple[str, int], hint: str, *, refused: bool) -> Message:
    """A function has been compiled as often as allowed; `refused`: its call is an error."""
    name, most = limit
    earlier = [each for each in STATS.recompiles_of(record.where) if each.reason != record.reason]
    told = [*earlier[-_MOST_TOLD + 1 :], record]
    return Message(
        errors.RecompileLimit.code,
        f"{record.function} was compiled {most} times ({name})",
        (_needed_at(record),),
        [f"{each.reason}{f' ({each.count} times)' if each.count > 1 else ''}" for each in told],
        "the call is not made" if refused else _LEFT,
        hint,
    )


def backend_failed(backend: str, why: str, code: CodeType) -> Message:
    """A backend raised, or did not give what it should."""
    brk = errors.BackendFailed(backend, why)
    meanwhile = "the call is not made; suppress_errors=True would run the function as ordinary Python"
    return Message(brk.code, brk.reason, (definition(code),), meanwhile=meanwhile, hint=brk.hint)


def _needed_at(record: RecompileRecord) -> FrameSummary:
    """The line that depends on what has changed, or else the function's first."""
    return _frame(record.line or record.definition)


def _frame(where: str) -> FrameSummary:
    """A place, "file.py:12", as a frame."""
    file, line = parted(where)
    return FrameSummary(file, line, "", line=line_at(where))
