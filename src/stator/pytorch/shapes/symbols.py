"""Numbers that depend on symbolic sizes: arithmetic becomes nodes, decisions become assumptions of the ShapeEnv."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.metadata import NumberMeta, expression_of, hint_of, is_ragged, number_meta
from stator.pytorch.graph.node_meta import NodeMeta, call_chain
from stator.pytorch.shapes.computed import (
    compute_again,
    computed_after,
    depends_on_draws,
    is_of_numbers,
    made_again,
    refuse_drawn,
    selected,
)
from stator.pytorch.shapes.floats.real_numbers import decided_again
from stator.space.deferred import DeferredNumber
from stator.space.protocol import NOT_IMPLEMENTED, is_pure
from stator.space.value import Constant, NotKnown, Raised, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch.fx

    from stator.guards.source import Source
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Operation
    from stator.pytorch.types import Function, GraphValue, Host, Number, Path
    from stator.space.interfaces import Trace, Writer
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = [
    "ARITHMETIC",
    "COMPARISONS",
    "DIVISIONS",
    "SymValue",
    "as_integer",
    "decide",
    "method_of",
    "models",
    "specialise",
]

_CLASSES: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}


class SymValue(Value):
    """An int, float or bool that is only known as a symbol. `number` is torch's symbolic number."""

    __slots__ = ("_node", "number", "operation", "path", "recorder")

    symbolic = True
    host = None

    def __init__(self, recorder: Recorder, number: Number, operation: Operation | None, path: Path = ()) -> None:
        self.cls = _CLASSES.get(type(number), int)
        self.source: Source | None = None
        self.recorder = recorder
        self.number = number
        self.operation = operation
        self.path = path
        self._node: torch.fx.Node = None

    @classmethod
    def existing(cls, recorder: Recorder, number: Number, source: Source) -> SymValue:
        """A number that existed before the trace, or a size of a tensor that did."""
        self = cls(recorder, number, None)
        self.source = source
        return self

    @classmethod
    def computed(cls, recorder: Recorder, number: Number, node: torch.fx.Node) -> SymValue:
        """A number that a node of the graph computes."""
        self = cls(recorder, number, None)
        self._node = node
        recorder.nodes.values[node] = self
        return self

    @property
    def node(self) -> torch.fx.Node:
        """The FX node that computes it."""
        if self._node is None:
            self._node = self.recorder.nodes.of(self)
        return self._node

    @property
    def fake(self) -> Number:
        """What stands for it among fake arguments."""
        return self.number

    _fake = fake

    @property
    def meta(self) -> NumberMeta:
        """What describes it among the operands of an operation."""
        return number_meta(self.number, self.recorder.fakes.symbolic)

    def as_host(self, space: Space) -> int:
        known = self.number.node.maybe_as_int() if self.cls is int else None
        if known is None:
            raise NotKnown(self)
        return known

    def key(self, space: Space) -> object:
        return decide(space.trace, self)

    def number_now(self) -> int | None:
        known = self.cls is not int or self.number.node.maybe_as_int() is not None
        return None if known else hint_of(self.number)

    def number_source(self) -> Source | None:
        return self.source or made_again(self.recorder, self)

    def select(self, space: Space, container: Value, read: Function) -> Value | None:
        return selected(space, container, self, read)

    def describe(self) -> str:
        return self.recorder.shapes.in_words(self.number, self.cls is bool)

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        after = computed_after(self.recorder, self, writer)
        if after is not None:
            return after
        # Backends know floats for good only; what is counted need be no input of a graph.
        again = self.cls is float or (self.cls is int and is_of_numbers(self.recorder, self.number))
        made = made_again(self.recorder, self) if again else None
        return writer.graph_output(self) if made is None else writer.source(made)


def decide(trace: Trace, value: Value) -> Host:
    """The host value of a symbolic number, which the trace from now on assumes (protocol.DECIDERS)."""
    if not isinstance(value, SymValue):
        return None
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    if value.cls is int and expression_of(value.number) is None:
        raise Unsupported(errors.DataDependentBranch(value.describe()))
    again = decided_again(trace, value)
    if again is not None:
        return again
    refuse_drawn(trace, value)
    try:
        return value.cls(value.number)
    except GuardOnDataDependentSymNode:
        is_count = value.cls is bool and value.recorder.shapes.counts_elements(value.number)
        raise Unsupported(
            errors.DataDependentBranch(value.describe()).advising(_FOR_COUNTS if is_count else "")
        ) from None


