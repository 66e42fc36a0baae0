"""Where in the program an operation has failed that the backend `eager` runs as it was recorded."""

from __future__ import annotations

import weakref
from types import TracebackType
from typing import Any

from stator.bytecode import decode
from stator.bytecode.continuation import original_of
from stator.residual.runtime import Place
from stator.tensors.node_meta import NodeMeta

__all__ = ["Located"]


class Located:
    """Called with an exception of the module's `forward`: where it has passed through, as `with_frames` wants it."""

    def __init__(self, gm: Any) -> None:
        self._gm = weakref.ref(gm)

    def __call__(self, error: BaseException) -> tuple[Any, ...]:
        gm: Any = self._gm()
        entry = error.__traceback__
        code = gm.forward.__code__
        while entry is not None and entry.tb_frame.f_code is not code:
            entry = entry.tb_next
        if entry is None:
            return [], (), error.__traceback__, False, {}
        return _places(_node(gm, entry)), (), entry.tb_next, False, {}


def _node(gm: Any, entry: TracebackType) -> Any:
    """The node on the line of the module's code."""
    index = gm._lineno_map.get(entry.tb_lineno - entry.tb_frame.f_code.co_firstlineno)
    return None if index is None else list(gm.graph.nodes)[index]


def _places(node: Any) -> list[Place]:
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
