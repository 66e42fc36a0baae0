"""Errors that CPython raises of numbers, where a backend computes them otherwise: there is infinity, or NaN, instead.

    return x * (1.0 / x.sum().item())       # ZeroDivisionError of zeros; AOTAutograd makes a division of tensors of it
    return x + n % n                        # of a count that is zero; to torch it is 0, whatever n is

So a graph that a backend compiles asserts that there is no error. Where that fails, the frame runs again as ordinary
Python, which raises it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.fx

from stator.guards.guard import FOR_BRANCHES, Predicate
from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.shapes.computed import condition_on_existing, depends_on_draws, is_nonzero
from stator.pytorch.shapes.floats.powers import real_power
from stator.pytorch.shapes.floats.quotients import quotient
from stator.pytorch.shapes.symbols import DIVISIONS

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder

__all__ = ["assert_float_errors", "must_run"]

#: to this exponent a float holds the powers of all integers of 64 bits
_SMALL = 16


def assert_float_errors(gm: torch.fx.GraphModule) -> bool:
    """Add the assertions; whether there are any."""
    found: dict[object, torch.fx.Node] = {}  # an optimizer may repeat an operation for each parameter
    for node in gm.graph.nodes:
        if _may_raise(node):
            found.setdefault((node.target, node.args), node)
    tensors = _Tensors(gm.graph)
    for node in found.values():
        with gm.graph.inserting_before(node.next):
            told = f"{node.name} raises an error in Python"
            holds = _condition(node)(tensors, node)
            gm.graph.call_function(internals.assert_async_msg, (holds, told))
    return bool(found)


def must_run(recorder: Recorder, node: torch.fx.Node) -> bool:
    """Whether an operation that nobody uses stays in the graph, for the error that it may raise.

    Of existing numbers that is asked by a guard instead: in the graph they would be inputs to what is computed of them.
    """
    if not _may_raise(node):
        return False
    value: Any = recorder.nodes.values.get(node)
    found = None if value is None or depends_on_draws(value) else condition_on_existing(recorder, value)
    if found is not None:
        told, compute = f"{found.told} raises no error", found.possible().compute
        recorder.trace.guard(Predicate(found.sources, compute, told, FOR_BRANCHES))
    return found is None


def _may_raise(node: torch.fx.Node) -> bool:
    """Whether a node computes a number, and nothing that is known of its operands keeps Python from an error: sizes do,
    of which there are guards."""
    if node.op != "call_function" or node.target not in _CONDITIONS:
        return False
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    first, *rest = [arg.meta.get("example_value") if isinstance(arg, torch.fx.Node) else arg for arg in node.args]
    if not _gives_float(node):
        is_read = isinstance(rest[0], torch.SymInt) and hint_of(rest[0]) is None
        return node.target in DIVISIONS and is_read and not is_nonzero(node.args[1])
    if node.target is operator.truediv:
        return not is_nonzero(node.args[1])
    if node.target is internals.sym_sqrt:
        return not statically_known_true(first >= 0)
    if node.target is operator.pow and isinstance(first, torch.SymInt) and isinstance(rest[0], int | float):
        return abs(rest[0]) > _SMALL or not statically_known_true(first >= 1)  # size ** -0.5
    return True


def _gives_float(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("example_value"), torch.SymFloat)


class _Tensors:
    """Adds nodes that compute in tensors what is to be known of numbers, each behind the last."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self.graph = graph
        self._one: torch.fx.Node | None = None
        self._known: dict[torch.fx.Node, torch.fx.Node] = {}

    def of(self, number: Any) -> Any:
        """A number in a tensor: one times it, where AOTAutograd knows to do without numbers."""
        if not isinstance(number, torch.fx.Node):
            return self._full(number)
        if self._one is None:
            self._one = self._full(1.0)
        if number not in self._known:
            self._known[number] = self.call(torch.mul, self._one, number)
        return self._known[number]

    def _full(self, number: float) -> torch.fx.Node:
        return self.graph.call_function(torch.full, ((), number), {"dtype": torch.float64, "device": "cpu"})

    def call(self, function: Any, *args: Any) -> torch.fx.Node:
        return self.graph.call_function(function, args)


def _divides(tensors: _Tensors, node: torch.fx.Node) -> torch.fx.Node:
    """That the divisor is not zero."""
    return tensors.call(torch.ne, tensors.of(node.args[1]), 0)


def _is_quotient(tensors: _Tensors, node: torch.fx.Node) -> torch.fx.Node:
    """That the quotient is Python's: to torch it is an integer of 64 bits, made of one that was rounded before."""
    divided, divisor = map(tensors.of, node.args)
    exact: Any = quotient(lambda name, *args: tensors.call(getattr(torch, name), *args), divided, divisor)
    return _equals(tensors, node, exact, tensors.call(torch.div, divided, divisor))


def _is_remainder(tensors: _Tensors, node: torch.fx.Node) -> torch.fx.Node:
    """That the remainder is Python's, which has the sign of the divisor."""
    divided, divisor = map(tensors.of, node.args)
    return _equals(tensors, node, tensors.call(torch.remainder, divided, divisor), divisor)


def _equals(tensors: _Tensors, node: torch.fx.Node, exact: torch.fx.Node, like: torch.fx.Node) -> torch.fx.Node:
    """That a result is the exact one, with the sign of another number: 0.0 is equal to -0.0."""
    result = tensors.of(node)
    signs = [tensors.call(torch.signbit, each) for each in (result, like)]
    return tensors.call(torch.logical_and, tensors.call(torch.eq, result, exact), tensors.call(torch.eq, *signs))


def _has_root(tensors: _Tensors, node: torch.fx.Node) -> torch.fx.Node:
    """That the operand is not negative; it may be NaN."""
    return tensors.call(torch.logical_not, tensors.call(torch.lt, tensors.of(node.args[0]), 0))


def _has_power(tensors: _Tensors, node: torch.fx.Node) -> torch.fx.Node:
    """That the power is finite where base and exponent are, and so is no complex number, which is NaN to torch.

    Of an infinite base or exponent a power is never an error.
    """
    finite = [tensors.call(torch.isfinite, tensors.of(each)) for each in node.args if isinstance(each, torch.fx.Node)]
    operands = functools.reduce(lambda one, other: tensors.call(torch.logical_and, one, other), finite)
    return tensors.call(torch.ge, tensors.call(torch.isfinite, tensors.of(node)), operands)


#: what holds of an operation where Python raises no error
_CONDITIONS: dict[Any, Callable[[_Tensors, torch.fx.Node], torch.fx.Node]] = {
    operator.truediv: _divides,
    operator.mod: _is_remainder,
    operator.floordiv: _is_quotient,
    operator.pow: _has_power,
    real_power: _has_power,
    internals.sym_sqrt: _has_root,
}


def _condition(node: torch.fx.Node) -> Callable[[_Tensors, torch.fx.Node], torch.fx.Node]:
    return _CONDITIONS[node.target] if _gives_float(node) else _divides
