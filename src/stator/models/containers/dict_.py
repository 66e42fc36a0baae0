"""dict: `Objects/dictobject.c`."""

from __future__ import annotations

from collections.abc import Callable

from stator._core import write_dict
from stator.models.classes.instance import fill, slot_effects
from stator.models.containers.dict_base import DictBase
from stator.models.containers.dict_iterators import KeyIterator, ReverseKeyIterator
from stator.models.containers.dict_merge import merge
from stator.models.containers.dict_table import key_error
from stator.models.containers.dict_views import ItemsView, KeysView, ValuesView
from stator.space.attributes import MISSING
from stator.space.deferred import DeferredStr, concatenated
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import among, bool_value, refuse
from stator.space.protocol import NONE, NOT_IMPLEMENTED, bad_call, model_for, models
from stator.space.recursion import acyclic, compared, entered, repr_piece
from stator.space.space import Space
from stator.space.value import Constant, NotKnown, Raised, Value


def unions(
    begin: Callable[[Space, DictValue, DictValue], Value], merge: Callable[[Space, DictValue, Value], None]
) -> tuple[Callable[..., Value], Callable[..., Value]]:
    """`|` and its reflection: what `begin` makes of the left operand gets the entries of the right one by `merge`."""

    def union(space: Space, self: DictValue, left: DictValue, right: DictValue) -> Value:
        result = begin(space, left, self).force()
        assert isinstance(result, DictValue)
        merge(space, result, right)
        return result

    @among(dict)
    def tp_or(self: DictValue, space: Space, other: DictValue, /) -> Value:
        return union(space, self, self, other)

    @among(dict)
    def tp_ror(self: DictValue, space: Space, other: DictValue, /) -> Value:
        return union(space, self, other, self)

    return tp_or, tp_ror


@models(dict)
class DictValue(DictBase):
    """A dict or an instance of a subclass."""

    __slots__ = ()

    plain_iters: tuple[Host, ...] = (dict.__iter__,)

    @classmethod
    def from_pairs(cls, space: Space, pairs: list[tuple[Value, Value]]) -> DictValue:
        """A fresh dict, as the display `{key: item, …}` makes it."""
        self = cls()
        for key, item in pairs:
            self.store(space, key, item)
        return self

    def duplicate(self, space: Space, result: DictValue) -> DictValue:
        """Copy the entries into a fresh dict, without hashing or comparing keys again."""
        self.table.finish(space)
        result.table.entries = self.table.copied()
        result.table.version = self.table.version
        if self.table.host is not None or self.dict_owner is not None:
            result.table.laid_out_anew()
        return result

    @acyclic
    def as_host(self, space: Space) -> Host:
        if self.cls is not self.solid:
            raise NotKnown(self)
        return self.host_of(space, [(key.as_host(space), item.as_host(space)) for key, item in self.pairs(space)])

    def host_of(self, space: Space, items: list[tuple[Host, Host]]) -> Host:
        """A real dict of its type with these items."""
        return self.solid(items)

    # -- generated code ---------------------------------------------------------------------------------------------

    def shell(self, writer: Writer) -> str:
        """An empty dict of the class, made without the program's `__new__` and `__init__`."""
        if self.cls is dict:
            return "{}"
        return f"{writer.const(self.solid)}.__new__({class_text(writer, self.cls)})"

    def rebuilt(self, writer: Writer) -> str:
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
        cls = space.known(cls_value)
        if cls is NotKnown:
            raise refuse("dict.__new__")
        if not isinstance(cls, type) or not issubclass(cls, dict):
            return bad_call(space, dict.__new__, [cls_value], {})
        return model_for(cls)(cls)  # type: ignore[call-arg]

    def tp_init(self, space: Space, other: Value | None = None, /, **kwargs: Value) -> Value:
        return DictValue.update(self, space, other, **kwargs)

    @staticmethod
    def fromkeys(space: Space, cls_value: Value, iterable: Value, value: Value = NONE, /) -> Value:
        result = space.call(cls_value, [], {}).force()
        source = iterable.force()
        if type(result) is DictValue and result.cls is dict and source.cls in (dict, set, frozenset):
            result.mark_mutated(space)
            for stored, key in source.stored(space):  # type: ignore[attr-defined]
                result.table.put(space, stored, key, value)
            return result
        for key in space.iterate(iterable):
            if isinstance(result, DictValue) and result.cls is dict:
                result.tp_setitem(space, key, value)
            else:
                space.setitem(result, key, value)
        return result

    # -- slots ------------------------------------------------------------------------------------------------------

    def tp_len(self, space: Space) -> Value:
        varying = self.table.varying_size(space)
        return space.fresh(self.table.size(space)) if varying is None else varying

    def tp_contains(self, space: Space, key: Value, /) -> Value:
        return bool_value(self.find(space, key) is not None)

    def tp_getitem(self, space: Space, key: Value, /) -> Value:
        found = self.find(space, key)
        if found is not None:
            return found
        if self.cls is not dict:
            missing = space.special(self, "__missing__")
            if missing is not None:
                return space.call(missing, [self, key], {})
        raise key_error(space, key)

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

    @among(dict)
    def tp_richcompare(self, space: Space, symbol: str, other: DictValue) -> Value:
        if symbol not in ("==", "!="):
            return NOT_IMPLEMENTED
        return bool_value(self.same_items(space, other) is (symbol == "=="))

    def same_items(self, space: Space, other: DictBase) -> bool:
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

    tp_or, tp_ror = unions(lambda space, left, self: left.duplicate(space, DictValue()), merge)

    def tp_ior(self, space: Space, other: Value, /) -> Value:
        merge(space, self, other)
        return self

    # -- methods ----------------------------------------------------------------------------------------------------

    def get(self, space: Space, key: Value, default: Value = NONE, /) -> Value:
        found = self.find(space, key)
        return default if found is None else found

    def setdefault(self, space: Space, key: Value, default: Value = NONE, /) -> Value:
        entry, added = self.table.setdefault(space, self.hash_key(space, key), key, default)
        if added:
            self.mark_mutated(space)
        assert entry.item is not None
        return entry.item

    def pop(self, space: Space, key: Value, default: Value | None = None, /) -> Value:
        return self.taken(space, key, self._pop_key(space, key), default)

    def taken(self, space: Space, key: Value, stored: Host, default: Value | None) -> Value:
        """`d.pop(key, default)`; MISSING stands for a key that is not looked for."""
        taken = None
        if stored is not MISSING:
            self.mark_mutated(space)
            taken = self.table.take(space, stored)
        if taken is not None and taken.item is not None:
            return taken.item
        if default is None:
            raise key_error(space, key)
        return default

    def _pop_key(self, space: Space, key: Value) -> Host:
        """The hash key; MISSING where the dict is empty, as then the key is not even hashed."""
        if self.table.complete:
            return self.hash_key(space, key) if self.table.entries else MISSING
        try:
            return self.hash_key(space, key)
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
        if other is not None:
            merge(space, self, other)
        if kwargs:
            self.mark_mutated(space)
            for name, item in kwargs.items():
                self.table.put(space, name, Constant(name), item)
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


def class_text(writer: Writer, cls: type) -> str:
    """The expression of a class in generated code."""
    return writer.expr(writer.trace.space.class_value(cls))


__all__ = ["DictValue", "class_text", "unions"]
