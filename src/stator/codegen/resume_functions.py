"""Continuing after a graph break: the continuation of every frame of the chain, with its stack, locals and cells."""

from __future__ import annotations

import contextlib
import linecache
import os
from collections import Counter
from inspect import CO_ASYNC_GENERATOR
from types import CellType, CodeType, FunctionType
from typing import TYPE_CHECKING

from stator._core import called_from
from stator.bytecode.continuation import (
    ResumeMode,
    StackKind,
    continuation,
    continuation_freevars,
    goes_on_with,
    is_continuation,
    make_function,
    original_of,
    raises,
    resume_line,
    variant,
)
from stator.bytecode.decode import decode
from stator.bytecode.liveness import live_names
from stator.guards.source import ItemSource, LocalSource
from stator.interp.frame import host_behind
from stator.interp.handling import ExcInfo, Lasti
from stator.interp.policy import give_up_on
from stator.models.functions.cell import CellValue
from stator.models.numbers.draws import note_drawn
from stator.space.globals_ import made_names
from stator.space.protocol import is_immutable, model_for
from stator.space.value import NULL, Lazy, Value

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.models.functions.suspendable import Suspendable
    from stator.space.interfaces import Frame, Trace, Writer
    from stator.space.signals import FrameState


class ResumeFunction:
    """One frame's continuation: the expression of its function, and those of its stack values and locals."""

    def __init__(self, function: str, state: list[str], code: CodeType) -> None:
        self.function = function
        self.state = state
        self.code = code


def resume_function(
    writer: Writer,
    frame: Frame,
    index: int,
    stack: list[Value],
    *,
    mode: ResumeMode,
    results: int = 1,
    nulls: tuple[int, ...] = (),
    target: int | None = None,
    inner: CodeType | None = None,
) -> ResumeFunction:
    """Emit what the continuation of one frame needs; `inner` is the continuation it calls (mode "call")."""
    kinds, values, raised = stack_state(writer, frame, stack)
    names, locals_ = _locals(writer, frame, index, mode, target)
    code = continuation(
        frame.code,
        index,
        mode=mode,
        stack=kinds,
        names=names,
        results=results,
        target=target,
        cleared=_cleared(frame),
        raised=raised,
    )
    if inner is not None:
        code = variant(code, inner)
    frame.trace.breaks.resumed.append(code)
    note_drawn(code, {name: frame.locals[name] for name in names})
    return ResumeFunction(_function(writer, frame, code), values + locals_, code)


def _cleared(frame: Frame) -> frozenset[str]:
    """Variables with a cell of which an inlined comprehension has emptied the slot."""
    return frozenset(n for n in frame.decoded.cellvars if n not in frame.cells and n not in frame.locals)


def stack_state(
    writer: Writer, frame: Frame, stack: list[Value]
) -> tuple[tuple[StackKind, ...], list[str], tuple[int, ...]]:
    """The kinds of stack entries, the expressions of those that are passed, and what the "lasti" entries name."""
    kinds: list[StackKind] = []
    values: list[str] = []
    raised: list[int] = []
    seen: set[int] = set()
    for entry in stack:
        if entry is NULL:
            kinds.append("null")
        elif isinstance(entry, ExcInfo):
            caught = entry in frame.handling.infos
            kind: StackKind = "value" if not caught else "previous" if id(entry) in seen else "handler"
            seen.add(id(entry))
            kinds.append(kind)
            if kind != "previous":
                # An entry that is no longer a handler's is a value nobody reads.
                values.append(writer.expr(entry.current) if kind == "handler" else "None")
        elif isinstance(entry, Lasti):
            kinds.append("lasti")
            raised.append(entry.index)
        else:
            kinds.append("value")
            values.append(writer.expr(entry))
    return tuple(kinds), values, tuple(raised)


def _locals(
    writer: Writer, frame: Frame, index: int, mode: ResumeMode, target: int | None
) -> tuple[tuple[str, ...], list[str]]:
    starts = {index} if mode in ("enter", "throw") else {index + 1 if target is None else target}
    if mode == "call":
        starts.add(index)
    live: set[str] = set()
    for start in starts:
        live |= live_names(frame.decoded, start)
    names = _restored(frame, live | _held(writer, frame))
    return names, [writer.expr(frame.locals[n]) for n in names]


def _held(writer: Writer, frame: Frame) -> set[str]:
    """Variables not needed any more whose objects nothing but a continuation's frame may keep alive."""
    fresh = frame.trace.classes.fresh  # what they derive from knows of them
    kept = {n for n, v in frame.locals.items() if fresh and not v.lazy and any(v is made for made in fresh.values())}
    # What runs as ordinary Python may have filled it with what notices its end.
    kept |= {n for n, v in frame.locals.items() if v.source is None and writer.is_made(v) and _may_be_filled(v.cls)}
    if frame.trace.finalizers.calls_back:
        kept |= {n for n, v in frame.locals.items() if v.source is None and v is not NULL}
    if not is_continuation(frame.trace.root.code):
        return kept  # the frame that is traced keeps its arguments itself
    arguments = {n: v for n, v in frame.locals.items() if _from_arguments(v.source) and not _timeless(v)}
    return kept | {n for n, v in arguments.items() if not _held_by_caller(frame, v)}


