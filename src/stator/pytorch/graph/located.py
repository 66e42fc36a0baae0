"""Where in the program an operation has failed that the backend `eager` runs as it was recorded."""

from __future__ import annotations

import weakref
from collections.abc import Container
from types import TracebackType
from typing import TYPE_CHECKING

from stator.bytecode import decode
from stator.bytecode.continuation import original_of
from stator.bytecode.runtime import Place
from stator.pytorch import internals
from stator.pytorch.graph.node_meta import NodeMeta

if TYPE_CHECKING:
    import torch
    import torch.fx

__all__ = ["Located"]


class Located:
    """Called with an exception of the module's `forward`: where it has passed through, as `with_frames` wants it."""

    def __init__(
        self,
        gm: torch.fx.GraphModule,
        showing: Container[torch.fx.Node],
        acting: Container[torch.fx.Node],
        asserting: Container[torch.fx.Node],
    ) -> None:
        """`showing` do more than compute their results; one that fails may have done it if it is `acting`.

        The error of one that is `asserting` is not the program's.
        """
        self._gm = weakref.ref(gm)
        nodes = list(gm.graph.nodes)
        first = next((i for i, node in enumerate(nodes) if node in showing), len(nodes))
        #: the last node that nothing shows of when it has failed
        self._harmless = first - 1 if first < len(nodes) and nodes[first] in acting else first
        #: whether something shows already where an error may come up that is not the program's
        self.asserts_late = any(node in asserting for node in nodes[self._harmless + 1 :])

    def __call__(self, error: BaseException) -> tuple[object, ...]:
        gm: torch.fx.GraphModule = self._gm()
        entry = _entry(gm, error)
        if entry is None:
            return [], (), error.__traceback__, False, {}
        index = _index(gm, entry)
        return _places(None if index is None else list(gm.graph.nodes)[index]), (), entry.tb_next, False, {}

    def is_early(self, error: BaseException) -> bool:
        """Whether nothing that was performed shows but in results."""
        gm: torch.fx.GraphModule = self._gm()
        entry = _entry(gm, error)
        index = None if entry is None else _index(gm, entry)
        return index is not None and index <= self._harmless


def _entry(gm: torch.fx.GraphModule, error: BaseException) -> TracebackType | None:
    """The entry of the module's code in the traceback."""
    entry = error.__traceback__
    code = gm.forward.__code__
    while entry is not None and entry.tb_frame.f_code is not code:
        entry = entry.tb_next
    return entry


def _index(gm: torch.fx.GraphModule, entry: TracebackType) -> int | None:
    """Which node is on the line of the module's code."""
    return internals.node_on_line(gm, entry.tb_lineno - entry.tb_frame.f_code.co_firstlineno)


def _places(node: torch.fx.Node) -> list[Place]:
    """The frames of the program when it recorded the node, innermost first."""
    meta = getattr(node, "meta", None)
    if not isinstance(meta, NodeMeta):
        return []
    found = []
    for number, (code, index, namespace) in enumerate(meta.chain):
        original, at = original_of(code, index)
        instr = decode(original).instrs[at]
        found.append(Place(number, original, namespace, instr.offset, instr.line, instr.offset))
    return found[::-1]
