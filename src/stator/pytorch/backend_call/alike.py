"""A graph that is like an earlier one is not handed to the backend again: what it has made of that one is run.

    if self.bad > patience:      # two ways through the program, with an entry of its own for each
        self.rate *= 0.1         # but one graph, to which `self.rate` is an input

What a backend makes of a graph depends on the operations, on what the inputs are like, on what is known of the symbols
among their sizes, and on torch's global state. All of this is compared; of symbols more may be known than was then. Of
a graph in which there is more (modules, tensors and graphs in it, inputs that share memory) nothing is remembered. Nor
is it where the backend has assumed something, which other entries would have to be guarded for. Which objects the
inputs are is not compared: an entry is run for others as well.

The memory is the pool's, of calls with equal settings and the same backend, and keeps nothing alive.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Hashable
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from stator.pytorch import internals
from stator.pytorch.backend_call.contract import marks_of
from stator.pytorch.fake.metadata import expression_of, is_symbol
from stator.pytorch.fake.storage import storage_of
from stator.pytorch.graph.node_meta import ON_DEMAND
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.tensor import TensorValue

if TYPE_CHECKING:
    import sympy  # type: ignore[import-untyped]
    import torch.fx

    from stator.pytorch.backend_call.tracing_context import Context
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedValue
    from stator.pytorch.types import Function, Number

__all__ = ["Alike"]

_MEMORY = "graphs that the backend has been given"
#: where nodes say which symbols they find when the graph runs
_FOUND = "unbacked_bindings"
_UNDERSTOOD = ON_DEMAND | {_FOUND}
_PLAIN = (type(None), bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format)


class _Other(Exception):
    """There is something in the graph that is not compared."""


class Alike:
    """The graphs that are like one which is about to be handed to the backend."""

    def __init__(self, recorder: Recorder, gm: torch.fx.GraphModule, inputs: list[TracedValue]) -> None:
        self._description = _Description(recorder, inputs)
        self._key = self._found(gm)
        shared = recorder.trace.compile_region.pool.shared_state
        self._memory: _Memory = shared.setdefault(_MEMORY, _Memory())

    def _found(self, gm: torch.fx.GraphModule) -> Hashable | None:
        """All that is compared; None where there is more."""
        try:
            key = self._description.of(gm)
            hash(key)
        except (_Other, TypeError):
            return None
        return key

    def made(self) -> Function | None:
        """What the backend has made of one of them."""
        return None if self._key is None else self._memory.find(self._key, self._description.known)

    def remember(self, function: Function, context: Context) -> None:
        """The backend has made this of the graph."""
        if self._key is None or type(function) is not FunctionType or context.guards_context.aotautograd_guards:
            return
        known = self._description.known
        with contextlib.suppress(_Other):
            if self._description.now_known() == known:  # else the backend has assumed more of the symbols
                self._memory.keep(self._key, function, known)


class _Known(NamedTuple):
    """What is known of symbols: the bounds of each, and conditions."""

    bounds: tuple[tuple[Any, Any], ...] = ()
    conditions: frozenset[Any] = frozenset()

    def implies(self, other: _Known) -> bool:
        """Whether all that is known of others is known of these."""
        within = all(a >= c and b <= d for (a, b), (c, d) in zip(self.bounds, other.bounds, strict=True))
        return within and self.conditions >= other.conditions


class _Made(NamedTuple):
    """A function that the backend has made: what was known then, and whether torch's global state is what it was."""

    known: _Known
    is_state: Callable[[], bool]


class _Memory:
    """What the backend has made of graphs; kept alive by the entries that run it."""

    def __init__(self) -> None:
        self._made: dict[Hashable, dict[weakref.ref[Function], _Made]] = {}

    def find(self, key: Hashable, known: _Known) -> Function | None:
        among = self._made.get(key)
        found = [] if among is None else list(among.items())
        return next((f for ref, made in found if (f := ref()) and known.implies(made.known) and made.is_state()), None)

    def keep(self, key: Hashable, function: Function, known: _Known) -> None:
        def forget(ref: weakref.ref[Function]) -> None:
            among = made.get(key, {})
            among.pop(ref, None)
            if not among:
                made.pop(key, None)  # which holds the functions that the graph calls

        made = self._made
        made.setdefault(key, {})[weakref.ref(function, forget)] = _Made(known, internals.GlobalStateGuard().check)


