"""The `meta` of graph nodes: example values and stack traces, made only when somebody asks for them."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeAlias

from stator.bytecode import decode
from stator.interp.policy import is_users
from stator.report.graphs import line_of

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.types import Args, Function, Nested
    from stator.space.interfaces import Frame

__all__ = ["ON_DEMAND", "NodeMeta", "call_chain", "place_of"]

#: code, index of the instruction, and globals of each frame
Chain: TypeAlias = tuple[tuple[CodeType, int, dict[str, object]], ...]
#: keys that are made on demand → the slot that holds what makes them
_MADE = {"example_value": "make", "stack_trace": "chain"}
#: what these tell follows from the graph, its inputs and where the program was
ON_DEMAND = frozenset(_MADE)


class NodeMeta(dict[str, object]):
    """A node's `meta`. `make` gives the example value (or None), `chain` is where the program was, outermost first."""

    __slots__ = ("chain", "make")

    def __init__(self, make: Callable[[], Nested], chain: Chain = ()) -> None:
        super().__init__()
        self.make: Callable[[], Nested] | None = make
        self.chain = chain

    def settle(self, key: object) -> None:
        """Make the value of this key now, if it is one of those made on demand."""
        if key == "example_value" and self.make is not None:
            make, self.make = self.make, None
            example = make()
            if example is not None:
                super().setdefault("example_value", example)
        elif key == "stack_trace" and self.chain:
            chain, self.chain = self.chain, ()
            super().setdefault("stack_trace", _text(chain))

    def release(self) -> None:
        """What has not been asked for can no longer be made."""
        self.make = None

    def _settle_all(self) -> None:
        for key in _MADE:
            self.settle(key)

    def __missing__(self, key: str) -> object:
        self.settle(key)
        if dict.__contains__(self, key):
            return dict.__getitem__(self, key)
        raise KeyError(key)

    def get(self, key: str, default: object = None) -> object:
        self.settle(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.settle(key)
        return super().__contains__(key)

    def items(self) -> Any:
        self._settle_all()
        return super().items()

    def keys(self) -> Any:
        self._settle_all()
        return super().keys()

    def copy(self) -> dict[str, object]:
        """An ordinary dict with everything made."""
        self._settle_all()
        return dict(self)

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> dict[str, object]:
        return self.copy()

    def __reduce__(self) -> tuple[Function, Args]:
        return dict, (self.copy(),)


def call_chain(frame: Frame | None) -> Chain:
    """Where the traced program is: code, instruction and globals of each frame, outermost first."""
    chain = []
    while frame is not None:
        chain.append((frame.code, frame.last().index, frame.globals))
        frame = frame.parent
    chain.reverse()
    return tuple(chain)


def _text(chain: Chain) -> str:
    lines = [(code, decode(code).instrs[index].line or code.co_firstlineno) for code, index, _ in chain]
    frames = [traceback.FrameSummary(code.co_filename, line, code.co_name) for code, line in lines]
    return "".join(traceback.format_list(frames))


def place_of(node: torch.fx.Node) -> str:
    """Where the program has the operation of a node, "file.py:12": its innermost line that is the user's own."""
    file, line = line_of(node, is_users) or ("?", 0)
    return f"{file}:{line}"
