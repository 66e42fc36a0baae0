"""itertools, continued: iterators over arrangements of a pool of items."""

from __future__ import annotations

import itertools
from typing import Self

from stator.host.version_facts import ITERTOOLS_ARE_COPIED
from stator.models.containers.sequence import MAXSIZE
from stator.models.iterators.iterator import advanced, iterator_type, native, own_class, reduction
from stator.models.iterators.itertools_ import ItertoolsIterator, quietly
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import host_errors, known_host
from stator.space.protocol import NONE
from stator.space.space import Space
from stator.space.value import Constant, Value


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
        known = known_host(space, state, name) if state.isa(tuple) else space.sample(state)
        with host_errors(space, Exception):
            quietly(self.indices.__setstate__, known)

    def rebuilt(self, writer: Writer) -> str:
        parts = [f"[{', '.join([writer.expr(item) for item in pool])}]" for pool in self.pools]
        parts += map(repr, self.options)
        if not ITERTOOLS_ARE_COPIED:
            return advanced(writer, self.call_text(writer, *parts), self.taken)
        args, *state = self._host_state()
        if args != self.whole:
            parts = [repr(arg) for arg in args]
        name = writer.assign("iterator", self.call_text(writer, *parts))
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
