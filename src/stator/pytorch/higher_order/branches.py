"""A branch on the value of a tensor as one operation of the graph (`config.capture_branches`).

    if loss > 10:
        loss = loss.clamp(max=10)

Both sides are traced into graphs of their own, up to where they meet (`interp/sides.py`), and `torch.cond` gives the
tensors in which they differ: `loss = cond(loss > 10, clamped, as_it_was, (loss,))`. What else they leave must be equal.

A side may leave a tensor as it was. What `cond` gives is a copy of it then, which the program must not be able to tell
from the tensor: by writing to one of the two, by their identity, or by having both when the graph has run
(`Copies.check`).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias, cast

import torch

from stator import errors
from stator.interp.branches import CAPTURES
from stator.pytorch.fake.metadata import same_numbers
from stator.pytorch.higher_order.body import Body, free_of_all, record_operator
from stator.pytorch.objects.hidden_copies import Copies, not_captured
from stator.pytorch.tensors.recording import record_function, record_method
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.signals import DoFirst
from stator.space.value import NULL, NotKnown, Raised, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stator.interp.sides import Sides
    from stator.space.interfaces import Frame, Trace
    from stator.space.space import Space

    #: makes a value of the results of the operation
    _Making: TypeAlias = Callable[[list[TensorValue]], Value]

__all__ = ["capture", "install"]

#: branches inside of branches: each doubles what is traced
_DEEPEST = 8


class _Depth:
    """How many branches the trace is inside of."""

    def __init__(self, trace: Trace) -> None:
        self.now = 0


def capture(frame: Frame, value: Value, sides: Sides) -> bool:
    """Execute both sides of a branch, and go on behind them (see branches.CAPTURES)."""
    trace = frame.trace
    if not _is_condition(value):
        return False
    depth = trace.extension(_Depth)
    depth.now += 1
    try:
        with _told():
            _capture(frame, value, sides, depth.now)
    finally:
        depth.now -= 1
    return True


def _is_condition(value: Value) -> bool:
    """Whether it is a tensor of one element, or says something of numbers in tensors."""
    if isinstance(value, TensorValue):
        return all(size == 1 for size in value.shape)
    return value.symbolic and value.cls is bool


@contextmanager
def _told() -> Iterator[None]:
    """Whatever breaks meanwhile is why the branch is not captured."""
    try:
        yield
    except Unsupported as e:
        brk = e.brk
        if isinstance(brk, errors.DataDependentBranch) and brk.why:
            raise  # it is of a branch inside of this one
        why = brk.why if isinstance(brk, errors.HigherOrderOperatorCall) else f"one side breaks: {brk.reason}"
        raise Unsupported(not_captured(why)) from None
    except DoFirst as e:
        if e.action is None:
            raise
        raise Unsupported(not_captured(f"one side begins with what is done for real: {e.what}")) from None


def _refused(why: str) -> Unsupported:
    return Unsupported(errors.HigherOrderOperatorCall("torch.cond", why))


def _capture(frame: Frame, value: Value, sides: Sides, depth: int) -> None:
    if sides.refused is not None:
        raise _refused(sides.refused)
    if depth > _DEEPEST:
        raise _refused(f"it is inside of {_DEEPEST} others")
    space, step = frame.space, frame.trace.steps
    bodies = Body(space, "torch.cond", "its true side"), Body(space, "torch.cond", "its false side")
    executed = []
    for body, start in zip(bodies, sides.starts, strict=True):
        with body.computing([]), _raising(body):
            executed.append(sides.execute(frame, start))
    one, other = executed
    joined = _Joined(space, bodies)
    names = one.locals.keys() | other.locals.keys()
    locals_ = {name: joined.of(one.locals.get(name), other.locals.get(name), f"`{name}`") for name in sorted(names)}
    stack = [joined.of(a, b, "its value") for a, b in zip(one.stack, other.stack, strict=True)]
    results = joined.record(value) if joined.rows else []
    one.go_on(frame, {name: make(results) for name, make in locals_.items()}, [make(results) for make in stack])
    joined.note_copies(results, step)


@contextmanager
def _raising(body: Body) -> Iterator[None]:
    try:
        yield
    except Raised as e:
        raise body.refuse(f"raises {e.value.cls.__name__}") from None


def _always(value: Value) -> _Making:
    return lambda results: value


class _Joined:
    """What two sides leave, in the same places."""

    def __init__(self, space: Space, bodies: tuple[Body, Body]) -> None:
        self.space = space
        self.bodies = bodies
        #: the tensors that are chosen among, each pair once
        self.rows: dict[tuple[TensorValue, TensorValue], int] = {}
        self._parts: set[int] = set()

    def of(self, one: Value | None, other: Value | None, what: str) -> _Making:
        """What makes the value that stands for what the sides leave in one place."""
        if one is None or other is None:
            raise _refused(f"only one side gives {what} a value")
        if one is other:
            return _always(one)
        if one is NULL or other is NULL:
            raise _refused(f"only one side gives {what} a value")
        one, other = one.force(), other.force()
        if isinstance(one, TensorValue) and isinstance(other, TensorValue):
            return self._tensor(one, other, what)
        if one is other or self._are_equal(one, other):
            return _always(one)
        if one.cls is other.cls is tuple:
            return self._tuple(one, other, what)
        raise _refused(f"{what} is {one.describe()} on one side and {other.describe()} on the other")

    def _tensor(self, one: TensorValue, other: TensorValue, what: str) -> _Making:
        if one is other:
            return _always(one)
        a, b = one.meta, other.meta
        if a is None or b is None or a.bits != b.bits or one.cls is not torch.Tensor or other.cls is not torch.Tensor:
            raise _refused(f"{what} is a tensor of a kind of its own")
        for kind in _KINDS:
            if not _same(getattr(a, kind), getattr(b, kind)):
                of = f"{kind} {getattr(a, kind)} on one side and {getattr(b, kind)} on the other"
                raise _refused(f"{what} is a tensor of {of}")
        at = self.rows.setdefault((one, other), len(self.rows))
        return lambda results: results[at]

    def _are_equal(self, one: Value, other: Value) -> bool:
        known = self.space.known(one), self.space.known(other)
        if NotKnown in known or one.cls is not other.cls:
            return False
        return known[0] is known[1] or (one.constant and other.constant and repr(known[0]) == repr(known[1]))

    def _tuple(self, one: Value, other: Value, what: str) -> _Making:
        parts = self.space.unpack(one), self.space.unpack(other)
        if len(parts[0]) != len(parts[1]):
            raise _refused(f"{what} has {len(parts[0])} items on one side and {len(parts[1])} on the other")
        makings = [self.of(a, b, f"{what}[{i}]") for i, (a, b) in enumerate(zip(*parts, strict=True))]
        return lambda results: self.space.new_tuple([make(results) for make in makings])

    # -- the operation ----------------------------------------------------------------------------------------------

    def record(self, condition: Value) -> list[TensorValue]:
        """What the operation gives for each pair of tensors."""
        space = self.space
        if isinstance(condition, TensorValue):
            condition = record_method(space, "ne", record_method(space, "reshape", condition, ()), 0)
        elif not space.trace.recorder.keeps_order:  # AOTAutograd wants a tensor
            condition = record_function(space, torch.scalar_tensor, condition, dtype=torch.bool)
        for body, leaves in zip(self.bodies, zip(*self.rows, strict=True), strict=True):
            own = [self._own(body, leaf) for leaf in leaves]
            body.leaves = [*own]
            if len({id(leaf.root) for leaf in own}) < len(own):
                raise body.refuse("gives the same tensor, or two views of one, more than once")
            if body.acts and any(leaf.requires_grad for leaf in leaves):
                raise body.refuse("draws random numbers, which the backward pass would draw again")
        free = free_of_all(self.bodies)
        graphs = [
            body.close(free, name, body.leaves) for body, name in zip(self.bodies, ("true", "false"), strict=True)
        ]
        acts = any(body.acts for body in self.bodies)
        operator = torch.ops.higher_order.cond
        given = condition, *graphs, tuple(free)
        made = cast("list[TensorValue]", record_operator(space, "torch.cond", operator, given, acts=acts))
        for value, (one, _) in zip(made, self.rows, strict=True):
            if not _alike(value, one):
                raise _refused("what it gives is not like what the sides give")
        return made

    def _own(self, body: Body, leaf: TensorValue) -> TensorValue:
        """The tensor, or a copy of one whose memory is not the side's own."""
        if body.graph.computes(leaf) and body.graph.computes(leaf.root):
            return leaf
        if leaf.requires_grad and leaf.meta is not None and leaf.meta.is_leaf:
            raise body.refuse("gives a leaf as it is, which requires gradients")
        with body.graph.recording():
            copy: TensorValue = record_method(self.space, "clone", leaf)
        if not _alike(copy, leaf):
            raise body.refuse("gives a tensor of the outside whose copy is not like it")
        return copy

    def note_copies(self, results: list[TensorValue], step: int) -> None:
        """Some of the results are copies of what exists outside of the sides, or of what such copies are copies of."""
        copies = self.space.trace.extension(Copies)
        for result, row in zip(results, self.rows, strict=True):
            for leaf, body in zip(row, self.bodies, strict=True):
                copies.note(result, leaf, step, made=body.graph.computes(leaf.root))


#: what tensors must have in common
_KINDS = ("shape", "dtype", "device", "requires_grad", "stride")


def _alike(one: TensorValue, other: TensorValue) -> bool:
    return all(_same(getattr(one.meta, kind), getattr(other.meta, kind)) for kind in _KINDS)


def _same(one: object, other: object) -> bool:
    if not isinstance(one, tuple) or not isinstance(other, tuple):
        return one == other
    return len(one) == len(other) and all(map(same_numbers, one, other))


def install() -> None:
    """Register the hook."""
    CAPTURES.append(capture)
