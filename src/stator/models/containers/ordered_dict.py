"""OrderedDict: `Objects/odictobject.c`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from stator import errors
from stator.host.version_facts import ORDERED_DICTS_NOTICE_CHANGES, ORDERED_DICTS_SHOW_A_DICT
from stator.models.containers.dict_ import DictValue, unions
from stator.models.containers.dict_iterators import look_up
from stator.models.containers.dict_table import Entry, Table, key_error
from stator.models.iterators.iterator import reduction
from stator.space.deferred import DeferredStr, concatenated
from stator.space.host_types import Host
from stator.space.identity.keys import is_plain
from stator.space.interfaces import Writer
from stator.space.operands import among, bool_value
from stator.space.protocol import HANDLERS, NONE, NOT_IMPLEMENTED, TRUE, models, register
from stator.space.recursion import entered, repr_piece
from stator.space.space import Space
from stator.space.value import Constant, Unsupported, Value


def _merge(space: Space, target: DictValue, other: Value) -> None:
    """`mutablemapping_update_arg`."""
    other = other.force()
    if isinstance(other, DictValue) and other.cls is dict:
        for key, item in other.pairs(space):
            space.setitem(target, key, item)
        return
    keys = space.getattr_or_none(other, "keys")
    if keys is not None:
        for key in space.iterate(space.call(keys, [], {})):
            target.tp_setitem(space, key, space.getitem(other, key))
        return
    items = space.getattr_or_none(other, "items")
    for pair in space.iterate(other if items is None else space.call(items, [], {})):
        key, item = _pair(space, pair)
        space.setitem(target, key, item)


@models(OrderedDict)
class OrderedDictValue(DictValue):
    """An OrderedDict or an instance of a subclass."""

    __slots__ = ()

    plain_iters: tuple[Host, ...] = (OrderedDict.__iter__,)
    solid = OrderedDict

    def scatter(self, space: Space, method: Callable[[], Value | None]) -> Value | None:
        """A method of dict itself changes the entries, and leaves the order as it was."""
        if self.source is not None or self._attrs is not None:
            raise _scattered()
        table = self.table
        if not isinstance(table, ScatteredTable):
            if not all(is_plain(key) for key in table.entries):
                raise _scattered()
            table = ScatteredTable(table)
        self.table, table.open = table, True
        try:
            return method()
        finally:
            table.open = False
            self.table = table.settled()

    # -- filling: through `self[key] = item`, which a subclass may override -----------------------------------------

    def tp_init(self, space: Space, other: Value | None = None, /, **kwargs: Value) -> Value:
        return OrderedDictValue.update(self, space, other, **kwargs)

    def update(self, space: Space, other: Value | None = None, /, **kwargs: Value) -> Value:
        if other is not None:
            _merge(space, self, other)
        for name, item in kwargs.items():
            space.setitem(self, Constant(name), item)
        return NONE

    @staticmethod
    def fromkeys(space: Space, cls_value: Value, iterable: Value, value: Value = NONE) -> Value:
        return DictValue.fromkeys(space, cls_value, iterable, value)

    # -- comparison: order counts between two OrderedDicts -----------------------------------------------------------

    @among(dict)
    def tp_richcompare(self, space: Space, symbol: str, other: DictValue) -> Value:
        if symbol not in ("==", "!="):
            return NOT_IMPLEMENTED
        return bool_value(self._equals(space, other) is (symbol == "=="))

    def _equals(self, space: Space, other: DictValue) -> bool:
        if not self.same_items(space, other):
            return False
        if not other.isa(OrderedDict):
            return True
        keys = self.unpack(space), other.unpack(space)
        for mine, theirs in zip(*keys, strict=True):
            mutation_count = space.trace.mutation_count
            same = space.equal(mine, theirs)
            if (
                ORDERED_DICTS_NOTICE_CHANGES
                and mutation_count != space.trace.mutation_count
                and (self.unpack(space), other.unpack(space)) != keys
            ):
                raise space.error(RuntimeError, "OrderedDict mutated during iteration")
            if not same:
                return False
        return True

    # -- text and generated code ------------------------------------------------------------------------------------

    def tp_repr(self, space: Space) -> Value:
        name = space.class_name(self.cls)
        with entered(space, self) as again:
            if again:
                return space.fresh("...")
            if not self.table.size(space):
                return space.fresh(f"{name}()")
            return concatenated(f"{name}(", self._contents(space), ")")

    def _rebuild(self, writer: Writer, name: str) -> str:
        if isinstance(self.table, ScatteredTable):
            raise _scattered()
        return super()._rebuild(writer, name)

    def written_hashes(self, keys: list[Value]) -> list[int | None]:
        raise Unsupported(errors.NotReconstructible("an OrderedDict whose keys have methods to hash and compare them"))

    def _contents(self, space: Space) -> str | DeferredStr:
        if isinstance(self.table, ScatteredTable):
            if any(space.host_lookup(self.cls, name) is not getattr(OrderedDict, name) for name in _ITERATED):
                raise _scattered()
            items = list(self.table.ordered(space))
            if ORDERED_DICTS_SHOW_A_DICT:
                return repr_piece(space, space.new_dict(items))
            return repr_piece(space, space.new_list([space.new_tuple([key, item]) for key, item in items]))
        if ORDERED_DICTS_SHOW_A_DICT:
            return repr_piece(space, space.call(space.existing(dict), [self], {}))
        if self.cls is OrderedDict:
            pairs = []
            for entry in list(self.table.finish(space).values()):
                look_up(space, self, entry)
                assert entry.item is not None
                pairs.append(space.new_tuple([entry.key, entry.item]))
        else:
            pairs = space.unpack(space.call_method(self, "items"))
        return repr_piece(space, space.new_list(pairs))

    # -- methods ----------------------------------------------------------------------------------------------------

    def pop(self, space: Space, key: Value, default: Value | None = None) -> Value:
        return self.taken(space, key, self.hash_key(space, key), default)

    def setdefault(self, space: Space, key: Value, default: Value = NONE) -> Value:
        if self.cls is OrderedDict:
            return DictValue.setdefault(self, space, key, default)
        if space.contains(self, key) is TRUE:
            return space.getitem(self, key)
        space.setitem(self, key, default)
        return default

    def popitem(self, space: Space, last: Value = TRUE) -> Value:
        from_end = space.truth(last)
        entries = self.table.finish(space)
        if not entries:
            raise space.error(KeyError, "dictionary is empty")
        self.mark_mutated(space)
        key = next(reversed(entries) if from_end else iter(entries))
        entry = self.table.remove_stored(key)
        assert entry.item is not None
        return space.new_tuple([entry.key, entry.item])

    def move_to_end(self, space: Space, key: Value, last: Value = TRUE) -> Value:
        to_end = space.truth(last)
        entries = self.table.finish(space)
        found = self.table.locate(space, self.hash_key(space, key))
        if found is None:
            raise key_error(space, key)
        if found is next(reversed(entries.values()) if to_end else iter(entries.values())):
            return NONE
        self.mark_mutated(space)
        stored = next(stored for stored, entry in entries.items() if entry is found)
        self.table.move(stored, to_end)
        return NONE

    def copy(self, space: Space) -> Value:
        if self.cls is OrderedDict:
            for entry in list(self.table.finish(space).values()):
                look_up(space, self, entry)
            return self.duplicate(space, OrderedDictValue())
        result = space.call(space.class_value(self.cls), [], {}).force()
        for key in self.unpack(space):
            space.setitem(result, key, space.getitem(self, key))
        return result

    tp_or, tp_ror = unions(lambda space, left, self: space.call(space.class_value(self.cls), [left], {}), _merge)

    def tp_ior(self, space: Space, other: Value, /) -> Value:
        _merge(space, self, other)
        return self

    def tp_reduce(self, space: Space) -> Value:
        items = space.iter(space.call_method(self, "items"))
        return reduction(space, self.cls, [], space.call_method(self, "__getstate__"), NONE, items)


def _pair(space: Space, pair: Value) -> list[Value]:
    parts = space.unpack_up_to(pair, 3)
    if len(parts) < 2:
        raise space.error(ValueError, f"need more than {len(parts)} value{'' if len(parts) == 1 else 's'} to unpack")
    if len(parts) > 2:
        raise space.error(ValueError, "too many values to unpack (expected 2)")
    return parts


class ScatteredTable(Table):
    """The entries of an OrderedDict that methods of dict itself have changed, which leave the order as it was."""

    __slots__ = ("nodes", "open", "usual")

    def __init__(self, usual: Table) -> None:
        super().__init__()
        self.usual = usual
        self.entries, self.version = usual.entries, usual.version
        #: the keys in order, gone or not
        self.nodes = list(usual.entries.items())
        #: whether it is a method of dict that asks
        self.open = False

    def finish(self, space: Space) -> dict[Host, Entry]:
        self._check()
        return self.entries

    def put(self, space: Space, key: Host, key_value: Value, item: Value) -> None:
        self._check()
        super().put(space, key, key_value, item)

    def take(self, space: Space, key: Host) -> Entry | None:
        self._check()
        return super().take(space, key)

    def clear(self) -> None:
        self._check()
        super().clear()

    def _check(self) -> None:
        if not self.open:
            raise _scattered()

    def size(self, space: Space) -> int:
        return len(self.entries)

    def settled(self) -> Table:
        """An ordinary table where order and entries agree."""
        if list(self.entries.items()) != self.nodes:
            return self
        self.usual.entries, self.usual.version = self.entries, self.version
        return self.usual

    def ordered(self, space: Space) -> list[tuple[Value, Value]]:
        """Keys and items in order; KeyError for a key that is gone. What the order has not is not seen."""
        gone = [node.key for key, node in self.nodes if key not in self.entries]
        if len(gone) > 1:
            raise _scattered()  # which of them is reported is a matter of how the dict lies in memory
        if gone:
            raise key_error(space, gone[0])
        return [(node.key, self.entries[key].item) for key, node in self.nodes]  # type: ignore[misc]


def _scattered() -> Unsupported:
    return Unsupported(errors.UnsupportedMutation("a method of dict", "an OrderedDict"))


def _past_the_order(host: Host) -> None:
    """A method of dict itself, called on an OrderedDict."""
    usual = HANDLERS[id(host)]

    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        target = args[0].force() if args else None
        if isinstance(target, OrderedDictValue):
            return target.scatter(space, lambda: usual(space, args, kwargs))
        return usual(space, args, kwargs)

    register(host, model)


#: what iterating over an OrderedDict for its repr goes through
_ITERATED = ("__iter__", "__getitem__", "keys", "items")
for _name in ("__setitem__", "__delitem__", "pop", "popitem", "setdefault", "clear", "update", "__ior__"):
    _past_the_order(dict.__dict__[_name])


__all__ = ["OrderedDictValue"]
