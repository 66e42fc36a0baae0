"""Backends that count and keep what they are given, and comparisons, for tests of what is captured of a program.

They have the names and attributes of those that tests for torch.compile use, so that such a test runs with
`stator.compile` in its place. `stator.testing` gives them out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from stator.backends.registry import lookup_backend
from stator.pytorch import internals

if TYPE_CHECKING:
    import torch.fx

__all__ = [
    *("AotEagerAndRecordGraphs", "CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs"),
    *("normalize_gm", "same"),
]

Compiled: TypeAlias = Callable[..., Any]


class CompileCounter:
    """Runs graphs as they are, and counts them.

    Attributes:
        frame_count: how many graphs have been compiled.
        op_count: how many operations are in them.
    """

    def __init__(self) -> None:
        self.frame_count = 0
        self.op_count = 0

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Compiled:
        self._count(gm)
        return gm.forward

    def _count(self, gm: torch.fx.GraphModule) -> None:
        self.frame_count += 1
        self.op_count += sum(node.op.startswith("call") for node in gm.graph.nodes)

    def clear(self) -> None:
        """Begin anew."""
        self.frame_count = self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """Counts graphs, keeps them in `graphs`, and has them compiled by the backend of a name."""

    def __init__(self, backend: str) -> None:
        super().__init__()
        self.backend = backend
        self.graphs: list[torch.fx.GraphModule] = []

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Compiled:
        self._count(gm)
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs)

    def clear(self) -> None:
        super().clear()
        self.graphs = []


class EagerAndRecordGraphs:
    """Runs graphs as they are, and keeps them in `graphs`."""

    def __init__(self) -> None:
        self.graphs: list[torch.fx.GraphModule] = []

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Compiled:
        self.graphs.append(gm)
        return gm.forward


class AotEagerAndRecordGraphs:
    """Runs what AOTAutograd makes of graphs; keeps `graphs`, and what is made of them: `fw_graphs`, `bw_graphs`."""

    def __init__(self) -> None:
        self.graphs: list[torch.fx.GraphModule] = []
        self.fw_graphs: list[torch.fx.GraphModule] = []
        self.bw_graphs: list[torch.fx.GraphModule] = []

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Compiled:
        self.graphs.append(gm)
        compilers = {"fw_compiler": _keeping(self.fw_graphs), "bw_compiler": _keeping(self.bw_graphs)}
        return internals.aot_eager(gm, example_inputs, **compilers)


def _keeping(graphs: list[torch.fx.GraphModule]) -> Compiled:
    def compiler(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Compiled:
        graphs.append(gm)
        return gm.forward

    return compiler


def same(expected: Any, found: Any, *, tol: float = 1e-4, equal_nan: bool = False) -> bool:
    """Whether two results are alike: of the same structure, with tensors and numbers that differ by `tol` at most.

    >>> same({"out": torch.ones(2)}, {"out": torch.ones(2) + 1e-6})
    True
    """
    if isinstance(expected, torch.Tensor):
        return isinstance(found, torch.Tensor) and _same_tensors(expected, found, tol, equal_nan)
    if isinstance(expected, str):
        return bool(expected == found)
    if isinstance(expected, Mapping):
        alike = isinstance(found, Mapping) and expected.keys() == found.keys()
        return alike and all(same(expected[key], found[key], tol=tol, equal_nan=equal_nan) for key in expected)
    if isinstance(expected, Sequence):
        alike = isinstance(found, Sequence) and len(expected) == len(found)
        pairs = zip(expected, found, strict=True) if alike else ()
        return alike and all(same(one, other, tol=tol, equal_nan=equal_nan) for one, other in pairs)
    if isinstance(expected, float):
        number = isinstance(found, int | float)
        return number and same(torch.tensor(expected), torch.tensor(float(found)), tol=tol, equal_nan=equal_nan)
    return bool(expected == found)


def _same_tensors(expected: torch.Tensor, found: torch.Tensor, tol: float, equal_nan: bool) -> bool:
    facts = [(t.shape, t.dtype, t.device, t.layout) for t in (expected, found)]
    if facts[0] != facts[1]:
        return False
    one, other = (t.detach().to_dense() if t.layout is not torch.strided else t.detach() for t in (expected, found))
    return torch.allclose(one, other, rtol=tol, atol=tol, equal_nan=equal_nan)


_COMMENT = re.compile(r"\s*#.*$", re.MULTILINE)


def normalize_gm(text: str) -> str:
    """The text of a graph (`gm.print_readable(print_output=False)`) without comments, ends of lines and empty lines.

    >>> normalize_gm("class GraphModule:\\n\\n    def forward(self, x):  # f.py:3\\n        return (x,)   \\n")
    'class GraphModule:\\n    def forward(self, x):\\n        return (x,)\\n'
    """
    lines = [line.rstrip() for line in _COMMENT.sub("", text).splitlines()]
    return "".join(f"{line}\n" for line in lines if line)
