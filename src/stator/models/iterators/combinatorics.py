"""itertools, continued: iterators over arrangements of a pool of items, and those that share their items."""

from __future__ import annotations

import itertools
from typing import Self

from stator import errors
from stator.host.version_facts import ITERTOOLS_ARE_COPIED
from stator.models.containers.sequence import MAXSIZE
from stator.models.iterators.iterator import (
    IteratorValue,
    advanced,
    iterator_type,
    native,
    own_class,
    reduction,
)
from stator.models.iterators.itertools_ import ItertoolsIterator, quietly
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import known_host, refuse
from stator.space.protocol import NONE, bad_call, builtin
from stator.space.space import Space
from stator.space.value import Constant, Raised, Unsupported, Value

_GROUPER: Host = type(next(itertools.groupby("a"))[1])
_TEE: type = type(itertools.tee(())[0])


def placed(iterator: Host, state: tuple[object, ...]) -> Host:
    """An iterator over arrangements where `__reduce__` said it was, for generated code."""
    quietly(vars(native(type(iterator)))["__setstate__"], iterator, state)
    return iterator


class Arrangements(ItertoolsIterator):
    """Arrangements of pools: the host's own iterator arranges the indices."""

    __slots__ = ("indices", "options", "pools", "taken", "whole")

    indices: Host
    #: what follows the pools in a call of the type
    options: tuple[int, ...]
    pools: list[list[Value]]
    #: how many steps it has taken
    taken: int
    #: the arguments by which the host's iterator was made
    whole: tuple[object, ...]

    @classmethod
    def arranging(cls, space: Space, owner: Value, pools: list[list[Value]], *options: int) -> Self:
        """A new one: its type arranges the positions in the pools, whatever their items are."""
        arranging: Host = cls.host_type
        indices = arranging(*(range(len(pool)) for pool in pools), *options)
        self = cls.of(own_class(space, owner), pools=pools, indices=indices, options=options, taken=0)
        if ITERTOOLS_ARE_COPIED:
            self.whole = self._host_state()[0]
        return self

    def _host_state(self) -> tuple[Host, ...]:
        """The arguments to make it of again, and the state, if it has any."""
        made: tuple[Host, ...] = quietly(self.indices.__reduce__)
        return made[1:]

    def produce(self, space: Space) -> Value | None:
        chosen = next(self.indices, None)
        self.taken += 1
        space.mark_mutated(self)
        if chosen is None:
            return None
        pools = self.pools if len(self.pools) == len(chosen) else [self.pools[0]] * len(chosen)
        return space.new_tuple([pool[i] for pool, i in zip(pools, chosen, strict=True)])

    def reduced(self, space: Space) -> Value:
        args, *state = self._host_state()
        if args != self.whole:  # it is at its end
            return reduction(space, self.cls, [space.fresh(arg) for arg in args])
        pools: list[Value] = [space.new_tuple(pool) for pool in self.pools]
        return reduction(space, self.cls, [*pools, *map(Constant, self.options)], *map(space.fresh, state))

    def restore(self, space: Space, state: Value) -> None:
        if self.source is not None:
            raise self.without_state()
        name = f"itertools.{self.cls.__name__}.__setstate__"
        known = known_host(space, state, name) if state.isa(tuple) else space.stand_in(state)
        try:
            quietly(self.indices.__setstate__, known)
        except Exception as e:
            raise Raised(space.exception(e)) from None

    def rebuilt(self, writer: Writer) -> str:
        parts = [f"[{', '.join([writer.expr(item) for item in pool])}]" for pool in self.pools]
        parts += map(repr, self.options)
        if not ITERTOOLS_ARE_COPIED:
            return advanced(writer, self.call(writer, *parts), self.taken)
        args, *state = self._host_state()
        if args != self.whole:
            parts = [repr(arg) for arg in args]
        name = writer.assign("iterator", self.call(writer, *parts))
        if state:
            writer.line(f"{writer.const(placed)}({name}, {state[0]!r})")
        return name


