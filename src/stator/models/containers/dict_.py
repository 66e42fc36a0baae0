"""dict: `Objects/dictobject.c`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator import errors
from stator._core import write_dict
from stator.models.classes.instance import fill, held_attributes, slot_effects
from stator.models.containers.dict_iterators import KeyIterator, ReverseKeyIterator
from stator.models.containers.dict_merge import merge
from stator.models.containers.dict_table import Table, key_error
from stator.models.containers.dict_views import ItemsView, KeysView, ValuesView
from stator.space.attributes import MISSING
from stator.space.deferred import DeferredStr, concatenated
from stator.space.protocol import FALSE, NONE, NOT_IMPLEMENTED, TRUE, model_for, models
from stator.space.recursion import compared, entered, repr_piece
from stator.space.value import ExtensibleValue, NotKnown, Raised, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stator.guards.source import Source
    from stator.space.interfaces import Writer
    from stator.space.space import Space


@models(dict)
class DictValue(ExtensibleValue):
    """A dict or an instance of a subclass; `table` is what it contains."""

    __slots__ = ("_busy", "slots", "table")

    plain_iters: tuple[Any, ...] = (dict.__iter__,)
    #: the builtin type whose methods act on the real object without meeting overrides
    solid: type = dict

    def __init__(self, cls: type = dict) -> None:
        self.cls = cls
        self.source = None
        self.host: Any = None
        self.table = Table()
        self._attrs: Any = None
        self.slots: dict[Any, Value | None] = {}
        self._busy = False

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> DictValue:
        self = cls(space.guard_type(host, source))
        self.host = host
        self.source = source
        self.table = Table(host, source)
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Any) -> DictValue:
        self = cls(type(host))
        space._by_id[id(host)] = self
        space._kept.append(host)
        for key, item in host.items():
            self.store(space, space.fresh(key), space.fresh(item))
        return self

    @classmethod
    def from_pairs(cls, space: Space, pairs: list[tuple[Value, Value]]) -> DictValue:
        """A fresh dict, as the display `{key: item, …}` makes it."""
        self = cls()
        for key, item in pairs:
            self.store(space, key, item)
        return self

    # -- for other models -------------------------------------------------------------------------------------------

    def store(self, space: Space, key: Value, item: Value) -> None:
        """`dict.__setitem__`, without noting the mutation."""
        self.table.put(space, space.key_as(key, "dict key"), key, item)

    def find(self, space: Space, key: Value) -> Value | None:
        """`dict.get` as a host function: None where the key is missing."""
        entry = self.table.locate(space, space.key_as(key, "dict key"))
        return None if entry is None else entry.item

    def mark_mutated(self, space: Space) -> None:
        """Note that the dict is about to be changed."""
        space.mark_mutated(self)

    def pairs(self, space: Space) -> list[tuple[Value, Value]]:
        """Keys and items, in order."""
        return [(e.key, e.item) for e in self.table.finish(space).values() if e.item is not None]

    def unpack(self, space: Space) -> list[Value]:
        """The keys, in order."""
        return [e.key for e in self.table.finish(space).values()]

    def stored(self, space: Space) -> list[tuple[Any, Value]]:
        """The keys with their stand-ins, in order: nothing needs to be hashed again."""
        return [(key, entry.key) for key, entry in self.table.finish(space).items()]

    def str_items(self, space: Space) -> dict[str, Value]:
        """The items by name, as the call `f(**d)` needs them."""
        named: dict[str, Value] = {}
        for key, item in self.pairs(space):
            if not issubclass(key.force().cls, str):
                raise space.error(TypeError, "keywords must be strings")
            named[space.str_(key)] = item
        return named

    def duplicate(self, space: Space, result: DictValue) -> DictValue:
        """Copy the entries into a fresh dict, without hashing or comparing keys again."""
        self.table.finish(space)
        result.table.entries = self.table.copied()
        result.table.version = self.table.version
        if self.table.host is not None or self.dict_owner is not None:
            result.table.laid_out_anew()
        return result

    # -- the value protocol -----------------------------------------------------------------------------------------

    def as_host(self, space: Space) -> Any:
        if self.cls is not dict or self._busy:
            raise NotKnown(self)
        self._busy = True
        try:
            return {key.as_host(space): item.as_host(space) for key, item in self.pairs(space)}
        finally:
            self._busy = False

    def dropped(self, hosts: list[Any]) -> list[Any]:
        return self.table.dropped(hosts)

    def held(self) -> Iterable[Value]:
        return (*self.table.held(), *held_attributes(self))

    def describe(self) -> str:
        if self.table.complete:
            return f"a {self.cls.__qualname__} of {len(self.table.entries)}"
        return super().describe()

    # -- generated code ---------------------------------------------------------------------------------------------

    def shell(self, writer: Writer) -> str:
        """An empty dict of the class, made without the program's `__new__` and `__init__`."""
        if self.cls is dict:
            return "{}"
        return f"{writer.const(self.solid)}.__new__({class_text(writer, self.cls)})"

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        if self.cls is not dict:
            return self._rebuild(writer, writer.early(self))
        entries = self.pairs(writer.trace.space)
        pairs = [(writer.expr(key), writer.expr(item)) for key, item in entries]
        shell = writer.shell_of(self)
        if shell is None and not self.table.runs_methods():
            return writer.assign("dict", "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}")
        name = shell or writer.assign("dict", "{}")
        for line in self._statements(writer, name, [], entries):
            writer.line(line)
        return name

    def _rebuild(self, writer: Writer, name: str) -> str:
        self.fill_extra(writer, name)
        entries = self.pairs(writer.trace.space)
        for line in self._statements(writer, name, [], entries):
            writer.line(line)
        fill(self, writer, name)
        return name

    def fill_extra(self, writer: Writer, name: str) -> None:
        """Lines that give the real object what it holds beside its entries."""

    def _statements(
        self, writer: Writer, target: str, deleted: list[Value], assigned: list[tuple[Value, Value]]
    ) -> list[str]:
        """What deletes keys of the real dict, then assigns items in order."""
        gone = [writer.expr(key) for key in deleted]
        pairs = [(writer.expr(key), writer.expr(item)) for key, item in assigned]
        if self.table.runs_methods():
            keys, items = (f"[{', '.join(texts)}]" for texts in zip(*pairs, strict=True)) if pairs else ("()", "()")
            hashes = self.written_hashes([key for key, _ in assigned])
            return [f"{writer.const(write_dict)}({target}, [{', '.join(gone)}], {keys}, {items}, {hashes})"]
        if self.cls is dict:
            return [*(f"del {target}[{key}]" for key in gone), *(f"{target}[{key}] = {item}" for key, item in pairs)]
        solid = writer.const(self.solid)
        deletions = [f"{solid}.__delitem__({target}, {key})" for key in gone]
        return [*deletions, *(f"{solid}.__setitem__({target}, {key}, {item})" for key, item in pairs)]

    def written_hashes(self, keys: list[Value]) -> list[int | None]:
        """The hashes that generated code gives keys which it neither hashes nor compares; None: it asks for it."""
        known = self.table.written_hashes()
        return [known[id(key)] for key in keys]

    def effects(self, writer: Writer) -> list[str]:
        plan = self.table.plan()
        assert self.source is not None
        target = writer.source(self.source)
        statements = self._statements(writer, target, plan.deleted, plan.assigned)
        lines = slot_effects(self, writer) if self.slots else []
        if plan.clear:
            lines.append(f"{target}.clear()" if self.cls is dict else f"{writer.const(self.solid)}.clear({target})")
        return lines + statements

    # -- making -----------------------------------------------------------------------------------------------------

    @staticmethod
    def tp_new(space: Space, cls_value: Value, /, *args: Value, **kwargs: Value) -> Value:
        return empty(space, cls_value)

    def tp_init(self, space: Space, other: Value | None = None, /, **kwargs: Value) -> Value:
        merge(space, self, other, kwargs)
        return NONE

    @staticmethod
    def fromkeys(space: Space, cls_value: Value, iterable: Value, value: Value = NONE, /) -> Value:
        result = space.call(cls_value, [], {}).force()
        source = iterable.force()
        if type(result) is DictValue and result.cls is dict and source.cls in (dict, set, frozenset):
            result.mark_mutated(space)
            for stand_in, key in source.stored(space):  # type: ignore[attr-defined]
                result.table.put(space, stand_in, key, value)
            return result
        for key in space.iterate(iterable):
            if isinstance(result, DictValue) and result.cls is dict:
                result.tp_setitem(space, key, value)
            else:
                space.setitem(result, key, value)
        return result

    # -- slots ------------------------------------------------------------------------------------------------------

    def tp_len(self, space: Space) -> Value:
        return space.fresh(self.table.size(space))

    def tp_contains(self, space: Space, key: Value, /) -> Value:
        return TRUE if self.table.locate(space, space.key_as(key, "dict key")) is not None else FALSE

    def tp_getitem(self, space: Space, key: Value, /) -> Value:
        found = self.find(space, key)
        if found is not None:
            return found
        if self.cls is not dict:
            missing = space.special(self, "__missing__")
            if missing is not None:
                return space.call(missing, [self, key], {})
        raise key_error(space, key)

    def tp_setitem(self, space: Space, key: Value, item: Value, /) -> Value:
        stand_in = space.key_as(key, "dict key")
        self.mark_mutated(space)
        self.table.put(space, stand_in, key, item)
        return NONE

    def tp_delitem(self, space: Space, key: Value, /) -> Value:
        stand_in = space.key_as(key, "dict key")
        self.mark_mutated(space)
        if self.table.take(space, stand_in) is None:
            raise key_error(space, key)
        return NONE

    def tp_iter(self, space: Space) -> Value:
        return KeyIterator(space, self)

    def tp_reversed(self, space: Space) -> Value:
        return ReverseKeyIterator(space, self)

    def tp_repr(self, space: Space) -> Value:
        with entered(space, self) as again:
            if again:
                return space.fresh("{...}")
            parts: list[str | DeferredStr] = []
            for key, item in self.pairs(space):
                parts += (", ", repr_piece(space, key), ": ", repr_piece(space, item))
            return concatenated("{", *parts[1:], "}")

    def tp_eq(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if not isinstance(other, DictValue):
            return NOT_IMPLEMENTED
        return TRUE if self.same_items(space, other) else FALSE

    def tp_ne(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if not isinstance(other, DictValue):
            return NOT_IMPLEMENTED
        return FALSE if self.same_items(space, other) else TRUE

    def same_items(self, space: Space, other: DictValue) -> bool:
        """`dict_equal`."""
        if self.table.size(space) != other.table.size(space):
            return False
        for key, entry in list(self.table.finish(space).items()):
            theirs = other.table.locate(space, key)
            if theirs is None or theirs.item is None or entry.item is None:
                return False
            item, their_item = entry.item, theirs.item
            if not compared(space, self, other, lambda a=their_item, b=item: space.equal(a, b)):  # type: ignore[misc]
                return False
        return True

    def tp_lt(self, space: Space, other: Value, /) -> Value:
        return NOT_IMPLEMENTED

    def tp_le(self, space: Space, other: Value, /) -> Value:
        return NOT_IMPLEMENTED

    def tp_gt(self, space: Space, other: Value, /) -> Value:
        return NOT_IMPLEMENTED

    def tp_ge(self, space: Space, other: Value, /) -> Value:
        return NOT_IMPLEMENTED

    def tp_or(self, space: Space, other: Value, /) -> Value:
        return union(space, self, other)

    def tp_ror(self, space: Space, other: Value, /) -> Value:
        return union(space, other.force(), self)

    def tp_ior(self, space: Space, other: Value, /) -> Value:
        merge(space, self, other, {})
        return self

    # -- methods ----------------------------------------------------------------------------------------------------

    def get(self, space: Space, key: Value, default: Value = NONE, /) -> Value:
        found = self.find(space, key)
        return default if found is None else found

    def setdefault(self, space: Space, key: Value, default: Value = NONE, /) -> Value:
        entry, added = self.table.setdefault(space, space.key_as(key, "dict key"), key, default)
        if added:
            self.mark_mutated(space)
        assert entry.item is not None
        return entry.item

    def pop(self, space: Space, key: Value, default: Value | None = None, /) -> Value:
        taken = None
        stand_in = self._pop_key(space, key)
        if stand_in is not MISSING:
            self.mark_mutated(space)
            taken = self.table.take(space, stand_in)
        if taken is not None and taken.item is not None:
            return taken.item
        if default is None:
            raise key_error(space, key)
        return default

    def _pop_key(self, space: Space, key: Value) -> Any:
        """The key's stand-in; MISSING where the dict is empty, as then the key is not even hashed."""
        if self.table.complete:
            return space.key_as(key, "dict key") if self.table.entries else MISSING
        try:
            return space.key_as(key, "dict key")
        except Raised:
            if self.table.size(space):
                raise
            return MISSING

    def popitem(self, space: Space) -> Value:
        entries = self.table.finish(space)
        if not entries:
            raise space.error(KeyError, "popitem(): dictionary is empty")
        self.mark_mutated(space)
        _, entry = entries.popitem()
        self.table.laid_out_anew()
        assert entry.item is not None
        return space.new_tuple([entry.key, entry.item])

    def update(self, space: Space, other: Value | None = None, /, **kwargs: Value) -> Value:
        merge(space, self, other, kwargs)
        return NONE

    def clear(self, space: Space) -> Value:
        self.mark_mutated(space)
        self.table.clear()
        return NONE

    def copy(self, space: Space) -> Value:
        return self.duplicate(space, DictValue())

    def keys(self, space: Space) -> Value:
        return KeysView(self)

    def values(self, space: Space) -> Value:
        return ValuesView(self)

    def items(self, space: Space) -> Value:
        return ItemsView(self)


def empty(space: Space, cls_value: Value) -> DictValue:
    """A fresh, empty instance of a dict class."""
    cls = space.known(cls_value)
    if cls is NotKnown:
        raise Unsupported(errors.UnsupportedCCall("dict.__new__"))
    if not isinstance(cls, type) or not issubclass(cls, dict):
        shown = space.class_name(cls) if isinstance(cls, type) else "X"
        raise space.error(TypeError, f"dict.__new__({shown}): {shown} is not a subtype of dict")
    model = model_for(cls)
    assert model is not None
    return model(cls)  # type: ignore[call-arg, return-value]


def union(space: Space, left: Value, right: Value) -> Value:
    """`left | right` of dicts: a plain dict."""
    right = right.force()
    if not isinstance(left, DictValue) or not isinstance(right, DictValue):
        return NOT_IMPLEMENTED
    result = left.duplicate(space, DictValue())
    merge(space, result, right, {})
    return result


def class_text(writer: Writer, cls: type) -> str:
    """The expression of a class in generated code."""
    return writer.expr(writer.trace.space.class_value(cls))


__all__ = ["DictValue", "class_text", "empty", "union"]
