"""Why a frame is compiled again: what has changed, in the program's own names, where it mattered, and what to do."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from stator._core import Entry
from stator.bytecode.continuation import is_continuation, parameters
from stator.bytecode.counters import loop_variables
from stator.bytecode.results import result_text
from stator.guards.base import Change, name_and_place
from stator.guards.guard import FOR_LOOPS, TensorMatch
from stator.guards.naming import FORWARDERS, LOOP_VARIABLES, PARAMETERS, Called, Names, names_of
from stator.guards.source import CallInputs, ItemSource
from stator.interp.policy import is_users
from stator.report.stats import RecompileRecord
from stator.report.words import counted
from stator.space.host_types import Host

if TYPE_CHECKING:
    from stator.guards.program import GuardProgram

__all__ = ["called_code", "is_long_loop", "nearest", "of_loop", "program_of", "reason_for", "remedy_for"]

#: operations of all rounds of a loop, from which on it is a long one
_LONG_LOOP = 200
#: with how many entries a call is compared that none fits
_MOST_COMPARED = 4
#: how many changes are told beside the first
_MOST_CHANGES = 3
#: `def f(*args, **kwargs)`
_STARS = CO_VARARGS | CO_VARKEYWORDS


def program_of(entry: Entry) -> GuardProgram:
    """The guards of an entry: the core knows no more of them than what it runs."""
    return entry.program  # type: ignore[return-value]


def called_code(code: CodeType, function: Host, args: list[Host]) -> CodeType:
    """The code that the program calls, by which cases are counted.

    All modules are called through one code that only goes on with the call, and so are functions under a decorator.
    """
    if is_continuation(code):
        return code
    called = names_of(code, CallInputs(function, tuple(args))).called
    return code if called is None else called.code


def nearest(entries: Sequence[Entry], function: Host, args: list[Host]) -> Entry:
    """Of the last entries that do not fit a call the one that fails guards of the fewest lines, the last such: others
    are perhaps for another case of what is decided first."""
    if len(entries) == 1:
        return entries[0]
    call, best, fewest = CallInputs(function, tuple(args)), entries[-1], sys.maxsize
    for entry in reversed(entries[-_MOST_COMPARED:]):
        guards = program_of(entry).reference.guards
        lines = len({guard.place() for guard in guards if not guard.check(call)})
        if lines < fewest:
            best, fewest = entry, lines
        if fewest == 1:
            break
    return best


def reason_for(entry: Entry, code: CodeType, function: Host, args: list[Host]) -> RecompileRecord:
    """The first guard of the entry that these arguments fail."""
    program = program_of(entry)
    call = CallInputs(function, tuple(args))
    names = names_of(code, call)
    guard = program.reference.failing(call)
    change = Change("the guards hold now") if guard is None else guard.explain(call, names)
    where = name_and_place(_told_of([called.code for called in names.calls]))
    line = "" if guard is None else guard.place()
    also = ""
    if change.was and change.advice and isinstance(guard, TensorMatch):
        # One graph for all is promised, which other changes forbid.
        also = "; ".join(_other_changes(program, guard, call, names))
    return RecompileRecord(where, change.text, line, change.advice, change.was, change.now, also=also)


def _other_changes(program: GuardProgram, first: TensorMatch, call: CallInputs, names: Names) -> Iterator[str]:
    """What else has changed, that does not follow from how a tensor is another: a few of them."""
    told, tensors = 0, {first.source}
    for guard in program.reference.guards[program.reference.guards.index(first) + 1 :]:
        paths = (path for source in guard.sources for path in (source, *source.others))
        if any(step in tensors for path in paths for step in path.chain()) or guard.check(call):
            continue
        if told == _MOST_CHANGES:
            yield "and more"
            return
        yield guard.explain(call, names).text
        told += 1
        if isinstance(guard, TensorMatch):
            tensors.add(guard.source)


def of_loop(entry: Entry, function: Host, args: list[Host], reason: RecompileRecord) -> RecompileRecord | None:
    """The same reason, with what helps, if it is that a loop has another number of rounds."""
    program = program_of(entry)
    if reason.line not in program.loops:
        return None
    call = CallInputs(function, tuple(args))
    guard = program.reference.failing(call)
    if guard is None or not (guard.counts or isinstance(guard.missing(call), ItemSource)):
        return None
    rounds, operations = program.loops[reason.line]
    if operations < rounds or not rounds:
        return None
    text = f"a loop of {counted(rounds, 'round')}, {counted(operations // rounds, 'operation')} in each"
    before = f"{reason.reason[:-1]}; " if reason.reason.endswith(")") else f"{reason.reason} ("
    return dataclasses.replace(reason, reason=f"{before}{text})", hint=FOR_LOOPS)


def is_long_loop(entry: Entry, line: str) -> bool:
    """Whether the entry has so much of a loop that one is told who has not asked why something is compiled again."""
    return program_of(entry).loops[line][1] >= _LONG_LOOP


def _told_of(codes: list[CodeType]) -> CodeType:
    """The function that was compiled: the outermost of the program's, of those that go on with each other."""
    return next((code for code in codes if is_users(code.co_filename)), codes[-1])


def remedy_for(entry: Entry, function: Host, args: list[Host]) -> str:
    """What helps where that guard fails in call after call, if that is known."""
    program = program_of(entry)
    guard = program.reference.failing(CallInputs(function, tuple(args)))
    return "" if guard is None else guard.remedy


def _continued(called: Called, call: CallInputs) -> Called | None:
    """A frame that goes on with a call of another that goes on (`bytecode.continuation`, mode "call")."""
    names = parameters(called.code) or ()
    if ".callable" not in names:
        return None
    at = names.index(".callable")
    function, args = (call.get(source) for source in called.args[at : at + 2])
    if type(function) is not FunctionType or type(args) is not tuple:
        return None
    source = called.args[at + 1]
    return Called(function.__code__, tuple(ItemSource(source, i) for i in range(len(args))))


def _decorated(called: Called, call: CallInputs) -> Called | None:
    """A function of a library's around one of the program's, which it gives all that it gets: `@torch.no_grad()`."""
    function = call.func
    if type(function) is not FunctionType or called.code is not function.__code__ or is_users(called.code.co_filename):
        return None
    wrapped, named = function.__dict__.get("__wrapped__"), called.code.co_argcount + called.code.co_kwonlyargcount
    if type(wrapped) is not FunctionType or named or called.code.co_flags & _STARS != _STARS:
        return None
    given = call.get(called.args[0])
    assert type(given) is tuple
    return Called(wrapped.__code__, tuple(ItemSource(called.args[0], i) for i in range(len(given))), called.args[1])


def _parameters(code: CodeType) -> Sequence[str] | None:
    """What a frame that goes on is given: variables, and what the program has written for the value it goes on with."""
    names = parameters(code)
    text = "" if names is None else result_text(code)
    return names if not text else [text if name == ".result0" else name for name in names or ()]


FORWARDERS += (_continued, _decorated)
PARAMETERS.append(_parameters)
LOOP_VARIABLES.append(loop_variables)
