"""Assembling the residual program of one trace: graph, effects, then the return, the raise or the break."""

from __future__ import annotations

import itertools
import linecache
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from stator import errors
from stator._core import call_traced, tail_call
from stator.bytecode import runtime
from stator.codegen.graph_call import GraphCall, arguments, executed_again
from stator.codegen.locked import Locked, as_tuple
from stator.codegen.native_calls import NATIVE, Native
from stator.codegen.residual import Graph, Residual
from stator.codegen.resume_functions import (
    ResumeFunction,
    callers,
    comment,
    heading,
    outer_resume_functions,
    resume_chain,
    resume_function,
)
from stator.codegen.writer import Writer
from stator.guards.raw import is_heap_type
from stator.guards.source import FunctionSource
from stator.interp.policy import give_up_on, is_library
from stator.models.stdlib.critical_section import CriticalSection
from stator.space.signals import FrameState
from stator.space.value import NULL, Unsupported, Value

if TYPE_CHECKING:
    from stator.space import interfaces
    from stator.space.interfaces import Trace

_serial = itertools.count()

_FIRST = "its first instruction cannot be traced"


class Program:
    """Builds the residual program of a finished trace.

    Args:
        trace: the trace, at its end.
        name: what the traced function is called.
    """

    def __init__(self, trace: Trace, name: str) -> None:
        self.trace = trace
        self.writer = Writer(trace)
        self.writer.namespace |= {"run": call_traced, "tail_call": tail_call}
        self.name = name
        code = trace.root.code
        if is_library(code) and trace.root.names.called is not None:
            code = trace.root.names.called.code  # the program's own, behind one of a library's
        own, self.begin = heading(code)
        self.own_name = self.writer.name(own or "f")
        self.epilogue: list[str] = []
        self.section = trace.extension(CriticalSection)

    def note_variables(self, frame: interfaces.Frame) -> None:
        """What the graph gives for a variable of this frame is called as the variable is."""
        self.writer.variables |= {id(value): name for name, value in frame.locals.items() if not value.lazy}

    # -- the three ways a trace ends --------------------------------------------------------------------------------

    def returns(self, value: Value) -> Residual:
        """The frame has returned."""
        result = self.writer.expr(value)
        self.epilogue = self._effects()
        self.epilogue.append(f"return {result}")
        return self._finish()

    def raises(self, value: Value) -> Residual:
        """An exception leaves the frame."""
        exc = self.writer.expr(value)
        self.epilogue = self._effects()
        self.epilogue.append(f"raising = [{exc}]")
        if exc not in self.writer.namespace:  # the traceback leads to this frame: the exception must not be found in it
            self.epilogue.append(f"del {exc}")
        self.epilogue.append(f"{self.writer.const(runtime.leave_with)}(raising)")
        return self._finish()

    def breaks(self, states: list[FrameState]) -> Residual:
        """A graph break: `states` innermost first."""
        leaf, outer = states[0], states[1:]
        for state in reversed(states):
            state.frame.afterlife.resumed = True
            self.note_variables(state.frame)
        if leaf.mode == "enter" or leaf.instr.op not in NATIVE or _shows_frame(leaf):
            self._enter(leaf, outer)
        else:
            self._native(leaf, outer)
        return self._finish()

    def _enter(self, leaf: FrameState, outer: list[FrameState]) -> None:
        """Go on at the very instruction: traced again after a forced break, else given up on and run as it is."""
        first = resume_function(self.writer, leaf.frame, leaf.instr.index, leaf.stack, mode="enter")
        go_on = self._chain(first, [], outer)
        self._make_subclasses()
        self.epilogue = self._effects()
        if leaf.mode != "enter":
            give_up_on(first.code, _FIRST)
            if outer and first.code is leaf.frame.code:
                # A continuation that begins here was inlined: the program would come back to itself for ever.
                raise Unsupported(errors.FrameGivenUp(first.code.co_qualname, _FIRST))
        self.epilogue.append(f"return tail_call({go_on})")

    def _native(self, leaf: FrameState, outer: list[FrameState]) -> None:
        """Execute the instruction as ordinary Python, then go on with what it gave, or raised."""
        writer = self.writer
        native = Native(leaf, writer)
        NATIVE[leaf.instr.op](native)
        index = leaf.instr.index
        thrown = resume_function(
            writer, leaf.frame, index, leaf.stack[: leaf.instr.handler.depth if leaf.instr.handler else 0], mode="throw"
        )
        after, payload = self._results(native, leaf)
        on_error = self._chain(thrown, ["error"], outer)
        go_on = self._chain(after, payload, outer)
        jump = "" if native.jump is None else self._chain(*self._jump(native, leaf), outer)
        call = self._called_natively(native, [leaf, *outer])
        self._make_subclasses()
        self.epilogue = self._effects()
        self.epilogue.append(comment(leaf.frame.code, leaf.instr.line or leaf.frame.code.co_firstlineno))
        self.epilogue += ["try:", f"    result = {call}", "except BaseException as error:"]
        self.epilogue.append(f"    error = {writer.const(runtime.thrown)}(error)")
        self.epilogue.append(f"    return tail_call({on_error})")
        if native.unpacks:
            self.epilogue.append(f"{', '.join(p for p in payload)}{',' if payload else '[]'} = result")
        if native.jump is not None:
            self.epilogue += [f"if {native.jump[0]}:", f"    return tail_call({jump})"]
        self.epilogue.append(f"return tail_call({go_on})")

    def _called_natively(self, native: Native, states: list[FrameState]) -> str:
        """The call of the instruction's operation, with the hook on: it finds the program's frames above it, and the
        exception that the innermost is handling."""
        around = [callers(self.writer, states)]
        handled = states[0].frame.handling.current
        if handled is not None:
            around = [self.writer.const(runtime.handling), self.writer.expr(handled), *around]
        return f"run({', '.join([*around, *native.call])})"

    def _make_subclasses(self) -> None:
        """Make the classes that nobody refers to any more: the classes they derive from know of them."""
        fresh = self.trace.classes.fresh
        for cls, value in fresh.items():
            bases = [base for base in cls.__bases__ if is_heap_type(base)]
            if any(base not in fresh or self.writer.is_made(fresh[base]) for base in bases):
                self.writer.expr(value)

    def _chain(self, innermost: ResumeFunction, payload: list[str], outer: list[FrameState]) -> str:
        functions = [innermost, *outer_resume_functions(self.writer, outer, innermost.code)]
        if self.trace.recorder is not None and functions[-1].code is self.trace.root.code:
            self.trace.recorder.goes_round = True
        return resume_chain(self.writer, functions, payload)

    def _results(self, native: Native, leaf: FrameState) -> tuple[ResumeFunction, list[str]]:
        """The continuation after the instruction; NULLs among its results go below or above the payload."""
        writer, stack = self.writer, list(native.stack)
        results = native.results
        payload = [r for r in results if r is not None]
        if None in results:
            # A NULL above the result cannot be a stack entry below it: the pair is passed as stack entries.
            return self._with_null(native, leaf, stack)
        return resume_function(writer, leaf.frame, leaf.instr.index, stack, mode="value", results=len(payload)), payload

    def _with_null(self, native: Native, leaf: FrameState, stack: list[Value]) -> tuple[ResumeFunction, list[str]]:
        if native.results[0] is None:
            after = resume_function(self.writer, leaf.frame, leaf.instr.index, [*stack, NULL], mode="value", results=1)
            return after, ["result"]
        placeholder = _Named("result")
        after = resume_function(
            self.writer, leaf.frame, leaf.instr.index, [*stack, placeholder, NULL], mode="value", results=0
        )
        return after, []

    def _jump(self, native: Native, leaf: FrameState) -> tuple[ResumeFunction, list[str]]:
        assert native.jump is not None
        _, target, results = native.jump
        stack = list(native.stack)
        if results == ["drop"]:
            stack.pop()
            results = []
        taken = resume_function(
            self.writer, leaf.frame, leaf.instr.index, stack, mode="value", results=len(results), target=target
        )
        return taken, results

    # -- putting it together ----------------------------------------------------------------------------------------

    def _effects(self) -> list[str]:
        recorder = self.trace.recorder
        lines = self.trace.effects.prepare(self.writer)
        self.section.note_lines(len(lines))
        return lines if recorder is None else lines + recorder.state_lines(self.writer)

    def _finish(self) -> Residual:
        writer, recorder = self.writer, self.trace.recorder
        around = None if recorder is None else recorder.around(writer)
        self._refuse_left_open()
        outputs = writer.outputs
        checks = [] if recorder is None else recorder.checked(writer)
        graph: Graph | None = None if recorder is None else recorder.finish(outputs)
        locked = self._locked(graph is not None) if self.section else None
        if locked is not None and around is not None:
            raise Unsupported(errors.UnsupportedObject("a lock, which is taken while a function mode is active,"))
        if locked is not None and not locked.first:
            checks = [*checks, locked.taken]
        call, head = GraphCall(writer, graph), list[str]()
        if graph is not None:
            recovery = graph.recovery(recorder, writer, checked=bool(checks))
            if checks and recovery is None:
                raise errors.InternalError("assumptions of a graph that cannot be thrown away")
            before_leaving = [*([around[1]] if around else []), *([] if locked is None else locked.given_back)]
            head = call.lines([writer._names[id(v)] for v in outputs], recovery, checks, before_leaving)
        elif outputs:
            raise errors.InternalError("values of a graph that was not compiled")
        params, sources = call.handed_over()
        body = [line for line in self.begin if line not in self.epilogue]
        body += [*writer.first, *self._body(params, head, locked, around)]
        function, text = self._compiled(params, body)
        return Residual(function, text, sources, graph, self.trace.config)

    def _refuse_left_open(self) -> None:
        """Break where a generator would be closed by nobody, as generated code does not make it."""
        for generator in (*self.trace.finalizers.suspended_in_finally, *self.trace.finalizers.pending_close):
            if not self.writer.is_made(generator):
                name = generator.frame.code.co_qualname
                raise Unsupported(errors.LifetimeObserved(f"generator {name}, left within a `try` or a `with`,"))

    def _body(
        self, params: list[str], head: list[str], locked: Locked | None, around: tuple[str, str] | None
    ) -> list[str]:
        """The graph, what is made of its results, and what is left to do; under locks, or inside of `around`."""
        made = self.writer.lines
        if locked is not None:
            return locked.body(params, head, made, self.epilogue)
        if around is None:
            return head + made + self.epilogue
        inside = [f"    {line}" for line in head + made or ["pass"]]
        return [around[0], "try:", *inside, "except BaseException:", f"    {around[1]}", "    raise", *self.epilogue]

    def _compiled(self, params: list[str], body: list[str]) -> tuple[Callable[..., object], str]:
        """The function, and its text, which tracebacks show."""
        name, namespace = self.own_name, self.writer.namespace
        text = f"def {name}({', '.join(params)}):\n" + "".join(f"    {line}\n" for line in body)
        filename = f"<stator {self.name} {next(_serial)}>"
        exec(compile(text, filename, "exec", dont_inherit=True), namespace)
        function: Callable[..., object] = namespace[name]
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        weakref.finalize(function, linecache.cache.pop, filename, None).atexit = False
        return function, text

    def _locked(self, has_graph: bool) -> Locked:
        """The existing locks that the program takes."""
        writer, code = self.writer, self.trace.root.code
        called = f"{writer.source(FunctionSource())}, {as_tuple(arguments(writer, code))}"
        first = self.section.around_graph or not has_graph
        return Locked(self.section, writer, called, executed_again(writer, code) if first else "")


#: functions that look at the frame which calls them
_FRAME_READERS = frozenset(map(id, (eval, exec, locals, globals, vars, dir, sys._getframe, sys._current_frames)))


def _shows_frame(leaf: FrameState) -> bool:
    """Whether the instruction is a call that must be made by a frame with the variables of the program's own."""
    return leaf.instr.op.startswith("CALL") and any(id(entry.host) in _FRAME_READERS for entry in leaf.stack)


class _Named(Value):
    """A result of the native operation, by the name it has in the generated program."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.cls = object
        self.source = None
        self.text = text

    def reconstruct(self, writer: interfaces.Writer) -> str:
        return self.text