class _Description:
    """What is compared of one graph, with symbols and nodes by their numbers."""

    def __init__(self, recorder: Recorder, inputs: list[TracedValue]) -> None:
        self._recorder = recorder
        self._inputs = inputs
        self._places: dict[torch.fx.Node, int] = {}
        self._symbols: dict[sympy.Symbol, sympy.Symbol] = {}
        #: those that the graph finds when it runs
        self._found: set[sympy.Symbol] = set()
        self.known = _Known()

    def of(self, gm: torch.fx.GraphModule) -> Hashable:
        """All but what is known of the symbols; raises _Other where there is more in the graph."""
        recorder, state = self._recorder, self._recorder.state
        tracked = recorder.tracked
        if tracked.restructured or tracked.jagged or tracked.rebound or state.hooks.is_watched():
            raise _Other
        nodes = tuple(map(self._node, gm.graph.nodes))
        inputs = tuple(map(self._input, self._inputs))
        memories = [storage_of(value.host) for value in self._inputs if value.host is not None]
        if len(set(memories)) < len(memories):
            raise _Other
        self.known = self.now_known()
        settings = recorder.trace.config, state.entry_key, internals.forward_level(), len(state.modes.taken)
        return nodes, inputs, settings

    # -- operations -------------------------------------------------------------------------------------------------

    def _node(self, node: torch.fx.Node) -> Hashable:
        self._places[node] = len(self._places)
        if node.op == "placeholder":
            return node.op
        found = dict.get(node.meta, _FOUND, {})
        if node.op not in ("call_function", "call_method", "output") or dict.keys(node.meta) - _UNDERSTOOD:
            raise _Other
        for symbol in found:
            self._stand_in(symbol)
            self._found.add(symbol)
        return node.op, node.target, self._operand(node.args), self._operand(node.kwargs)

    def _operand(self, operand: Any) -> Hashable:
        kind = type(operand)
        if kind is torch.fx.Node:
            return kind, self._places[operand]
        if kind in _PLAIN:
            return kind, repr(operand)  # which tells 0.0 from -0.0
        if kind is slice:
            return kind, *map(self._operand, (operand.start, operand.stop, operand.step))
        if isinstance(operand, dict):
            return dict, *((key, self._operand(value)) for key, value in operand.items())
        if isinstance(operand, tuple | list):
            return kind, *map(self._operand, operand)
        raise _Other

    # -- inputs -----------------------------------------------------------------------------------------------------

    def _input(self, value: TracedValue) -> Hashable:
        if value.symbolic:
            return value.cls, self._number(value.fake)
        host = value.host
        if not isinstance(value, TensorValue) or value.cls not in PLAIN_CLASSES or host is None or value.meta is None:
            raise _Other
        marks = marks_of(host, value.source)
        if any(name.startswith("_dynamo") for name in vars(host)):  # what it was marked to be
            raise _Other
        shape, stride, offset, *others = value.meta.parts()
        numbers = tuple(map(self._number, (*shape, *stride, offset)))
        box = self._recorder.shapes.boxed_in(value)
        number = None if box is None else self._number(box.number)
        now = host.requires_grad, host.is_leaf
        return value.cls, len(shape), numbers, tuple(others), now, tuple(sorted(marks.items())), number

    # -- symbols ----------------------------------------------------------------------------------------------------

    def _number(self, number: Number) -> Hashable:
        if not is_symbol(number):
            return number
        expression = expression_of(number)
        if expression is None:
            raise _Other
        expression = self._recorder.shapes.env.replace(expression)
        for symbol in sorted(expression.free_symbols, key=str):
            self._stand_in(symbol)
        return type(number), expression.xreplace(self._symbols)

    def _stand_in(self, symbol: sympy.Symbol) -> None:
        if symbol not in self._symbols:
            self._symbols[symbol] = _stand_in(len(self._symbols), tuple(sorted(symbol.assumptions0.items())))

    def now_known(self) -> _Known:
        """What is assumed of the symbols by now."""
        if not self._symbols:
            return _Known()
        env, mine = self._recorder.shapes.env, self._symbols.keys()
        known = mine - self._found
        open_ = env.replacements.keys() | env.deferred_runtime_asserts.keys()
        if not known <= env.backed_var_to_val.keys() or mine & open_ or None in open_:
            raise _Other
        assumed = [env.replace(guard.expr) for guard in env.guards]
        conditions = [condition for condition in assumed if condition.free_symbols & mine]
        if any(not condition.free_symbols <= mine for condition in conditions):
            raise _Other
        ranges = [env.var_to_range[symbol] for symbol in self._symbols]
        bounds = tuple((each.lower, each.upper) for each in ranges)
        return _Known(bounds, frozenset(condition.xreplace(self._symbols) for condition in conditions))


@functools.cache
def _stand_in(index: int, assumptions: tuple[tuple[str, bool], ...]) -> sympy.Symbol:
    import sympy

    return sympy.Symbol(f"any{index}", **dict(assumptions))
