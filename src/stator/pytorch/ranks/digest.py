"""What a rank tells the others of a frame that it has compiled: its collectives, and how it came to them."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
import torch.fx

from stator.bytecode.continuation import original_of, unvaried
from stator.guards.guard import CodeIs
from stator.pytorch.distributed.operators import calls_in, communicates
from stator.report.graphs import line_of

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from stator._core import Entry
    from stator.guards.base import Guard
    from stator.guards.program import GuardProgram
    from stator.pytorch.types import Host
    from stator.report.events import Broke

__all__ = ["Collective", "Digest", "Post", "digest_of", "family", "own_place", "place", "remember"]

#: what each rank gives to these, and gets, may be of other sizes
_UNEVEN = frozenset({"all_to_all", "gather", "scatter", "permute", "send", "recv"})
_VARIANTS = re.compile("(_into_tensor|_tensor|_single|_coalesced|_object|_out|_base|_autograd)+$")
#: what names an object of this process alone
_OWN = re.compile(r"0x[0-9a-f]+|\b\d{9,}\b")
_LIBRARIES = tuple(
    os.path.dirname(path) + os.sep for path in (torch.__file__, os.path.dirname(os.path.dirname(__file__)))
)


class Collective(NamedTuple):
    """One collective of a graph.

    Attributes:
        op: its name, without the variant of the interface: `all_gather_into_tensor` is an all_gather.
        group: the name of its group.
        what: what else must be the same on all ranks, as text.
        size: how many elements a rank gives; None where ranks may differ, or nobody knows.
        varies: whether later calls of the same graph may have another size.
        where: "file.py:line" of the program.
    """

    op: str
    group: str
    what: str
    size: int | None
    varies: bool
    where: str

    def agrees(self, other: Collective) -> bool:
        """Whether the two meet as one collective."""
        return self[:3] == other[:3] and (None in (self.size, other.size) or self.size == other.size)

    def of_any_call(self) -> Collective:
        """What is the same in all calls of the graph."""
        return Collective(self.op, self.group, self.what, None if self.varies else self.size, self.varies, self.where)

    def __str__(self) -> str:
        size = "" if self.size is None else f" of {self.size} elements"
        return f"{self.op}({self.what}){size} in group {self.group!r} at {self.where}"


class Post(NamedTuple):
    """Collectives that come next on a rank; whether the function that they are in ends behind them."""

    rank: int
    collectives: tuple[Collective, ...]
    ends: bool

    def dump(self) -> str:
        return json.dumps(self, separators=(",", ":"))

    @classmethod
    def load(cls, text: str) -> Post:
        return cls.of(json.loads(text))

    @classmethod
    def of(cls, fields: list[Any]) -> Post:
        """From what JSON makes of it."""
        rank, collectives, ends = fields
        return cls(rank, tuple(Collective(*each) for each in collectives), ends)


class Digest(NamedTuple):
    """A frame that has been compiled.

    Attributes:
        function: its name and place, the same on all ranks and for all parts of a function that is resumed.
        collectives: those of its graph.
        ends: whether it returns, instead of going on behind a break.
        evidence: the text and the line of what decided about the graph: guards, operations, the break.
    """

    function: str
    collectives: tuple[Collective, ...]
    ends: bool
    evidence: list[list[str]]


def digest_of(code: CodeType, entry: Entry, breaks: list[Broke]) -> Digest:
    """What there is to tell of a frame."""
    original = original_of(unvaried(code), 0)[0]
    function = f"{original.co_qualname} ({place(original.co_filename, original.co_firstlineno)})"
    graph = entry.owner.graph
    gm = None if graph is None else graph.gm
    program = cast("GuardProgram", entry.program)
    evidence = [[f"guard {_OWN.sub('…', str(guard))}", at] for guard in program.guards if (at := _at(guard))]
    nodes = list(_nodes(gm)) if isinstance(gm, torch.fx.GraphModule) else []
    evidence += [[f"operation {_OWN.sub('…', str(node.target))}", _line(node)] for node in nodes]
    for broke in breaks:
        reason = _OWN.sub("…", broke.brk.reason)
        evidence.append([f"break {broke.brk.code}: {reason}", os.path.basename(broke.where)])
    return Digest(
        function, tuple(_collective(node) for node in nodes if communicates(node.target)), not breaks, evidence
    )


def remember(gm: torch.fx.GraphModule) -> None:
    """Have the metadata of collectives made as long as it can be."""
    for node in _nodes(gm):
        if communicates(node.target):
            for given in node.all_input_nodes:
                given.meta.get("example_value")


def family(name: str) -> str:
    """A collective's name without the variant of the interface."""
    return _VARIANTS.sub("", name.rstrip("_"))


def place(filename: str, line: int | str) -> str:
    """A line of the program, as all hosts call it."""
    return f"{os.path.basename(filename)}:{line}"


def own_place(frame: FrameType | None) -> str:
    """The innermost line of the program's own that a frame is called from."""
    while frame is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame = frame.f_back
    return "?" if frame is None else place(frame.f_code.co_filename, frame.f_lineno)


def _at(guard: Guard) -> str:
    """The line that a guard is about, if it is one of the program's own."""
    where = guard.where
    if not isinstance(where, tuple) or guard.op == CodeIs.op or where[0].co_filename.startswith(_LIBRARIES):
        return ""  # which code it is tells where a function is resumed, which is no reason
    return place(where[0].co_filename, where[1])


def _nodes(gm: torch.fx.GraphModule) -> Iterator[torch.fx.Node]:
    """The calls in a graph, and in those that it calls."""
    return calls_in(gm.graph.nodes, functools.partial(getattr, gm))


def _collective(node: torch.fx.Node) -> Collective:
    op = family(str(node.target).split(".")[1])
    arguments: list[Any] = [*node.args, *node.kwargs.values()]
    given, group = arguments[:-1], arguments[-1]
    first = given[0] if isinstance(given[0], (list, tuple)) else given[:1]
    metas: list[Any] = [part.meta.get("example_value") for part in first if isinstance(part, torch.fx.Node)]
    fakes = [meta for meta in metas if isinstance(meta, torch.Tensor)]
    words = [str(word) for word in given[1:] if isinstance(word, (str, int))]
    kinds = sorted({str(fake.dtype).removeprefix("torch.") for fake in fakes})
    counts = [_hint(fake.numel()) for fake in fakes]
    size = None if op in _UNEVEN or None in counts else sum(count for count in counts if count is not None)
    varies = any(not isinstance(fake.numel(), int) for fake in fakes)
    return Collective(op, str(group), ", ".join(words + kinds), size, varies, _line(node))


def _hint(number: Host) -> int | None:
    """The number in this call."""
    if isinstance(number, int):
        return number
    hint: Any = number.node.hint
    return int(hint) if hint is not None else None


def _line(node: torch.fx.Node) -> str:
    """The innermost line of the program's own."""
    line = line_of(node, lambda file: not file.startswith(_LIBRARIES))
    return "?" if line is None else place(*line)