def _held_by_caller(frame: Frame, value: Value) -> bool:
    """Whether a frame that waits for this one has the object in a variable of its own.

    for layer in layers:
        x = layer(x)  # `self` in layer.forward()
    """
    host = host_behind(frame.space, value)
    caller = frame.parent
    while caller is not None:
        if any(v is not NULL and host_behind(frame.space, v) is host for v in caller.locals.values()):
            return True
        caller = caller.parent
    return False


def _may_be_filled(cls: type) -> bool:
    """Whether a new object of the class may come to hold others that go with it."""
    return not is_immutable(cls) and not model_for(cls).CACHED_WEAKLY


def _from_arguments(source: Source | None) -> bool:
    while isinstance(source, ItemSource):
        source = source.base
    return type(source) is LocalSource


def _timeless(value: Value) -> bool:
    return is_immutable(type(value.host) if isinstance(value, Lazy) else value.cls)


def _restored(frame: Frame, live: set[str] | frozenset[str]) -> tuple[str, ...]:
    """The live locals that have a value, those that an inlined comprehension put in a cell's slot included."""
    plain = [n for n in frame.decoded.varnames if n in live and n in frame.locals and frame.locals[n] is not NULL]
    return (*plain, *(n for n in frame.decoded.cellvars if n not in frame.cells and n in frame.locals))


def _function(writer: Writer, frame: Frame, code: CodeType) -> str:
    """The continuation's function: one object for good where it needs no cells."""
    free = continuation_freevars(code)
    if not free and made_names(frame.globals) is None:
        return writer.const(make_function(code, frame.globals), resume_name(code))
    cells = ", ".join(writer.expr(frame.cells.get(name) or CellValue()) for name in free)
    make = writer.const(make_function)
    parts = f"{writer.const(code)}, {writer.globals(frame.globals)}, ({cells},)"
    return writer.assign(resume_name(code), f"{make}({parts})")


def resume_name(code: CodeType) -> str:
    """What a continuation is called: by the line at which it goes on, or at which an exception has come up."""
    verb = "raise_in" if raises(code) else "resume"
    return f"{verb}_{code.co_name.strip('<>')}_at_{resume_line(code)}"


def heading(code: CodeType) -> tuple[str, list[str]]:
    """What the program for a frame of this code is called, and the line of the user's that it begins with."""
    if is_continuation(code):
        return resume_name(code), [comment(code, resume_line(code))]
    return code.co_name.strip("<>"), []


def comment(code: CodeType, line: int) -> str:
    """A line of the program as a comment."""
    text = " ".join(linecache.getline(code.co_filename, line).split())
    return f"# {code.co_filename.rpartition(os.sep)[2]}:{line}: {text[:_LONGEST_COMMENT]}"


_LONGEST_COMMENT = 90
#: the parser takes about 200 levels of parentheses
_DEEPEST = 50


def _level(level: ResumeFunction, payload: list[str]) -> str:
    return f"({level.function}, ({''.join(f'{part}, ' for part in [*payload, *level.state])}))"


def nested(levels: list[tuple[FunctionType, tuple[object, ...]]]) -> tuple[object, ...]:
    """Arguments for `run`, from those of each continuation, innermost first."""
    function, args = levels[0]
    for outer, state in levels[1:]:
        function, args = outer, (function, args, *state)
    return (function, *args)


def resume_chain(writer: Writer, functions: list[ResumeFunction], payload: list[str]) -> str:
    """Arguments for `run`: the outermost continuation, which calls the next inner one, and so on to the innermost."""
    if len(functions) > _DEEPEST:
        levels = ", ".join(_level(n, payload if n is functions[0] else []) for n in functions)
        return f"*{writer.const(nested)}([{levels}])"
    args = ", ".join([*payload, *functions[0].state])
    function = functions[0].function
    for outer in functions[1:]:
        inner = f"({args},)" if args else "()"
        args = ", ".join([function, inner, *outer.state])
        function = outer.function
    return f"{function}, {args}" if args else function


def outer_resume_functions(writer: Writer, states: list[FrameState], inner: CodeType) -> list[ResumeFunction]:
    """The continuations of the frames around the innermost one, whose own continuation is `inner`."""
    functions: list[ResumeFunction] = []
    deeper = _gone_deeper(writer.trace, inner, states)
    for s in states:
        functions.append(resume_function(writer, s.frame, s.instr.index, s.stack, mode="call", inner=inner))
        inner = functions[-1].code
        if s.frame is deeper:
            give_up_on(inner, "it waits for a call of itself, which is traced for itself")
    return functions


