"""Assembling the residual program of one trace: graph, effects, then the return, the raise or the break."""

from __future__ import annotations

import functools
import itertools
import linecache
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from stator import errors
from stator._core import CodePolicy, call_traced, raise_unchanged, set_code_policy, tail_call
from stator.bytecode import argument_count, runtime
from stator.codegen.locked import Locked, as_tuple
from stator.codegen.native_calls import NATIVE, Native
from stator.codegen.resume_functions import (
    ResumeFunction,
    callers,
    outer_resume_functions,
    resume_chain,
    resume_function,
)
from stator.codegen.writer import Writer
from stator.guards.raw import is_heap_type
from stator.guards.source import FunctionSource, LocalSource, Source
from stator.interp.policy import GIVEN_UP
from stator.models.stdlib.critical_section import CriticalSection
from stator.space.signals import FrameState
from stator.space.value import NULL, Unsupported, Value

if TYPE_CHECKING:
    from stator.config import Config
    from stator.guards.intern import Output
    from stator.space import interfaces
    from stator.space.interfaces import Trace

_serial = itertools.count()


class Recovery(Protocol):
    """What is done about a graph that fails; see `stator.pytorch.graph.undo.Recovery`."""

    save: str
    undo: str
    refused: str


class Graph(Protocol):
    """A compiled graph; see `stator.pytorch.graph.compiled_graph.CompiledGraph`."""

    callable: Callable[..., object]
    inputs: list[Output]
    located: Callable[[BaseException], object] | None
    gm: Any

    def recovery(self, recorder: Any, writer: interfaces.Writer, *, checked: bool) -> Recovery | None:
        """What generated code does about a failure of the graph, or of checks of its results."""


