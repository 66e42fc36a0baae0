"""Makes any one operation of a program fail, in graphs and in ordinary Python alike.

An operation is told by its place in the program (file, function, columns) and by how many times the place has been
passed. In a graph a node before it raises; in ordinary Python, a mode that sees the calls of torch functions does.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from stator._core import CodePolicy, set_code_policy
from stator.backends import lookup_backend
from stator.bytecode import decode, runtime
from stator.bytecode.continuation import original_of

__all__ = ["Failed", "Failing", "Spot", "failing_in_python"]

_untraced = runtime.untraced


class Failed(RuntimeError):
    """What the chosen operation raises."""


class Spot:
    """A place in the program: what its instructions have in common in every code object made of them."""

    def __init__(self, code: Any, offset: int) -> None:
        self.key = (code.co_filename, code.co_name, list(code.co_positions())[offset // 2])

    @classmethod
    def of_node(cls, node: Any) -> Spot | None:
        """Where the program recorded a node."""
        chain = getattr(node.meta, "chain", ())
        if not chain:
            return None
        code, at = original_of(*chain[-1][:2])
        return cls(code, decode(code).instrs[at].offset)


class Failing(TorchFunctionMode):
    """Raises at the `count`-th operation at a place."""

    def __init__(self, key: Any, count: int) -> None:
        super().__init__()
        self.key = key
        self.count = count
        self.seen = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__name__", "") != "__get__" and self._is_here():
            self.seen += 1
            if self.seen == self.count:
                raise Failed("made to fail")
        return function(*args, **kwargs or {})

    def _is_here(self) -> bool:
        frame: Any = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename == self.key[0] and Spot(frame.f_code, frame.f_lasti).key == self.key:
                return True
            frame = frame.f_back
        return False


def failing_in_python(program: Callable[[], Any], key: Any, count: int) -> Callable[[], Any]:
    """The program as ordinary Python, with one operation that fails."""

    def run() -> Any:
        with Failing(key, count):
            return program()

    return run


class Tool:
    """A backend whose graphs fail at a chosen node."""

    def __init__(self, name: str) -> None:
        #: for each graph, the places of its nodes
        self.graphs: list[list[Any]] = []
        #: the graphs that have drawn random numbers
        self.drawing: set[int] = set()
        #: how many operations have been passed in this run, and the number of the one to fail
        self.count = 0
        self.target = 0
        #: how often each place has been passed; the place that has failed, its count in all and in the graph
        self.passed: Counter[Any] = Counter()
        self.failed: tuple[Any, int, int] | None = None
        self.keeps_order = name == "eager"
        self.writes_last = not self.keeps_order
        self.inner = lookup_backend(name)

    def __call__(self, gm: Any, inputs: Any) -> Any:
        number, keys = len(self.graphs), list[Any]()
        self.graphs.append(keys)
        nodes = []
        for node in gm.graph.nodes:
            spot = Spot.of_node(node) if node.op.startswith("call") else None
            if spot is not None:
                nodes.append(node)
                keys.append(spot.key)
        return self._in_order(gm, number, nodes) if self.keeps_order else self._at_once(gm, inputs, number)

    def _in_order(self, gm: Any, number: int, nodes: list[Any]) -> Any:
        def trip(index: int) -> None:
            self.pass_by(number, index)

        for index, node in enumerate(nodes):
            with gm.graph.inserting_before(node):
                gm.graph.call_function(trip, (index,)).meta = node.meta
        gm.recompile()
        return gm.forward

    def _at_once(self, gm: Any, inputs: Any, number: int) -> Any:
        compiled = self.inner(gm, inputs)

        def run(*args: Any) -> Any:
            count = len(self.graphs[number])
            if number in self.drawing and self.count < self.target <= self.count + count:
                torch.rand(1)  # some have been drawn before the operation that fails
            for index in range(count):
                self.pass_by(number, index)
            before = torch.get_rng_state()
            result = compiled(*args)
            if not torch.equal(before, torch.get_rng_state()):
                self.drawing.add(number)
            return result

        return run

    def start(self, target: int = 0) -> None:
        """A run begins, in which the operation of this number fails, if any."""
        self.count, self.target, self.failed = 0, target, None
        self.passed.clear()

    def pass_by(self, number: int, index: int) -> None:
        """An operation is about to be performed."""
        key = self.graphs[number][index]
        self.passed[key] += 1
        self.count += 1
        if self.count == self.target:
            self.failed = key, self.passed[key], self.graphs[number][: index + 1].count(key)
            raise Failed("made to fail")

    def again(self, function: Any) -> Any:
        """Instead of `runtime.untraced`: the same operation fails when the frame runs as ordinary Python."""
        twin = _untraced(function)
        if self.failed is None:
            return twin
        key, _, count = self.failed

        def run(*args: Any, **kwargs: Any) -> Any:
            with Failing(key, count):
                return twin(*args, **kwargs)

        set_code_policy(run.__code__, CodePolicy.RUN_RECURSIVELY)
        return run


__all__ += ["Tool"]