def _gone_deeper(trace: Trace, innermost: CodeType, states: list[FrameState]) -> Frame | None:
    """The frame, of those that were gone on with, from which a recursion has gone deeper in this trace.

    It waits as ordinary Python for the calls inside: so what goes on at the next break does not grow with the depth.
    """
    resumed = Counter(goes_on_with(code) for code in trace.calls.codes.values() if is_continuation(code))
    waiting = Counter([goes_on_with(innermost), *(goes_on_with(s.frame.code) for s in states)])
    for s in states:
        code = goes_on_with(s.frame.code)
        if is_continuation(s.frame.code) and waiting[code] > resumed[code]:
            return s.frame
    return None


def callers(writer: Writer, states: list[FrameState]) -> str:
    """Arguments for `run`: the call after them finds the program's frames above it, with what is live there."""
    places, values = [], []
    for state in reversed(states):
        frame = state.frame
        code, at = original_of(frame.code, state.instr.index)
        held = _variables(writer, frame, state.instr.index)
        slots = [(slot, held[name]) for slot, name in enumerate(_slot_names(code)) if name in held]
        values += [text for _, text in slots]
        function = _frame_function(writer, frame, code)
        places.append(f"({function}, {decode(code).instrs[at].offset}, {tuple(slot for slot, _ in slots)})")
    return f"{writer.const(called_from)}, ({', '.join(places)},), ({''.join(f'{v}, ' for v in values)})"


def _variables(writer: Writer, frame: Frame, index: int) -> dict[str, str]:
    """The live variables of a frame, and its cells."""
    names, values = _locals(writer, frame, index, "value", None)
    cells = {name: writer.expr(cell) for name, cell in frame.cells.items()}
    return {**dict(zip(names, values, strict=True)), **cells}


def _slot_names(code: CodeType) -> tuple[str, ...]:
    names = code.co_varnames + tuple(name for name in code.co_cellvars if name not in code.co_varnames)
    return names + code.co_freevars


def _frame_function(writer: Writer, frame: Frame, code: CodeType) -> str:
    """A function with the code and the globals of a frame."""
    cells = tuple(CellType() for _ in code.co_freevars)
    if made_names(frame.globals) is None:
        return writer.const(make_function(code, frame.globals, cells), frame.code.co_name)
    return (
        f"{writer.const(make_function)}({writer.const(code)}, {writer.globals(frame.globals)}, {writer.const(cells)})"
    )


def suspended_generator(writer: Writer, value: Suspendable) -> str:
    """A generator of the traced program that is still suspended, as a real one."""
    frame = value.frame
    if frame is None:
        assert value.names is not None
        called = ", ".join([writer.expr(name) for name in value.names])
        return writer.assign("finished", f"{writer.const(finished)}({writer.const(value.code)}, {called})")
    if not value.started:
        return writer.assign(frame.code.co_name, _first_call(writer, frame))
    index = frame.index - 1
    kinds, values, raised = stack_state(writer, frame, frame.stack)
    live = live_names(frame.decoded, frame.index) | live_names(frame.decoded, index)
    names = _restored(frame, live)
    code = continuation(
        frame.code,
        index,
        mode="value",
        stack=kinds,
        names=names,
        generator=True,
        cleared=_cleared(frame),
        raised=raised,
    )
    args = ", ".join(values + [writer.expr(frame.locals[n]) for n in names])
    name = writer.assign(frame.code.co_name, f"{_function(writer, frame, code)}({args})")
    writer.line(value.first_step(writer, name))
    return name


def _first_call(writer: Writer, frame: Frame) -> str:
    """The call that makes a generator nobody has advanced yet."""
    code = frame.code
    bound: dict[str, Value] = frame.locals
    names = code.co_varnames
    parts = [writer.expr(bound[n]) for n in names[: code.co_argcount]]
    slot = code.co_argcount + code.co_kwonlyargcount
    if code.co_flags & 0x04:
        parts.append(f"*{writer.expr(bound[names[slot]])}")
        slot += 1
    keyword_only = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    parts += [f"{n}={writer.expr(bound[n])}" for n in keyword_only]
    if code.co_flags & 0x08:
        parts.append(f"**{writer.expr(bound[names[slot]])}")
    return f"{writer.expr(frame.function)}({', '.join(parts)})"


def finished(code: CodeType, name: str, qualname: str) -> object:
    """A generator, coroutine or async generator of this code and these names that has nothing more to give."""
    function = make_function(code, {}, tuple(CellType() for _ in code.co_freevars))
    function.__name__, function.__qualname__ = name, qualname
    keyword_only = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    made = function(*[None] * code.co_argcount, **dict.fromkeys(keyword_only))
    if code.co_flags & CO_ASYNC_GENERATOR:
        with contextlib.suppress(StopIteration):
            made.aclose().send(None)
    else:
        made.close()
    return made


__all__ = ["ResumeFunction", "outer_resume_functions", "resume_chain", "resume_function", "suspended_generator"]
