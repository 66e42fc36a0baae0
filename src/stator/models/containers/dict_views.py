"""Views of dicts: `keys()`, `values()`, `items()`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import ClassVar, Self

from stator.guards.source import CallSource, Source
from stator.models.containers.dict_base import DictBase
from stator.models.containers.dict_iterators import (
    DictIterator,
    ItemIterator,
    KeyIterator,
    ReverseItemIterator,
    ReverseKeyIterator,
    ReverseValueIterator,
    ValueIterator,
)
from stator.models.containers.mappingproxy import MappingProxyValue, viewed
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import bool_value
from stator.space.protocol import NOT_IMPLEMENTED, TRUE, models
from stator.space.recursion import entered, enumeration, list_pieces
from stator.space.space import Space
from stator.space.value import ObjectValue, Value

_D: dict[Host, Host] = {}
_OD: OrderedDict[Host, Host] = OrderedDict()
_KEYS, _VALUES, _ITEMS = type(_D.keys()), type(_D.values()), type(_D.items())
_O_KEYS, _O_VALUES, _O_ITEMS = type(_OD.keys()), type(_OD.values()), type(_OD.items())


class DictView(ObjectValue):
    """A view of a dict."""

    __slots__ = ("shown",)

    plain_iters: tuple[Host, ...] = tuple(t.__iter__ for t in (_KEYS, _VALUES, _ITEMS, _O_KEYS, _O_VALUES, _O_ITEMS))
    #: host types: over a dict, over an OrderedDict
    hosts: ClassVar[tuple[type, type]]
    forward: ClassVar[type[DictIterator]]
    backward: ClassVar[type[DictIterator]]

    def __init__(self, shown: DictBase) -> None:
        super().__init__(self.hosts[shown.solid is OrderedDict])
        self.shown = shown

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Self:
        space.guard_type(host, source)
        self = cls(space.wrap(viewed(host), CallSource(viewed, source, "viewed")).force())  # type: ignore[arg-type]
        self.source, self.host = source, host
        return self

    def rebuilt(self, writer: Writer) -> str:
        shown, method = self.shown, self.forward.view
        target = writer.expr(shown)
        plain = f"{target}.{method}()"
        return writer.assign(method, plain if shown.cls is dict else f"{writer.const(shown.solid)}.{method}({target})")

    def unpack(self, space: Space) -> list[Value]:
        if self.shown.solid is OrderedDict:
            return self.forward(space, self.shown).unpack(space)
        return [entry.part(space, self.forward.view) for entry in list(self.shown.table.finish(space).values())]

    def size(self, space: Space) -> int:
        """How many entries there are."""
        return self.shown.table.size(space)

    def tp_len(self, space: Space) -> Value:
        varying = self.shown.table.varying_size(space)
        return space.fresh(self.size(space)) if varying is None else varying

    def tp_iter(self, space: Space) -> Value:
        return self.forward(space, self.shown)

    def tp_reversed(self, space: Space) -> Value:
        return self.backward(space, self.shown)

    def mapping(self, space: Space) -> Value:
        return MappingProxyValue(self.shown)

    def tp_repr(self, space: Space) -> Value:
        with entered(space, self) as again:
            if again:
                return space.fresh("...")
            return enumeration(f"{self.cls.__name__}([", list_pieces(space, self.unpack(space)), "])")


def _updating(method: str) -> tuple[Callable[..., Value], Callable[..., Value]]:
    """An operator and its reflection: `set(left)`, then its method called with the right operand, any iterable."""

    def combined(space: Space, left: Value, right: Value) -> Value:
        result = space.new_set(space.unpack(left))
        getattr(result, method)(space, right)
        return result

    def operator(self: Value, space: Space, other: Value, /) -> Value:
        return combined(space, self, other)

    def reflected(self: Value, space: Space, other: Value, /) -> Value:
        return combined(space, other, self)

    return operator, reflected


class SetLikeView(DictView):
    """What the views of keys and items have in common with sets."""

    __slots__ = ()

    def tp_contains(self, space: Space, item: Value, /) -> Value:
        return bool_value(self.holds(space, item))

    def holds(self, space: Space, item: Value) -> bool:
        """Whether the view has the item."""
        raise NotImplementedError

    def tp_richcompare(self, space: Space, symbol: str, other: Value) -> Value:
        """`dictview_richcompare`: sizes first, then whether all of one are in the other."""
        if not other.isa((set, frozenset, _KEYS, _ITEMS)):
            return NOT_IMPLEMENTED
        mine, theirs = self.size(space), space.int_(space.len(other))
        if symbol in (">", ">="):
            fits = mine > theirs or (symbol == ">=" and mine == theirs)
            return bool_value(fits and all(self.holds(space, item) for item in space.iterate(other)))
        fits = mine == theirs if symbol in ("==", "!=") else mine < theirs or (symbol == "<=" and mine == theirs)
        within = fits and all(space.contains(other, item) is TRUE for item in space.iterate(self))
        return bool_value(within != (symbol == "!="))

    tp_or, tp_ror = _updating("update")
    tp_sub, tp_rsub = _updating("difference_update")
    tp_xor, tp_rxor = _updating("symmetric_difference_update")

    def tp_and(self, space: Space, other: Value, /) -> Value:
        """`_PyDictView_Intersect`: the shorter operand is run over, the other asked."""
        other = other.force()
        if isinstance(other, SetLikeView) and other.size(space) > self.size(space):
            return other._intersection(space, self)
        return self._intersection(space, other)

    def tp_rand(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        return other.tp_and(space, self) if isinstance(other, SetLikeView) else self._intersection(space, other)

    def _intersection(self, space: Space, other: Value) -> Value:
        if other.cls is set and space.int_(space.len(other)) >= self.size(space):
            return space.call_builtin(set.intersection, [other, self], {})
        return space.new_set([item for item in space.iterate(other) if self.holds(space, item)])

    def isdisjoint(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if other is self:
            return bool_value(self.size(space) == 0)
        sized = other.cls in (set, frozenset) or isinstance(other, SetLikeView)
        if sized and space.int_(space.len(other)) > self.size(space):
            return bool_value(not any(space.contains(other, item) is TRUE for item in space.iterate(self)))
        return bool_value(not any(self.holds(space, item) for item in space.iterate(other)))


@models(_KEYS, _O_KEYS)
class KeysView(SetLikeView):
    """`d.keys()`."""

    __slots__ = ()
    hosts = (_KEYS, _O_KEYS)
    forward = KeyIterator
    backward = ReverseKeyIterator

    def holds(self, space: Space, item: Value) -> bool:
        return self.shown.table.locate(space, self.shown.hash_key(space, item)) is not None


@models(_VALUES, _O_VALUES)
class ValuesView(DictView):
    """`d.values()`."""

    __slots__ = ()
    hosts = (_VALUES, _O_VALUES)
    forward = ValueIterator
    backward = ReverseValueIterator


@models(_ITEMS, _O_ITEMS)
class ItemsView(SetLikeView):
    """`d.items()`."""

    __slots__ = ()
    hosts = (_ITEMS, _O_ITEMS)
    forward = ItemIterator
    backward = ReverseItemIterator

    def holds(self, space: Space, item: Value) -> bool:
        item = item.force()
        pair: list[Value] = item.items if item.isa(tuple) else []  # type: ignore[attr-defined]
        if len(pair) != 2:
            return False
        found = self.shown.find(space, pair[0])
        return found is not None and space.equal(found, pair[1])
