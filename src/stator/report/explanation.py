"""What `stator.explain()` found out, as plain data: nothing in it refers to code, guards or graphs that are alive."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from stator.report.guard_records import GuardRecord, GuardRecords
from stator.report.source_lines import line_at
from stator.report.stats import RecompileRecord
from stator.report.words import counted

__all__ = ["BreakSite", "Explanation", "FrameRecord", "GraphRecord", "Offer", "Operation", "StackLine"]


#: so often a function is compiled until it is told that no case has come again
#: at so many lines a function breaks that ordinary Python runs it better
_MANY_LINES = 4
_TOO_OFTEN = 4


@dataclasses.dataclass(frozen=True, slots=True)
class StackLine:
    """A line of the program in execution: file, line, the function that it is in, its text."""

    file: str
    line: int
    function: str
    text: str = ""

    @property
    def place(self) -> str:
        """ "file.py:line" """
        return f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f'File "{self.file}", line {self.line}, in {self.function}\n    {self.text}'


@dataclasses.dataclass(slots=True)  # not frozen: that takes three times as long, and there are thousands
class Operation:
    """One node of a graph.

    Attributes:
        name: of its result in the graph's code.
        kind: "placeholder", "get_attr", "call_function", "call_method" or "call_module".
        target: what is called, or the input.
        code: the expression, as the graph's code has it.
        dtype: of the result, for example "float32"; "" if it is no tensor.
        shape: of the result; sizes that are symbols stand by their names.
        where: "file.py:line" of the program.
    """

    name: str
    kind: str
    target: str
    code: str = ""
    dtype: str = ""
    shape: tuple[int | str, ...] = ()
    where: str = ""

    @property
    def result(self) -> str:
        """The result's type and shape: "float32[2, 3]"."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]" if self.dtype else ""


@dataclasses.dataclass(frozen=True)
class GraphRecord:
    """A graph that a backend was given.

    Attributes:
        inputs: its placeholders.
        ops: what it computes, in order.
        code: readable Python, with the program's lines and the shapes of all results.
        backend: the name of the backend.
        backend_seconds: how long that took to compile it.
    """

    inputs: tuple[Operation, ...]
    ops: tuple[Operation, ...]
    code: str
    backend: str
    backend_seconds: float


@dataclasses.dataclass(frozen=True)
class BreakSite:
    """A graph break, or a frame given up.

    Attributes:
        code: the catalogue's code: `stator why CODE` explains it.
        title: what the code means.
        reason: what happened here, in one sentence.
        hint: what to do about it.
        where: "file.py:line" of the program.
        user_stack: the program's frames, outermost first; empty for a frame given up.
        within: the definition of a caller that runs as ordinary Python since it was compiled too often (SB0501), so
            that what it calls is compiled by itself: with that mended, this break may be gone.
    """

    code: str
    title: str
    reason: str
    hint: str
    where: str
    user_stack: tuple[StackLine, ...] = ()
    within: StackLine | None = None

    @property
    def text(self) -> str:
        """The program's line."""
        return next((line.text for line in reversed(self.user_stack) if line.place == self.where), line_at(self.where))


@dataclasses.dataclass(frozen=True)
class FrameRecord:
    """A frame that was compiled, or given up.

    Attributes:
        function: its qualified name.
        file: where it is defined.
        line: the line of its definition.
        resumed: the line behind a graph break from which it goes on; 0 for a frame from its beginning.
        started: when its trace began, in seconds after the explanation.
        trace_seconds: how long tracing took, without the backend.
        backend_seconds: how long the backend took.
        lines: the lines that were executed symbolically, by file: those that a graph or the trace's end has made part
            of the entry.
        graph: None where nothing was left to compute.
        brk: what ended the graph, if it did not end with the frame.
        guards: what was assumed.
        generated: the Python that runs in the frame's place; "" where the frame runs as it is.
        recompiled: why it was compiled again; None if it was for the first time.
        calls: how many calls have been run by what was compiled.
    """

    function: str
    file: str
    line: int
    resumed: int
    started: float
    trace_seconds: float
    backend_seconds: float
    lines: dict[str, tuple[int, ...]]
    graph: GraphRecord | None
    brk: BreakSite | None
    guards: GuardRecords
    generated: str
    recompiled: RecompileRecord | None
    calls: int = 0

    @property
    def where(self) -> str:
        """Its file and line."""
        return f"{self.file}:{self.line}"

    @property
    def seconds(self) -> float:
        """How long it took to compile it."""
        return self.trace_seconds + self.backend_seconds