@iterator_type(itertools.product)
class Product(Arrangements):
    """`product(*iterables, repeat=…)`."""

    __slots__ = ()

    @staticmethod
    def tp_new(space: Space, cls: Value, *iterables: Value, repeat: Value = Constant(1)) -> Value:  # noqa: B008 (immutable)
        times = space.int_(repeat)
        if times < 0:
            raise space.error(ValueError, "repeat argument cannot be negative")
        return Product.arranging(space, cls, [space.unpack(each) for each in iterables] * times)


def _size(space: Space, value: Value) -> int:
    size = space.int_(value)
    if size < 0:
        raise space.error(ValueError, "r must be non-negative")
    if size > MAXSIZE:
        raise space.error(OverflowError, "Python int too large to convert to C ssize_t")
    return size


@iterator_type(itertools.permutations)
class Permutations(Arrangements):
    """`permutations(iterable, r)`."""

    __slots__ = ()

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value, r: Value = NONE) -> Value:
        pool = space.unpack(iterable)
        if not r.is_none() and not r.isa(int):
            raise space.error(TypeError, "Expected int as r")
        return Permutations.arranging(space, cls, [pool], len(pool) if r.is_none() else _size(space, r))


@iterator_type(itertools.combinations)
class Combinations(Arrangements):
    """`combinations(iterable, r)`."""

    __slots__ = ()

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value, r: Value) -> Value:
        pool = space.unpack(iterable)
        return Combinations.arranging(space, cls, [pool], _size(space, r))


@iterator_type(itertools.combinations_with_replacement)
class CombinationsWithReplacement(Arrangements):
    """`combinations_with_replacement(iterable, r)`."""

    __slots__ = ()

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value, r: Value) -> Value:
        pool = space.unpack(iterable)
        return CombinationsWithReplacement.arranging(space, cls, [pool], _size(space, r))


# -- groupby ----------------------------------------------------------------------------------------------------------


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


# -- tee --------------------------------------------------------------------------------------------------------------


class _Shared(Value):
    """What the iterators of one `tee` share: an iterator and the items it has given so far."""

    __slots__ = ("items", "iterator", "running")

    def __init__(self, iterator: Value) -> None:
        self.cls = _TEE
        self.running = False
        self.source = None
        self.iterator = iterator
        self.items: list[Value] = []

    def item(self, space: Space, index: int) -> Value | None:
        """The item at a position, None beyond the end."""
        if index == len(self.items):
            if self.running:
                raise space.error(RuntimeError, "cannot re-enter the tee iterator")
            self.running = True
            try:
                item = space.next(self.iterator)
            finally:
                self.running = False
            if item is None:
                return None
            space.mark_mutated(self)
            self.items.append(item)
        return self.items[index]

    def reconstruct(self, writer: Writer) -> str:
        rest = writer.expr(self.iterator)
        if self.items:
            given = ", ".join([writer.expr(item) for item in self.items])
            rest = f"{writer.const(itertools.chain)}([{given}], {rest})"
        return writer.assign("shared", f"{writer.const(itertools.tee)}({rest}, 1)[0]")


@iterator_type(_TEE)
class Tee(IteratorValue):
    """One of the iterators that `tee(iterable)` gives."""

    __slots__ = ("index", "shared")

    def __init__(self, shared: _Shared, index: int) -> None:
        super().__init__()
        self.shared = shared
        self.index = index

    def produce(self, space: Space) -> Value | None:
        item = self.shared.item(space, self.index)
        if item is not None:
            space.mark_mutated(self)
            self.index += 1
        return item

    def tp_copy(self, space: Space) -> Value:
        self.open(space)
        return Tee(self.shared, self.index)

    def rebuilt(self, writer: Writer) -> str:
        return advanced(writer, f"{writer.expr(self.shared)}.__copy__()", self.index)


@builtin(itertools.tee)
def tee(space: Space, iterable: Value, n: Value = Constant(2), /) -> Value:  # noqa: B008 (immutable)
    count = space.int_(n)
    if count < 0:
        raise space.error(ValueError, "n must be >= 0")
    if count == 0:
        return space.new_tuple([])
    first = space.iter(iterable)
    copier = space.getattr_or_none(first, "__copy__")
    if copier is None:
        first = Tee(_Shared(first), 0)
        copier = space.getattr(first, "__copy__")
    return space.new_tuple([first, *(space.call(copier, [], {}) for _ in range(count - 1))])
