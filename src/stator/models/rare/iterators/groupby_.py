"""`itertools.groupby`, and the groups that take their items from it."""

from __future__ import annotations

import itertools

from stator import errors
from stator.host.version_facts import ITERTOOLS_ARE_COPIED
from stator.models.iterators.iterator import iterator_type, own_class, reduction
from stator.models.iterators.itertools_ import ItertoolsIterator, quietly
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import refuse
from stator.space.protocol import NONE, bad_call
from stator.space.space import Space
from stator.space.value import Unsupported, Value

_GROUPER: Host = type(next(itertools.groupby("a"))[1])


def resumed_groupby(
    cls: Host, iterable: Host, key: Host, current: object, target: object, waiting: tuple[object, ...]
) -> Host:
    """A `groupby` in the middle of its work, for generated code; `waiting`: the item read ahead, if any."""
    if not ITERTOOLS_ARE_COPIED:
        return _groups_by_themselves(cls, iterable, current, target, waiting)
    groups: Host = itertools.groupby.__new__(cls, iterable, key)
    state = (current, waiting[0] if waiting else None, target)
    quietly(vars(itertools.groupby)["__setstate__"], groups, state)
    if not waiting:
        next(_GROUPER(groups, current))  # takes the item, as the identical keys are not compared
    return groups


class _Unequal:
    """The key of a group that nothing belongs to."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


def _groups_by_themselves(cls: Host, iterable: Host, current: Host, target: Host, waiting: tuple[Host, ...]) -> Host:
    """A `groupby` whose items are their own keys: it is led there by items before those of the iterable."""
    groups: Host = itertools.groupby.__new__(cls, itertools.chain([target, current], iterable))
    next(groups)
    next(_GROUPER(groups, target))  # takes the item, as the identical keys are not compared
    next(_GROUPER(groups, _Unequal()), None)  # reads the next one ahead
    if not waiting:
        next(_GROUPER(groups, current))
    return groups


def ended_group() -> Host:
    """A group that its `groupby` has left behind, for generated code."""
    groups: Host = itertools.groupby(())
    made = _GROUPER(groups, None)
    next(groups, None)
    return made


@iterator_type(itertools.groupby)
class GroupBy(ItertoolsIterator):
    """`groupby(iterable, key)`: the state is that of CPython's object."""

    __slots__ = ("current_key", "current_value", "function", "group", "iterator", "target_key")

    current_key: Value | None
    current_value: Value | None
    function: Value
    group: Grouper | None
    iterator: Value
    target_key: Value | None

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value, key: Value = NONE) -> Value:
        owner, iterator = own_class(space, cls), space.iter(iterable)
        blank = dict.fromkeys(("target_key", "current_key", "current_value", "group"))
        return GroupBy.of(owner, iterator=iterator, function=key, **blank)

    def advance(self, space: Space) -> bool:
        """Take the next item; whether there was one."""
        item = space.next(self.iterator)
        if item is None:
            return False
        key = item if self.function.is_none() else space.call(self.function, [item], {})
        space.mark_mutated(self)
        self.current_value, self.current_key = item, key
        return True

    def produce(self, space: Space) -> Value | None:
        space.mark_mutated(self)
        self.group = None
        while self.current_key is None or (
            self.target_key is not None and space.equal(self.target_key, self.current_key)
        ):
            if not self.advance(space):
                return None
        space.mark_mutated(self)
        self.target_key = self.current_key
        self.group = Grouper(self, self.current_key)
        return space.new_tuple([self.current_key, self.group])

    def arguments(self, space: Space) -> list[Value]:
        return [self.iterator, self.function]

    def state(self, space: Space) -> list[Value]:
        parts = [self.current_key, self.current_value, self.target_key]
        known = [part for part in parts if part is not None]
        return [space.new_tuple(known)] if len(known) == len(parts) else []

    def restore(self, space: Space, state: Value) -> None:
        parts = self.state_parts(space, state)
        if self.source is not None or len(parts) != 3:
            raise self.without_state()
        self.current_key, self.current_value, self.target_key = parts

    def rebuilt(self, writer: Writer) -> str:
        if self.current_key is None:
            return super().rebuilt(writer)
        iterator, key = writer.expr(self.iterator), writer.expr(self.function)
        assert self.target_key is not None
        if not ITERTOOLS_ARE_COPIED and not self.function.is_none():
            raise Unsupported(errors.NotReconstructible("an itertools.groupby with a key function that has begun"))
        keys = f"{writer.expr(self.current_key)}, {writer.expr(self.target_key)}"
        cls = writer.const(self.cls)
        waiting = "()" if self.current_value is None else f"({writer.expr(self.current_value)},)"
        return writer.assign("groups", f"{writer.const(resumed_groupby)}({cls}, {iterator}, {key}, {keys}, {waiting})")


@iterator_type(_GROUPER)
class Grouper(ItertoolsIterator):
    """One group of a `groupby`."""

    __slots__ = ("key_", "parent")

    def __init__(self, parent: GroupBy, key: Value) -> None:
        super().__init__()
        self.parent = parent
        self.key_ = key

    def produce(self, space: Space) -> Value | None:
        parent = self.parent
        if parent.group is not self:
            return None
        if parent.current_value is None and not parent.advance(space):
            return None
        assert parent.current_key is not None
        if not space.equal(self.key_, parent.current_key):
            return None
        space.mark_mutated(parent)
        item, parent.current_value = parent.current_value, None
        return item

    @staticmethod
    def tp_new(space: Space, cls: Value, parent: Value, key: Value, /) -> Value:
        parent = parent.force()
        if not parent.isa(itertools.groupby):
            return bad_call(space, _GROUPER.__new__, [cls, parent, key], {})
        if not isinstance(parent, GroupBy) or parent.source is not None:
            raise refuse("itertools._grouper.__new__")
        space.mark_mutated(parent)
        parent.group = Grouper(parent, key)
        return parent.group

    def reduced(self, space: Space) -> Value:
        if self.parent.group is not self:
            return reduction(space, iter, [space.new_tuple([])])
        return super().reduced(space)

    def arguments(self, space: Space) -> list[Value]:
        return [self.parent, self.key_]

    def made(self, writer: Writer) -> str:
        return super().made(writer) if self.parent.group is self else f"{writer.const(ended_group)}()"
