"""The artifacts that logs show, under the names that TORCH_LOGS has for them: a row each, and the text of an event.

A text comes in three lengths: -1 for less, 0, 1 for more detail.
"""

from __future__ import annotations

import dis
import io
from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, NamedTuple

from stator.report import messages
from stator.report.events import Broke, Called, Compiled, Listener
from stator.report.stats import BreakRecord, RecompileRecord
from stator.space.host_types import Host

if TYPE_CHECKING:
    from stator._core import Entry
    from stator.guards.program import GuardProgram

__all__ = ["ARTIFACTS", "Teller"]

LESS, MORE = -1, 1
_MOST_COUNTED = 10_000


class Artifact(NamedTuple):
    """What can be logged.

    Attributes:
        event: the method of `Listener` that is told of it.
        about: what it is.
        text: of an event, at a length, that has come up so many times; "" for nothing to tell.
    """

    event: str
    about: str
    text: Callable[[Host, int, int], str]


def _told_again(count: int) -> bool:
    """Whether an event is told at its nth time: the first, the tenth, the hundredth …"""
    return str(count).strip("0") == "1"


def _graph_break(event: Broke, length: int, count: int) -> str:
    return f"{event.brk} ({event.where})" if length == LESS else str(messages.broke(event, count))


def _recompile(record: RecompileRecord, length: int, count: int) -> str:
    return f"{record.where}: {record.sentence}" if length == LESS else str(messages.recompiled(record, count))


def _guards(event: Compiled, length: int, count: int) -> str:
    if event.entry is None:
        return ""
    program = _program(event.entry)
    lines = [f"{_name(event.code)}: {len(program.guards)} guards"]
    if length > LESS:
        lines += [f"  {guard}{guard.at()}" for guard in program.guards]
    if length == MORE:
        lines += [f"  hands over {output}" for output in program.outputs]
    return "\n".join(lines)


def _residual(event: Compiled, length: int, count: int) -> str:
    if event.entry is None or event.entry.owner is None:
        return ""
    text: str = event.entry.owner.text
    return f"{_name(event.code)}:" + (f" {len(text.splitlines())} lines" if length == LESS else f"\n{text}".rstrip())


def _bytecode(code: CodeType, length: int, count: int) -> str:
    if length == LESS:
        return f"{_name(code)}: {len(list(dis.get_instructions(code)))} instructions"
    out = io.StringIO()
    dis.dis(code, file=out, depth=None if length == MORE else 0)
    return f"{_name(code)}:\n{out.getvalue().rstrip()}"


def _begun(code: CodeType, length: int, count: int) -> str:
    return f"{_name(code)}: tracing" if length == MORE else ""


def _ended(event: Compiled, length: int, count: int) -> str:
    took = f"{event.seconds:.3f} s, of these {event.backend_seconds:.3f} s in the backend"
    if event.entry is None:
        return f"{_name(event.code)}: runs as ordinary Python ({took})"
    graph = "a graph" if event.backend_seconds else "no graph"
    guards = f", {len(_program(event.entry).guards)} guards" if length > LESS else ""
    return f"{_name(event.code)}: {'compiled' if event.entry.owner else 'left to Python'}, {graph}{guards} ({took})"


def _graph(event: Called, length: int, count: int) -> str:
    nodes = [node for node in event.gm.graph.nodes if node.op not in ("placeholder", "output")]
    if length == LESS:
        return f"graph for {event.backend}: {len(nodes)} operations"
    return f"graph for {event.backend}:\n{event.gm.graph}"


def _graph_code(event: Called, length: int, count: int) -> str:
    if length == LESS:
        return f"graph for {event.backend}:\n{event.gm.code.strip()}"
    detail = {"include_stride": length == MORE, "include_device": length == MORE}
    return f"graph for {event.backend}:\n{event.gm.print_readable(print_output=False, **detail).rstrip()}"


def _graph_sizes(event: Called, length: int, count: int) -> str:
    lines = [f"sizes in the graph for {event.backend}:"]
    for node in event.gm.graph.nodes:
        if length == LESS and node.op != "placeholder":
            break
        example = node.meta.get("val", node.meta.get("example_value"))
        shape = getattr(example, "shape", None)
        if shape is not None:
            strides = f", strides {tuple(example.stride())}" if length == MORE else ""
            lines.append(f"  {node.name}: {tuple(shape)}{strides}")
    return "\n".join(lines)


def _program(entry: Entry) -> GuardProgram:
    program: GuardProgram = entry.program  # type: ignore[assignment]
    return program


def _name(code: CodeType) -> str:
    frame = messages.definition(code)
    return f"{frame.name} ({messages.place(frame)})"


ARTIFACTS: dict[str, tuple[Artifact, ...]] = {
    "graph_breaks": (Artifact("broke", "graph breaks, and frames that are given up", _graph_break),),
    "recompiles": (Artifact("recompiled", "what has changed when a function is compiled again", _recompile),),
    "guards": (Artifact("compiled", "what was assumed, with the line that did", _guards),),
    "graph": (Artifact("called", "the nodes of each graph", _graph),),
    "graph_code": (Artifact("called", "each graph as Python", _graph_code),),
    "graph_sizes": (Artifact("called", "the sizes of the tensors in each graph", _graph_sizes),),
    "bytecode": (Artifact("begun", "the bytecode of what is traced", _bytecode),),
    "residual": (Artifact("compiled", "the Python that was generated", _residual),),
    "trace": (
        Artifact("compiled", "what is traced, and how long it takes", _ended),
        Artifact("begun", "what is traced, and how long it takes", _begun),
    ),
}


class Teller(Listener):
    """Turns events into the texts of those artifacts that are on: one event once, with a count now and then."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, BreakRecord | RecompileRecord], int] = {}

    def length(self, artifact: str) -> int | None:
        """At which length an artifact is told; None where it is off."""
        raise NotImplementedError

    def write(self, artifact: str, event: Host, text: str) -> None:
        """Tell it."""
        raise NotImplementedError

    def begun(self, code: CodeType) -> None:
        self._tell("begun", code)

    def broke(self, event: Broke) -> None:
        self._tell("broke", event, event.record)

    def recompiled(self, record: RecompileRecord) -> None:
        self._tell("recompiled", record, record)

    def called(self, event: Called) -> None:
        self._tell("called", event)

    def compiled(self, event: Compiled) -> None:
        self._tell("compiled", event)

    def _tell(self, kind: str, event: Host, record: BreakRecord | RecompileRecord | None = None) -> None:
        for name, parts in ARTIFACTS.items():
            for part in parts:
                length = self.length(name) if part.event == kind else None
                if length is None:
                    continue
                count = 1 if record is None else self._counted(name, record)
                if length == MORE or _told_again(count):
                    text = part.text(event, length, count)
                    if text:
                        self.write(name, event, text)

    def _counted(self, artifact: str, record: BreakRecord | RecompileRecord) -> int:
        """How often the event has come up since it was listened to."""
        if len(self._counts) > _MOST_COUNTED:
            self._counts.clear()
        count = self._counts[artifact, record] = self._counts.get((artifact, record), 0) + 1
        return count