class Residual:
    """A generated program: its callable, its source text, what it must be handed, the graph inside it, and the settings
    that it was made under."""

    def __init__(
        self,
        function: Callable[..., object],
        text: str,
        outputs: Sequence[Output],
        graph: Graph | None,
        config: Config,
    ) -> None:
        self.function = function
        self.text = text
        self.outputs = outputs
        self.graph = graph
        self.config = config


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
        self.own_name = self.writer.name(name.rpartition(".")[2].strip("<>") or "f")
        self.epilogue: list[str] = []
        self.section = trace.extension(CriticalSection)

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
        for state in states:
            state.frame.afterlife.resumed = True
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
            set_code_policy(first.code, CodePolicy.SKIP)
            GIVEN_UP.keep(first.code, True)
            if outer and first.code is leaf.frame.code:
                # A continuation that begins here was inlined: the program would come back to itself for ever.
                raise Unsupported(errors.FrameGivenUp(first.code.co_qualname, "its first instruction cannot be traced"))
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
        return resume_chain(
            self.writer, [innermost, *outer_resume_functions(self.writer, outer, innermost.code)], payload
        )

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
        writer = self.writer
        around = None if self.trace.recorder is None else self.trace.recorder.around(writer)
        for generator in (*self.trace.finalizers.suspended_in_finally, *self.trace.finalizers.pending_close):
            if not writer.is_made(generator):
                name = generator.frame.code.co_qualname
                raise Unsupported(errors.LifetimeObserved(f"generator {name}, left within a `try` or a `with`,"))
        outputs = writer.outputs
        checks = self.trace.recorder.checked(writer) if self.trace.recorder is not None else []
        names = [writer._names[id(v)] for v in outputs]
        graph: Graph | None = None
        head: list[str] = []
        blocks: list[tuple[str, tuple[Source, ...]]] = []
        if self.trace.recorder is not None:
            graph = self.trace.recorder.finish(outputs)
        locked = self._locked(graph is not None) if self.section else None
        if locked is not None and around is not None:
            raise Unsupported(errors.UnsupportedObject("a lock, which is taken while a function mode is active,"))
        if locked is not None and not locked.first:
            checks = [*checks, locked.taken]
        if graph is not None:
            args = self._graph_args(graph.inputs, blocks)
            writer.namespace["graph"] = graph.callable
            target = f"{', '.join(names)}{',' if len(names) == 1 else ''} = " if names else ""
            head.append(f"{target}graph({', '.join(args)})")
            recovery = graph.recovery(self.trace.recorder, writer, checked=bool(checks))
            if recovery is not None:
                before = [*([around[1]] if around else []), *([] if locked is None else locked.given_back)]
                head = self._checked(head[0], checks, recovery, graph, before)
            elif checks:
                raise errors.InternalError("assumptions of a graph that cannot be thrown away")
        elif names:
            raise errors.InternalError("values of a graph that was not compiled")
        params = [*writer.params.values(), *(name for name, _ in blocks)]
        sources: list[Output] = [*writer.params.keys(), *(block for _, block in blocks)]
        if locked is not None:
            body = locked.body(params, head, writer.lines, self.epilogue)
        elif around is not None:
            inside = _indented(head + writer.lines or ["pass"])
            undone = ["except BaseException:", f"    {around[1]}", "    raise"]
            body = [around[0], "try:", *inside, *undone, *self.epilogue]
        else:
            body = head + writer.lines + self.epilogue
        body = writer.first + body
        safe = self.own_name
        text = f"def {safe}({', '.join(params)}):\n" + "".join(f"    {line}\n" for line in body)
        filename = f"<stator {self.name} {next(_serial)}>"
        exec(compile(text, filename, "exec", dont_inherit=True), writer.namespace)
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        weakref.finalize(writer.namespace[safe], linecache.cache.pop, filename, None).atexit = False
        return Residual(writer.namespace[safe], text, sources, graph, self.trace.config)

    def _checked(
        self, call: str, checks: list[str], recovery: Recovery, graph: Graph, before_leaving: list[str]
    ) -> list[str]:
        """The call of the graph, and what to do if it does not bear out what was assumed of its results, or fails.

        Ordinary Python then does it all again, and raises the program's own error where the program would. Where that
        cannot be, the error of the graph itself comes from the program's lines, if they are known.
        """
        writer = self.writer
        saved, passed = writer.name("saved"), writer.name("passed")
        undo = [f"{recovery.undo}({saved})"] if recovery.undo else []
        again = [*undo, *before_leaving, self._again()]
        lines = [f"{saved} = {recovery.save}"] if recovery.save else []
        lines += ["try:", f"    {call}"]
        if checks:
            lines.append(f"    {passed} = {' and '.join(checks)}")
        if recovery.refused:
            lines += ["except Exception as error:", f"    if {recovery.refused.format(saved=saved)}:"]
            lines += [f"        {line}" for line in self._raise_located(graph)]
        else:
            lines.append("except Exception:")
        lines += [f"    if {writer.const(self.trace.recorder.is_watched)}():", "        raise"]
        lines += [f"    {line}" for line in again]
        if checks:
            lines += [f"if not {passed}:", *(f"    {line}" for line in again)]
        return lines

    def _locked(self, has_graph: bool) -> Locked:
        """The existing locks that the program takes."""
        called = f"{self.writer.source(FunctionSource())}, {as_tuple(self._arguments())}"
        first = self.section.around_graph or not has_graph
        return Locked(self.section, self.writer, called, self._again() if first else "")

    def _arguments(self) -> list[str]:
        """The arguments of the frame, in the order of its variables."""
        code = self.trace.root.code
        return [
            self.writer.source(LocalSource(i, name)) for i, name in enumerate(code.co_varnames[: argument_count(code)])
        ]

    def _again(self) -> str:
        """The line by which the frame's function is executed as ordinary Python, with its arguments."""
        writer, code = self.writer, self.trace.root.code
        names = self._arguments()
        positional, keywords = code.co_argcount, code.co_kwonlyargcount
        parts = names[:positional]
        rest = names[positional + keywords :]
        if code.co_flags & 0x04:
            parts.append(f"*{rest.pop(0)}")
        named = [f"{k}={v}" for k, v in zip(code.co_varnames[positional:], names[positional : positional + keywords])]
        if code.co_flags & 0x08:
            named.append(f"**{rest.pop(0)}")
        again = f"{writer.const(runtime.untraced)}({writer.source(FunctionSource())})"
        if named:  # a tail call has none
            again = f"{writer.const(functools.partial)}({', '.join([again, *named])})"
        return f"return tail_call({', '.join([again, *parts])})"

    def _raise_located(self, graph: Graph) -> list[str]:
        """An error of the graph, from the program's lines if they are known."""
        if graph.located is None:
            return ["raise"]
        frames = f"{self.writer.const(runtime.with_frames)}(error, *{self.writer.const(graph.located)}(error))"
        return [frames, f"{self.writer.const(raise_unchanged)}(error)"]

    def _graph_args(self, inputs: list[Output], blocks: list[tuple[str, tuple[Source, ...]]]) -> list[str]:
        args = []
        for item in inputs:
            if isinstance(item, Source):
                args.append(self.writer.source(item))
            else:
                name = self.writer.name("P")
                blocks.append((name, item))
                args.append(f"*{name}")
        return args


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


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
