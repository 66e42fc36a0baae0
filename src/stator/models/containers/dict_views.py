"""Views of dicts: `keys()`, `values()`, `items()`."""

from __future__ import annotations

import gc
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, ClassVar

from stator.guards.source import CallSource, Source
from stator.models.containers.dict_iterators import (
    DictIterator,
    ItemIterator,
    KeyIterator,
    ReverseItemIterator,
    ReverseKeyIterator,
    ReverseValueIterator,
    ValueIterator,
)
from stator.models.containers.dict_table import Entry
from stator.space.protocol import FALSE, MODELS, NOT_IMPLEMENTED, TRUE, models
from stator.space.recursion import entered, enumeration, list_pieces
from stator.space.value import ObjectValue, Value

if TYPE_CHECKING:
    from stator.models.containers.dict_ import DictValue
    from stator.space.interfaces import Writer
    from stator.space.space import Space

_D: dict[Any, Any] = {}
_KEYS, _VALUES, _ITEMS = type(_D.keys()), type(_D.values()), type(_D.items())
_OD: OrderedDict[Any, Any] = OrderedDict()
_O_KEYS, _O_VALUES, _O_ITEMS = type(_OD.keys()), type(_OD.values()), type(_OD.items())


def viewed(view: Any) -> Any:
    """The dict that a view or mappingproxy shows."""
    return gc.get_referents(view)[0]


@models(_KEYS, _VALUES, _ITEMS, _O_KEYS, _O_VALUES, _O_ITEMS)
class DictView(ObjectValue):
    """A view of a dict."""

    __slots__ = ("shown",)

    plain_iters: tuple[Any, ...] = tuple(t.__iter__ for t in (_KEYS, _VALUES, _ITEMS, _O_KEYS, _O_VALUES, _O_ITEMS))
    #: host types: over a dict, over an OrderedDict
    hosts: ClassVar[tuple[type, type]]
    method: ClassVar[str]
    forward: ClassVar[type[DictIterator]]
    backward: ClassVar[type[DictIterator]]

    def __init__(self, shown: DictValue) -> None:
        self.cls = self.hosts[shown.solid is OrderedDict]
        self.source: Source | None = None
        self.host: Any = None
        self.shown = shown

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> DictView:
        space.guard_type(host, source)
        shown: Any = space.wrap(viewed(host), CallSource(viewed, source, "viewed")).force()
        self = cls(shown)
        self.host = host
        self.source = source
        return self

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        target = writer.expr(self.shown)
        if self.shown.cls is dict:
            return writer.assign(self.method, f"{target}.{self.method}()")
        return writer.assign(self.method, f"{writer.const(self.shown.solid)}.{self.method}({target})")

    def project(self, space: Space, entry: Entry) -> Value:
        """What the view shows of an entry."""
        raise NotImplementedError

    def unpack(self, space: Space) -> list[Value]:
        if self.shown.solid is OrderedDict:
            return self.forward(space, self.shown).unpack(space)
        return [self.project(space, entry) for entry in list(self.shown.table.finish(space).values())]

    def tp_len(self, space: Space) -> Value:
        return space.fresh(self.shown.table.size(space))

    def tp_iter(self, space: Space) -> Value:
        return self.forward(space, self.shown)

    def tp_reversed(self, space: Space) -> Value:
        return self.backward(space, self.shown)

    def mapping(self, space: Space) -> Value:
        from stator.models.containers.mappingproxy import MappingProxyValue

        return MappingProxyValue(self.shown)

    def tp_repr(self, space: Space) -> Value:
        with entered(space, self) as again:
            if again:
                return space.fresh("...")
            return enumeration(f"{self.cls.__name__}([", list_pieces(space, self.unpack(space)), "])")