#: what helps where it is counted what a mask selects
_FOR_COUNTS = (
    "count with the mask: `mask & (mask.cumsum(0) <= n)` selects the first n of them, topk of what the mask leaves "
    "(-inf elsewhere) the best, mask.sum() is a tensor"
)


def specialise(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The last resort for symbols (protocol.CALL_HOOKS): what a callable that cannot take one gives is computed again
    at each call, or else it gets the number that the symbol is now."""
    if isinstance(host, type) or not any(arg.symbolic for arg in (*args, *kwargs.values())):
        return None
    again = compute_again(space, host, [arg.force() for arg in args]) if is_pure(host) and not kwargs else None
    if again is not None:
        return again
    if any(isinstance(arg.force(), DeferredNumber) for arg in (*args, *kwargs.values())):
        return None  # whom nobody knows: the graph breaks, for which the others need not be known either
    known = [_known(space, arg) for arg in args]
    return space.call_builtin(host, known, {name: _known(space, arg) for name, arg in kwargs.items()})


def _known(space: Space, value: Value) -> Value:
    value = value.force()
    return Constant(decide(space.trace, value)) if value.symbolic else value


def compute(space: Space, function: Function, args: Sequence[GraphValue], target: Function | None = None) -> Value:
    """Record `function(*args)` on numbers, some of them symbolic."""
    recorder = space.trace.recorder
    whole = any(arg.symbolic and arg.cls is not bool for arg in args)  # they do not know True as 1
    numbers = [arg.number if arg.symbolic else _plain(arg.as_host(space), whole) for arg in args]
    if function in DIVISIONS and _is_zero(space, args[1]):
        return _known_result(space, function, args, numbers)
    try:
        number = function(*numbers)
    except Exception as e:
        return _decided(space, function, args, numbers, e)
    if isinstance(number, torch.SymInt) and abs(hint_of(number) or 0) >> 63:
        return _known_result(space, function, args, numbers)  # no tensor takes it, and guards would be written out
    if type(number) not in _CLASSES:
        return space.fresh(number)
    if isinstance(number, torch.SymBool) and any(map(is_ragged, numbers)):
        return Constant(bool(function(*map(hint_of, numbers))))  # guards compare what jagged tensors share
    given = [arg.node if arg.symbolic else known for arg, known in zip(args, numbers, strict=True)]
    node = recorder.nodes.graph.call_function(target or function, tuple(given))
    node.meta = NodeMeta(lambda: number, call_chain(space.trace.frame))
    return SymValue.computed(recorder, number, node)


#: functions that fail where their second operand is zero
DIVISIONS = frozenset((operator.truediv, operator.floordiv, operator.mod))


def _is_zero(space: Space, divisor: GraphValue) -> bool:
    """Whether a divisor that varies is zero, which is guarded: `n // n` is 1 to torch, whatever `n` is."""
    if not divisor.symbolic or hint_of(divisor.number) is None:
        return False
    if divisor.cls is not float:
        differs: Any = divisor.number != 0  # `==` would fix it, where it is zero
        return not differs
    if depends_on_draws(divisor):
        return False
    differs = compute(space, operator.ne, [divisor, Constant(0)])
    return not (decide(space.trace, differs) if differs.symbolic else differs.host)


def _decided(
    space: Space, function: Function, args: Sequence[GraphValue], numbers: list[Number], error: Exception
) -> Value:
    """What Python gives, or raises, where symbols fail."""
    if type(error) not in (ZeroDivisionError, ValueError, OverflowError, TypeError):
        raise Unsupported(errors.DataDependentBranch(next(arg for arg in args if arg.symbolic).describe())) from None
    return _known_result(space, function, args, numbers)


def _known_result(space: Space, function: Function, args: Sequence[GraphValue], numbers: list[Number]) -> Value:
    """What Python gives, or raises, for the numbers that symbols are now, which is guarded."""
    known = [decide(space.trace, arg) if arg.symbolic else number for arg, number in zip(args, numbers, strict=True)]
    try:
        return space.fresh(function(*known))
    except Exception as e:
        raise Raised(space.exception(e)) from None


def _plain(host: Host, whole: bool) -> Host:
    return int(host) if whole and type(host) is bool else host


def method_of(function: Function, swap: bool = False, record: Function = compute) -> Handler:
    """The model of a method of int or float for symbolic operands; others are left to the ordinary way."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        values = [arg.force() for arg in args]
        if len(values) > 2 or not any(v.symbolic for v in values):
            return None  # `pow(a, b, modulus)` is for numbers
        others = [v for v in values if not _is_number(v)]
        if others:
            left = len(values) == 2 and not others[0].isa((int, float))  # a number that is known later is a number
            return NOT_IMPLEMENTED if left else None
        if function not in _OF_CONDITIONS and any(v.symbolic and v.cls is bool for v in values):
            return space.run_known(function, [_known(space, v) for v in values[:: -1 if swap else 1]])
        values = [as_integer(space, v) for v in values] if function in _OF_CONDITIONS else values
        if any(v.constant and v.host != v.host for v in values):
            return None  # symbols cannot be compared with a NaN
        if len(values) == 2 and values[0].cls is int and values[1].cls is float:
            return NOT_IMPLEMENTED  # int leaves it to float's reflected method
        recorded: Value = record(space, function, values[::-1] if swap else values)
        return recorded

    return handler


def as_integer(space: Space, value: Value) -> Value:
    """A condition that is known only when the graph runs, as the number it is; any other value as it is."""
    if not value.symbolic or value.cls is not bool or hint_of(value.number) is not None:  # type: ignore[attr-defined]
        return value
    return compute(space, torch.sym_ite, [value, Constant(1), Constant(0)])


def _connective(function: Function) -> Handler:
    """The model of `&` and `|` of conditions of which one is known only when the graph runs."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        values = [arg.force() for arg in args]
        if len(values) != 2 or not all(value.cls is bool and _is_number(value) for value in values):
            return None
        if not any(value.symbolic and hint_of(value.number) is None for value in values):  # type: ignore[attr-defined]
            return None
        known = [value for value in values if not value.symbolic]
        if not known:
            return compute(space, function, values)
        other = next(value for value in values if value.symbolic)
        return other if function(known[0].host, True) != function(known[0].host, False) else known[0]

    return handler


def _is_number(value: Value) -> bool:
    return value.symbolic or (value.constant and value.cls in (int, float, bool))


def _truth(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    value = args[0].force()
    if not value.symbolic:
        return None
    return value if value.cls is bool else compute(space, operator.ne, [value, Constant(0)])


def _hash(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """What is hashed is a key, and keys are known."""
    return space.run_known(hash, [_known(space, args[0])]) if args[0].force().symbolic else None


def _divmod(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    values = [arg.force() for arg in args]
    if not any(value.symbolic for value in values) or {value.cls for value in values} != {int}:
        return None
    return space.new_tuple([compute(space, function, values) for function in (operator.floordiv, operator.mod)])


#: what torch's symbols can do with a condition, which is no number to sympy
_OF_CONDITIONS = (operator.add, operator.sub, operator.mul)
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod")
COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")


def models() -> dict[int, Handler]:
    """The models of numbers' methods by the ids of the host callables, for calls.call_hook."""
    found: dict[int, Handler] = {}
    for cls in (int, float):
        for name in ARITHMETIC:
            function = getattr(operator, name)
            found[id(cls.__dict__[f"__{name}__"])] = method_of(function)
            found[id(cls.__dict__[f"__r{name}__"])] = method_of(function, swap=True)
        for name in (*COMPARISONS, "neg", "abs"):
            found[id(cls.__dict__[f"__{name}__"])] = method_of(getattr(operator, name))
        found[id(cls.__dict__["__bool__"])] = _truth
        found[id(cls.__dict__["__hash__"])] = _hash
    for name in ("and", "or"):
        function = getattr(operator, f"{name}_")
        found |= {id(bool.__dict__[method]): _connective(function) for method in (f"__{name}__", f"__r{name}__")}
    found[id(int.__dict__["__divmod__"])] = _divmod
    found[id(math.sqrt)] = method_of(internals.sym_sqrt)
    return found