@dataclasses.dataclass(frozen=True)
class Offer:
    """A change of the program that would take breaks or recompiles away; not tried yet.

    Attributes:
        code: of what it is about.
        where: "file.py:line" of the program.
        title: what it does.
        diff: the change of the file, as a unified diff.
    """

    code: str
    where: str
    title: str
    diff: str


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What happened when a program was compiled and run once.

    Attributes:
        name: what was explained.
        frames: all frames, in the order in which they were begun.
        breaks: all graph breaks and frames given up, in order.
        recompiles: why frames were compiled again.
        sources: the program's lines, by file and line number, around all that was traced.
        seconds: how long the program took, with all that was compiled.
        patches: changes that may mend breaks and recompiles: `stator explain script.py --fix` tries them.
        result: what the program has returned; it is no part of `to_json()`.

    The names of what `torch._dynamo.explain()` gives are understood: `graph_count`, `graph_break_count`, `op_count`,
    `break_reasons`, `ops_per_graph`, `out_guards`, `compile_times`.
    """

    name: str
    frames: tuple[FrameRecord, ...]
    breaks: tuple[BreakSite, ...]
    recompiles: tuple[RecompileRecord, ...]
    sources: dict[str, dict[int, str]]
    seconds: float
    patches: tuple[Offer, ...] = ()
    result: object = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def graphs(self) -> tuple[GraphRecord, ...]:
        """All graphs, in order."""
        return tuple(frame.graph for frame in self.frames if frame.graph is not None)

    @property
    def graph_count(self) -> int:
        """How many graphs there are."""
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        """How many times a graph was broken, or a frame given up."""
        return len(self.breaks)

    @property
    def op_count(self) -> int:
        """How many operations are in the graphs."""
        return sum(len(graph.ops) for graph in self.graphs)

    @property
    def left_callers(self) -> tuple[StackLine, ...]:
        """The definitions of functions that run as ordinary Python, as they were compiled too often, and whose calls of
        others broke.
        """
        return tuple(dict.fromkeys(site.within for site in self.breaks if site.within is not None))

    def breaks_within(self, caller: StackLine | None) -> tuple[BreakSite, ...]:
        """The breaks of what one of `left_callers` calls; with None those of everything else."""
        return tuple(site for site in self.breaks if site.within == caller)

    @property
    def much_broken(self) -> dict[str, tuple[int, int]]:
        """Functions that others call and that break at many of their lines: how many breaks, and at how many lines."""
        sites: dict[tuple[str, str], list[BreakSite]] = {}
        called = set()
        for site in self.breaks:
            own = next((line for line in reversed(site.user_stack) if line.place == site.where), None)
            if own is not None:
                sites.setdefault((own.file, own.function), []).append(site)
                if own is not site.user_stack[0]:
                    called.add((own.file, own.function))
        counts = {key: (len(found), len({site.where for site in found})) for key, found in sites.items()}
        return {key[1]: count for key, count in counts.items() if key in called and count[1] >= _MANY_LINES}

    @property
    def break_reasons(self) -> tuple[BreakSite, ...]:
        """The same as `breaks`."""
        return self.breaks

    @property
    def ops_per_graph(self) -> list[list[str]]:
        """What each graph calls, in order."""
        return [[op.target for op in graph.ops] for graph in self.graphs]

    @property
    def out_guards(self) -> tuple[GuardRecord, ...]:
        """The guards of all frames."""
        return tuple(guard for frame in self.frames for guard in frame.guards)

    @property
    def trace_seconds(self) -> float:
        """How long tracing took, without the backend."""
        return sum(frame.trace_seconds for frame in self.frames)

    @property
    def backend_seconds(self) -> float:
        """How long the backend took."""
        return sum(frame.backend_seconds for frame in self.frames)

    @property
    def used_once(self) -> tuple[tuple[FrameRecord, ...], ...]:
        """The frames of each function that was compiled for each of several calls: none of them was used again."""
        groups: dict[tuple[str, str, int], list[FrameRecord]] = {}
        for frame in self.frames:
            groups.setdefault((frame.function, frame.where, frame.resumed), []).append(frame)
        calls = {key[:2]: sum(frame.calls for frame in group) for key, group in groups.items() if not key[2]}
        return tuple(
            tuple(group)
            for key, group in groups.items()
            # A loop that breaks goes on as often in one call, which is the only one here.
            if _TOO_OFTEN <= len(group) <= calls.get(key[:2], 0) and all(frame.calls == 1 for frame in group)
        )

    @property
    def headline(self) -> str:
        """What was explained, and how much there is of each kind."""
        counts = [
            counted(len(self.frames), "frame"),
            counted(self.graph_count, "graph"),
            counted(self.op_count, "operation"),
            counted(self.graph_break_count, "graph break"),
            counted(len(self.recompiles), "recompile"),
        ]
        return f"{self.name}: {', '.join(counts)}"

    @property
    def compile_times(self) -> str:
        """Both, in words."""
        return f"{self.trace_seconds:.3f} s of tracing, {self.backend_seconds:.3f} s in the backend"

    def __str__(self) -> str:
        from stator.report import terminal  # the forms are loaded when one is asked for

        return terminal.text(self)

    def print(self, *, everything: bool = False) -> None:
        """Print it: with `rich` on a terminal where that is installed, as plain text otherwise.

        Args:
            everything: all frames, where there are many; otherwise those with breaks, and the dearest.
        """
        from stator.report import terminal

        terminal.show(self, everything=everything)

    def to_json(self) -> str:
        """All of it but the program's result, as a JSON object."""
        fields = {name: value for name, value in vars(self).items() if name != "result"}
        totals = {name: getattr(self, name) for name in ("graph_count", "graph_break_count", "op_count")}
        return json.dumps({**fields, **totals}, default=_as_json)

    def to_html(self, path: str | Path) -> None:
        """Write it as one page of HTML that needs nothing else."""
        from stator.report import page

        Path(path).write_text(page.page(self), encoding="utf-8")


def _as_json(record: Any) -> object:
    """What JSON has for a record."""
    if isinstance(record, GuardRecords):
        return list(record)
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