@models(_KEYS, _ITEMS)
class SetLikeView(DictView):
    """What the views of keys and items have in common with sets."""

    __slots__ = ()

    def tp_contains(self, space: Space, item: Value, /) -> Value:
        raise NotImplementedError

    def holds(self, space: Space, item: Value) -> bool:
        return self.tp_contains(space, item) is TRUE

    def as_set(self, space: Space) -> Any:
        return MODELS[set].from_items(space, self.unpack(space))  # type: ignore[attr-defined]

    # -- comparison: dictview_richcompare ---------------------------------------------------------------------------

    def _sizes(self, space: Space, other: Value) -> tuple[int, int] | None:
        if not issubclass(other.cls, (set, frozenset, _KEYS, _ITEMS)):
            return None
        return self.shown.table.size(space), space.int_(space.len(other))

    def _within(self, space: Space, other: Value) -> bool:
        return all(space.contains(other, item) is TRUE for item in space.iterate(self))

    def _contains_all(self, space: Space, other: Value) -> bool:
        return all(self.holds(space, item) for item in space.iterate(other))

    def tp_eq(self, space: Space, other: Value, /) -> Value:
        sizes = self._sizes(space, other := other.force())
        if sizes is None:
            return NOT_IMPLEMENTED
        return _truth(sizes[0] == sizes[1] and self._within(space, other))

    def tp_ne(self, space: Space, other: Value, /) -> Value:
        sizes = self._sizes(space, other := other.force())
        if sizes is None:
            return NOT_IMPLEMENTED
        return _truth(not (sizes[0] == sizes[1] and self._within(space, other)))

    def tp_lt(self, space: Space, other: Value, /) -> Value:
        sizes = self._sizes(space, other := other.force())
        return NOT_IMPLEMENTED if sizes is None else _truth(sizes[0] < sizes[1] and self._within(space, other))

    def tp_le(self, space: Space, other: Value, /) -> Value:
        sizes = self._sizes(space, other := other.force())
        return NOT_IMPLEMENTED if sizes is None else _truth(sizes[0] <= sizes[1] and self._within(space, other))

    def tp_gt(self, space: Space, other: Value, /) -> Value:
        sizes = self._sizes(space, other := other.force())
        return NOT_IMPLEMENTED if sizes is None else _truth(sizes[0] > sizes[1] and self._contains_all(space, other))

    def tp_ge(self, space: Space, other: Value, /) -> Value:
        sizes = self._sizes(space, other := other.force())
        return NOT_IMPLEMENTED if sizes is None else _truth(sizes[0] >= sizes[1] and self._contains_all(space, other))

    # -- operators: the left operand of the reflected ones may be any iterable ---------------------------------------

    def tp_and(self, space: Space, other: Value, /) -> Value:
        return _intersection(space, self, other.force())

    def tp_rand(self, space: Space, other: Value, /) -> Value:
        return _intersection(space, other.force(), self)

    def tp_or(self, space: Space, other: Value, /) -> Value:
        return _updated(space, self, "update", other)

    def tp_ror(self, space: Space, other: Value, /) -> Value:
        return _updated(space, other, "update", self)

    def tp_sub(self, space: Space, other: Value, /) -> Value:
        return _updated(space, self, "difference_update", other)

    def tp_rsub(self, space: Space, other: Value, /) -> Value:
        return _updated(space, other, "difference_update", self)

    def tp_xor(self, space: Space, other: Value, /) -> Value:
        return _updated(space, self, "symmetric_difference_update", other)

    def tp_rxor(self, space: Space, other: Value, /) -> Value:
        return _updated(space, other, "symmetric_difference_update", self)

    def isdisjoint(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        mine = self.shown.table.size(space)
        if other is self:
            return _truth(mine == 0)
        sized = other.cls in (set, frozenset) or isinstance(other, SetLikeView)
        if sized and space.int_(space.len(other)) > mine:
            return _truth(not any(space.contains(other, item) is TRUE for item in space.iterate(self)))
        return _truth(not any(self.holds(space, item) for item in space.iterate(other)))


def _truth(flag: bool) -> Value:
    return TRUE if flag else FALSE


def _updated(space: Space, left: Value, method: str, right: Value) -> Value:
    """`set(left)`, then its method called with the right operand."""
    result = MODELS[set].from_items(space, space.unpack(left))  # type: ignore[attr-defined]
    getattr(result, method)(space, right)
    return result  # type: ignore[no-any-return]


def _intersection(space: Space, left: Value, right: Value) -> Value:
    """`_PyDictView_Intersect`: the shorter operand is run over, the other asked."""
    if not isinstance(left, SetLikeView) or (
        isinstance(right, SetLikeView) and right.shown.table.size(space) > left.shown.table.size(space)
    ):
        left, right = right, left
    assert isinstance(left, SetLikeView)
    if right.cls is set and space.int_(space.len(right)) >= left.shown.table.size(space):
        return right.intersection(space, left)  # type: ignore[attr-defined, no-any-return]
    found = [item for item in space.iterate(right) if left.holds(space, item)]
    return MODELS[set].from_items(space, found)  # type: ignore[attr-defined, no-any-return]


@models(_KEYS, _O_KEYS)
class KeysView(SetLikeView):
    """`d.keys()`."""

    __slots__ = ()
    hosts = (_KEYS, _O_KEYS)
    method = "keys"
    forward = KeyIterator
    backward = ReverseKeyIterator

    def project(self, space: Space, entry: Entry) -> Value:
        return entry.key

    def tp_contains(self, space: Space, item: Value, /) -> Value:
        return self.shown.tp_contains(space, item)


@models(_VALUES, _O_VALUES)
class ValuesView(DictView):
    """`d.values()`."""

    __slots__ = ()
    hosts = (_VALUES, _O_VALUES)
    method = "values"
    forward = ValueIterator
    backward = ReverseValueIterator

    def project(self, space: Space, entry: Entry) -> Value:
        assert entry.item is not None
        return entry.item


@models(_ITEMS, _O_ITEMS)
class ItemsView(SetLikeView):
    """`d.items()`."""

    __slots__ = ()
    hosts = (_ITEMS, _O_ITEMS)
    method = "items"
    forward = ItemIterator
    backward = ReverseItemIterator

    def project(self, space: Space, entry: Entry) -> Value:
        assert entry.item is not None
        return space.new_tuple([entry.key, entry.item])

    def tp_contains(self, space: Space, item: Value, /) -> Value:
        item = item.force()
        if not issubclass(item.cls, tuple):
            return FALSE
        pair = MODELS[tuple].unpack(item, space)  # type: ignore[attr-defined]
        if len(pair) != 2:
            return FALSE
        found = self.shown.find(space, pair[0])
        return _truth(found is not None and space.equal(found, pair[1]))
