"""Functions that an operation is given: each is traced into a graph of its own, which becomes an argument of one node.

    torch.cond(p, lambda x: x @ w, lambda x: x - b, (x,))

traces both functions, and records `cond(p, true_graph, false_graph, (x, w, b))`: what a function uses of the outside,
its closure, parameters and symbolic sizes, is lifted to inputs of its graph (`Subgraph.free`). Everything else about
the outside is guarded as anywhere in a trace.

How often the operation will call a function, and when, is the operation's affair. So the function may only compute:
`Body.trace` breaks the graph where it does more, and says what. Where an operation calls it exactly once, side
effects on Python objects can stand for those of the call (`once`).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.failure import Failure
from stator.pytorch.graph.subgraph import GraphOperand, Subgraph
from stator.pytorch.higher_order.backward import failure_of_backward
from stator.pytorch.nesting import map_leaves
from stator.pytorch.tensors.lowering import Call, Operand
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.pytorch.whole_calls import left_whole
from stator.space.identity.reachability import leads_to_any
from stator.space.value import Raised, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from stator.pytorch.types import Function, GraphValue, Nested
    from stator.space.space import Space

__all__ = [
    "Body",
    "breaks_of",
    "by_name",
    "flatten",
    "free_of_all",
    "record_one",
    "record_operator",
    "recorded",
    "refusal",
    "tried",
    "unflatten",
    "whole",
]


def refusal(name: str, why: str) -> Unsupported:
    """The break at a call of the operation of this name."""
    return Unsupported(errors.HigherOrderOperatorCall(name, why))


def breaks_of(name: str) -> Callable[[errors.Break], errors.Break]:
    """What makes the break at the call of the operation of this name, of one that was met inside."""

    def breaks(met: errors.Break) -> errors.Break:
        if isinstance(met, errors.HigherOrderOperatorCall):
            return errors.HigherOrderOperatorCall(name, met.why)
        return errors.HigherOrderOperatorCall(name, f"a function that it is given breaks: {met.reason}")

    return breaks


def whole(host: Function, name: str) -> left_whole:
    """A context: whatever breaks meanwhile is a break at the call of the operation of this name."""
    return left_whole(host, breaks_of(name))


def flatten(space: Space, value: Value) -> tuple[list[Value], Value]:
    """The leaves of a pytree of the traced program, and its TreeSpec."""
    leaves, spec = space.unpack(space.call(space.existing(internals.pytree.tree_flatten), [value], {}))
    return [leaf.force() for leaf in space.unpack(leaves)], spec


def unflatten(space: Space, leaves: Iterable[Value], spec: Value) -> Value:
    """The pytree of these leaves."""
    function = space.existing(internals.pytree.tree_unflatten)
    return space.call(function, [space.new_list(list(leaves)), spec], {})


class Body:
    """A function traced into a graph of its own.

    `graph` is what it computes, `leaves` what it gives, flat, and `spec` how that is arranged. The tensors and symbolic
    numbers among the leaves are the results of the graph, in order.

    Args:
        name: of the operation, for messages.
        role: what the operation calls the function ("its body").
    """

    def __init__(self, space: Space, name: str, role: str = "the function") -> None:
        self.space = space
        self.name = name
        self.role = role
        self.recorder = space.trace.recorder
        self.graph = Subgraph(self.recorder)
        self.leaves: list[Value] = []
        self.spec: Value

    def trace(
        self,
        function: Value,
        args: Sequence[Value],
        kwargs: Mapping[str, Value] | None = None,
        *,
        once: bool = False,
    ) -> Body:
        """Trace a call of the function.

        Args:
            once: the operation calls it once: what it does to Python objects is done by the trace, and what it writes
                to tensors of the outside by the operation.

        Raises:
            Unsupported: the function does more than the operation allows.
        """
        with self.computing([function, *args, *(kwargs or {}).values()], once=once):
            result = self._called(function, args, kwargs or {}, once)
            self.leaves, self.spec = flatten(self.space, result)
        return self

    @contextmanager
    def computing(self, given: Sequence[Value], *, once: bool = False) -> Iterator[None]:
        """What is traced meanwhile is recorded in the graph, and may do no more than that: see `trace`.

        Args:
            given: what it is given, and may change no more than what running frames lead to.
        """
        effects, state = self.space.trace.effects, self.recorder.state
        before, key = effects.count, state.key
        rewritten = dict(self.recorder.effects.rewritten)
        with self.graph.recording(), effects.witnessed() as seen:
            yield
        if not once and (effects.count != before or leads_to_any(self.space.trace, seen, given)):
            raise self.refuse("changes objects that exist outside of it")
        if state.key != key:
            raise self.refuse("leaves the grad mode, or other global state, changed")
        changed = [root for root, by in self.recorder.effects.rewritten.items() if rewritten.get(root) is not by]
        if not once and not all(map(self.graph.computes, changed)):
            raise self.refuse("writes to a tensor that exists outside of it")

    def _called(self, function: Value, args: Sequence[Value], kwargs: Mapping[str, Value], once: bool) -> Value:
        try:
            return self.space.call(function, list(args), dict(kwargs)).force()
        except Raised as e:
            if once:
                raise
            raise self.refuse(f"raises {e.value.cls.__name__}") from None

    def refuse(self, what: str) -> Unsupported:
        """The break that says what the function does that it may not."""
        return refusal(self.name, f"{self.role} {what}")

    @property
    def results(self) -> list[GraphValue]:
        """The tensors and symbolic numbers among the leaves."""
        return [leaf for leaf in self.leaves if isinstance(leaf, TensorValue) or leaf.symbolic]

    @property
    def acts(self) -> bool:
        """Whether running the graph does more than compute: it draws random numbers, or prints."""
        keep = self.recorder.effects.keep
        return any(node in keep for node in self.graph.graph.nodes)

    def refuse_outside_results(self) -> None:
        """The results must be computed by the graph, and lie in memory of their own."""
        tensors = tensors_among(self.results)
        if not all(self.graph.computes(value) and self.graph.computes(value.root) for value in tensors):
            raise self.refuse("gives one of its inputs, or a view of one")
        if len({id(value.root) for value in tensors}) < len(tensors):
            raise self.refuse("gives the same tensor, or two views of one, more than once")

    def answer(self, made: Iterable[Value]) -> Value:
        """What the function gives, with the values that the operation has made in the places of its own results."""
        parts = iter(made)
        mine = {id(value) for value in self.results}
        return unflatten(self.space, [next(parts) if id(leaf) in mine else leaf for leaf in self.leaves], self.spec)

    @property
    def outputs(self) -> list[Nested]:
        """All leaves, with known ones as they are, for operations that make something of each."""
        mine = {id(value) for value in self.results}
        return [leaf if id(leaf) in mine else self.known(leaf) for leaf in self.leaves]

    def known(self, leaf: Value) -> Nested:
        """A leaf that is neither a tensor nor a symbolic number."""
        host = self.space.known(leaf)
        if not isinstance(host, int | None):
            raise self.refuse(f"gives {leaf.describe()}")
        return host

    def close(
        self, free: Sequence[GraphValue], name: str, outputs: Sequence[Nested] | None = None, *, bare: bool = False
    ) -> GraphOperand:
        """The finished graph, as an argument of a node: its inputs are those given, and then `free`.

        Args:
            outputs: what it gives; without, the tensors and symbolic numbers among the leaves.
            bare: it gives its one output as it is, and not in a tuple.
        """
        given = self.results if outputs is None else outputs
        return GraphOperand(self.recorder, name, self.graph.close(given, list(free), bare))


def by_name(name: str, wanted: tuple[str, ...], args: list[Value], kwargs: dict[str, Value]) -> list[Value]:
    """The arguments of an operator in its order, however they were given."""
    given = {**dict(zip(wanted, args, strict=False)), **kwargs}
    if len(args) + len(kwargs) != len(wanted) or set(given) != set(wanted):
        raise refusal(name, f"it wants the arguments {', '.join(wanted)}")
    return [given[argument] for argument in wanted]


def free_of_all(bodies: Iterable[Body]) -> list[GraphValue]:
    """What any of the graphs uses of the outside."""
    return list(dict.fromkeys(value for body in bodies for value in body.graph.free(body.results)))


def record_operator(
    space: Space, name: str, operator: Function, args: tuple[Nested, ...], kwargs: Nested = None, *, acts: bool = False
) -> list[Value]:
    """Record a call of an operator that gives several values; see `record_one`."""
    made = record_one(space, name, operator, args, kwargs, acts=acts)
    return [part.force() for part in space.unpack(made)]


def record_one(
    space: Space, name: str, operator: Function, args: tuple[Nested, ...], kwargs: Nested = None, *, acts: bool = False
) -> Value:
    """Record a call of an operator, and return its result.

    Args:
        args: nested tuples, lists and dicts of traced values, graphs (`Body.close`) and constants.
        acts: it does more than compute its result.

    Raises:
        Unsupported: it failed on fake tensors.
    """
    call = Call(operator, "call_function", operator)
    call.acts = acts
    places: dict[int, Operand] = {}

    def place(leaf: Nested) -> Nested:
        if not isinstance(leaf, GraphOperand | TensorValue) and not getattr(leaf, "symbolic", False):
            return leaf.as_host(space) if isinstance(leaf, Value) else leaf
        if id(leaf) not in places:
            places[id(leaf)] = Operand(len(call.operands))
            call.operands.append(leaf)
            call.metas.append(None)
        return places[id(leaf)]

    call.args, call.kwargs = map_leaves(place, args), map_leaves(place, kwargs or {})
    recorder = space.trace.recorder
    failure = failure_of_backward(recorder, call) if recorder.traces_backward else None
    if failure is not None:
        raise refusal(name, f"a backend cannot trace its backward pass: {failure}")
    return tried(name, lambda: recorder.record(call))


def recorded(space: Space, name: str, record: Callable[[], Value]) -> list[Value]:
    """The parts of what an operation gives."""
    return [part.force() for part in space.unpack(tried(name, record))]


def tried(name: str, record: Callable[[], Value]) -> Value:
    """What an operation gives; where it fails on fake tensors, it is left to Python."""
    try:
        return record()
    except Failure as failure:
        raise refusal(name, str(failure.error).partition("\n")[0][:200]) from None
