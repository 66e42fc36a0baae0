"""The lines of a residual program that call its graph, and what they do if the graph fails.

saved = save(x)
try:
    y, = graph(x)
except Exception:
    undo(saved)
    return tail_call(untraced(f), x)     # ordinary Python executes the frame
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stator._core import raise_unchanged
from stator.bytecode import argument_count, runtime
from stator.guards.source import FunctionSource, LocalSource, Source

if TYPE_CHECKING:
    from types import CodeType

    from stator.codegen.residual import Graph, Recovery
    from stator.codegen.writer import Writer
    from stator.guards.intern import Output

__all__ = ["GraphCall", "arguments", "executed_again"]


def arguments(writer: Writer, code: CodeType) -> list[str]:
    """The arguments of a frame of the code, in the order of its variables."""
    return [writer.source(LocalSource(i, name)) for i, name in enumerate(code.co_varnames[: argument_count(code)])]


def executed_again(writer: Writer, code: CodeType) -> str:
    """The line by which the frame's function is executed as ordinary Python, with its arguments."""
    names = arguments(writer, code)
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


def tell_lost(error: Exception, name: str) -> None:
    """Say in an error of a graph what has not been done, as the frame cannot be executed again."""
    error.add_note(
        f"stator: the graph of {name}() had done what cannot be taken back when this came up, so {name}() was not"
        " executed again as ordinary Python: its `except` blocks, and what it did to other objects before the error,"
        " were left out. A stator.graph_break() in front of the line that fails keeps them."
    )


class GraphCall:
    """The call of a graph.

    Args:
        writer: what the program is written with.
        graph: the graph; None where there is nothing to compute.
    """

    def __init__(self, writer: Writer, graph: Graph | None) -> None:
        self.writer = writer
        self.graph = graph
        #: parameters of the program that stand for several arguments of the graph each
        self._blocks: list[tuple[str, tuple[Source, ...]]] = []

    def lines(
        self, names: list[str], recovery: Recovery | None, checks: list[str], before_leaving: list[str]
    ) -> list[str]:
        """The lines: what the graph gives gets the names, and is checked."""
        assert self.graph is not None
        self.writer.namespace["graph"] = self.graph.callable
        target = f"{', '.join(names)}{',' if len(names) == 1 else ''} = " if names else ""
        call = f"{target}graph({', '.join(self._arguments(self.graph))})"
        if recovery is not None:
            return self._checked(call, checks, recovery, before_leaving)
        told = [f"    {line}" for line in self._told_lost()]
        return ["try:", f"    {call}", "except Exception as error:", *told, "    raise"] if told else [call]

    def handed_over(self) -> tuple[list[str], list[Output]]:
        """The parameters of the program, and where their arguments are found."""
        writer = self.writer
        names = [*writer.params.values(), *(name for name, _ in self._blocks)]
        return names, [*writer.params.keys(), *(block for _, block in self._blocks)]

    def _arguments(self, graph: Graph) -> list[str]:
        args = []
        for item in graph.inputs:
            if isinstance(item, Source):
                args.append(self.writer.source(item))
            else:
                name = self.writer.name("P")
                self._blocks.append((name, item))
                args.append(f"*{name}")
        return args

    def _checked(self, call: str, checks: list[str], recovery: Recovery, before_leaving: list[str]) -> list[str]:
        """The call of the graph, and what to do if it does not bear out what was assumed of its results, or fails.

        Ordinary Python then does it all again, and raises the program's own error where the program would. Where that
        cannot be, the error of the graph itself comes from the program's lines, if they are known.
        """
        writer = self.writer
        trace = writer.trace
        saved, passed = writer.name("saved"), writer.name("passed")
        undo = [f"{recovery.undo}({saved})"] if recovery.undo else []
        again = [*undo, *before_leaving, executed_again(writer, trace.root.code)]
        lines = [f"{saved} = {recovery.save}"] if recovery.save else []
        lines += ["try:", f"    {call}"]
        if checks:
            lines.append(f"    {passed} = {' and '.join(checks)}")
        if recovery.refused:
            lines += ["except Exception as error:", f"    if {recovery.refused.format(saved=saved)}:"]
            lines += [f"        {line}" for line in self._raise_located()]
        else:
            lines.append("except Exception:")
        lines += [f"    if {writer.const(trace.recorder.is_watched)}():", "        raise"]
        lines += [f"    {line}" for line in again]
        if checks:
            lines += [f"if not {passed}:", *(f"    {line}" for line in again)]
        return lines

    def _told_lost(self) -> list[str]:
        """The line that says in an error what is lost by it; none where nothing can be."""
        trace = self.writer.trace
        if not trace.recorder.effects.exposed:
            return []
        code = trace.root.code
        return [f"{self.writer.const(tell_lost)}(error, {code.co_qualname!r})"]

    def _raise_located(self) -> list[str]:
        """An error of the graph, from the program's lines if they are known."""
        told = self._told_lost()
        if self.graph is None or self.graph.located is None:
            return [*told, "raise"]
        frames = f"{self.writer.const(runtime.with_frames)}(error, *{self.writer.const(self.graph.located)}(error))"
        return [*told, frames, f"{self.writer.const(raise_unchanged)}(error)"]
