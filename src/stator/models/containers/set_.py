"""set and frozenset: `Objects/setobject.c`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator import errors
from stator._core import fill_table, set_table
from stator.models.classes.instance import fill, held_attributes, slot_effects
from stator.models.containers.dict_ import DictValue, class_text
from stator.models.containers.dict_table import key_error
from stator.models.containers.set_iterator import SetIterator
from stator.models.containers.set_table import Operands, SetTable
from stator.space.identity.reachability import missing
from stator.space.protocol import FALSE, NONE, NOT_IMPLEMENTED, TRUE, bad_call, model_for, models
from stator.space.recursion import entered, enumeration, list_pieces
from stator.space.value import ExtensibleValue, NotKnown, Raised, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stator.guards.source import Source
    from stator.space.interfaces import Writer
    from stator.space.space import Space

#: what an error for an unhashable item calls it
_ELEMENT = "set element"


@models(set, frozenset)
class SetValue(ExtensibleValue):
    """A set or frozenset, or an instance of a subclass; `table` is what it contains."""

    __slots__ = ("_busy", "slots", "table")

    plain_iters: tuple[Any, ...] = (set.__iter__, frozenset.__iter__)

    def __init__(self, cls: type = set) -> None:
        self.cls = cls
        self.source: Source | None = None
        self.host: Any = None
        self.table = SetTable()
        self._attrs: Any = None
        self.slots: dict[Any, Value | None] = {}
        self._busy = False

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> SetValue:
        self = cls(space.guard_type(host, source))
        self.host = host
        self.source = source
        self.table = SetTable(host, source)
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Any) -> SetValue:
        self = cls(type(host))
        space._by_id[id(host)] = self
        space._kept.append(host)
        values = [space.fresh(item) for item in host]
        self.table.mirror(space, set_table(host), values)
        return self

    @classmethod
    def from_items(cls, space: Space, items: list[Value], kind: type = set) -> SetValue:
        """A fresh set, as the display `{item, …}` makes it."""
        self = cls(kind)
        for item in items:
            self.table.add(space, space.key_as(item, _ELEMENT), item)
        return self

    @property
    def solid(self) -> type:
        """The builtin type whose methods act on the real object without meeting overrides."""
        return set if issubclass(self.cls, set) else frozenset

    def unpack(self, space: Space) -> list[Value]:
        """The elements, in the order of the real set."""
        return self.table.in_order(space)

    # -- the value protocol -----------------------------------------------------------------------------------------

    def as_host(self, space: Space) -> Any:
        if self.cls not in (set, frozenset) or self._busy:
            raise NotKnown(self)
        self._busy = True
        try:
            keys = self.table.keys(space)
            hosts = [self.table.element(key).as_host(space) for key in keys]
        finally:
            self._busy = False
        table = set_table(keys)
        if self.table.is_exact(space) and tuple(map(hash, hosts)) == table[2]:
            return fill_table(self.cls(), table, hosts)
        return self.cls(hosts)

    def key(self, space: Space) -> Any:
        if space.host_lookup(self.cls, "__hash__") is frozenset.__hash__:
            return frozenset(self.table.keys(space))
        return super().key(space)

    def dropped(self, hosts: list[Any]) -> list[Any]:
        return missing(hosts, self.held()) if self.table.complete else []

    def held(self) -> Iterable[Value]:
        return (*self.table.held(), *held_attributes(self))

    # -- generated code ---------------------------------------------------------------------------------------------

    def shell(self, writer: Writer) -> str:
        """An empty set of the class, made without the program's `__new__` and `__init__`."""
        if self.solid is frozenset:
            raise Unsupported(errors.NotReconstructible("a frozenset that holds itself"))
        solid = writer.const(set)
        return f"{solid}()" if self.cls is set else f"{solid}.__new__({class_text(writer, self.cls)})"

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        table, values = self.table.making()
        items = f"[{', '.join([writer.expr(value) for value in values])}]" if values else ""
        solid = writer.const(self.solid)
        if self.cls in (set, frozenset) and writer.shell_of(self) is None:
            return writer.assign(self.cls.__name__, _made(writer, f"{solid}({items})", f"{solid}()", table, items))
        if self.solid is frozenset:
            empty = f"{solid}.__new__({class_text(writer, self.cls)})"
            inserted = f"{empty[:-1]}, {items or '()'})"
            name = writer.assign("frozenset", _made(writer, inserted, empty, table, items))
            writer.name_value(self, name)
        else:
            name = writer.early(self)
            writer.line(_made(writer, f"{solid}.update({name}, {items or '()'})", name, table, items))
        fill(self, writer, name)
        return name

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        steps = self._steps(writer, writer.source(self.source))
        return [*(slot_effects(self, writer) if self.slots else ()), *steps]

    def _steps(self, writer: Writer, target: str) -> list[str]:
        """What does to the existing set what the trace has done to it."""
        solid = writer.const(set)
        if self.table.log and self.table.is_laid_out():
            table, values = self.table.laid_out()
            items = ", ".join([writer.expr(value) for value in values])
            return [f"{solid}.clear({target})", _made(writer, "", target, table, f"[{items}]")]
        lines = []
        for step, values in self.table.log:
            for method, args in _calls(step, [writer.expr(value) for value in values]):
                explicit = f"{solid}.{method}({', '.join(filter(None, (target, args)))})"
                lines.append(f"{target}.{method}({args})" if self.cls is set else explicit)
        return lines

    # -- making -----------------------------------------------------------------------------------------------------

    def stored(self, space: Space) -> list[tuple[Any, Value]]:
        """The elements with their stand-ins, in order: nothing needs to be hashed again."""
        found = {id(self.table.element(key)): key for key in self.table.keys(space)}
        return [(found[id(value)], value) for value in space.unpack(self)]

    @staticmethod
    def tp_new(space: Space, cls_value: Value, /, *args: Value, **kwargs: Value) -> Value:
        cls = space.known(cls_value)
        if cls is NotKnown:
            raise Unsupported(errors.UnsupportedCCall("set.__new__"))
        model: Any = model_for(cls)
        if issubclass(cls, set):
            result: SetValue = model(cls)
            return result
        takes_keywords = cls is not frozenset and space.host_lookup(cls, "__init__") is not object.__init__
        if (kwargs and not takes_keywords) or len(args) > 1:
            return bad_call(space, frozenset, list(args), kwargs)
        if not args:
            result = model(cls)
            return result
        iterable = args[0].force()
        if cls is frozenset and iterable.cls is frozenset:
            return iterable
        result = model(cls)
        _fill(space, result, iterable)
        return result

    def tp_init(self, space: Space, iterable: Value | None = None, /) -> Value:
        self.clear(space)
        if iterable is not None:
            space.mark_mutated(self)
            _fill(space, self, iterable.force())
        return NONE

    # -- slots ------------------------------------------------------------------------------------------------------

    def tp_len(self, space: Space) -> Value:
        return space.fresh(self.table.size(space))

    def probe(self, space: Space, item: Value) -> Any:
        """The key to look up; an unhashable set stands for the frozenset equal to it."""
        item = item.force()
        try:
            return space.key_as(item, _ELEMENT)
        except Raised as e:
            if not isinstance(item, SetValue) or not issubclass(e.value.cls, TypeError):
                raise
            return frozenset(item.table.keys(space))

    def holds(self, space: Space, item: Value) -> bool:
        return self.table.has(space, self.probe(space, item))

    def tp_contains(self, space: Space, item: Value, /) -> Value:
        return _truth(self.holds(space, item))

    def tp_iter(self, space: Space) -> Value:
        return SetIterator(space, self)

    def tp_hash(self, space: Space) -> Value:
        if not self.table.steady_keys(space):
            raise Unsupported(errors.UnsupportedSlot("frozenset", "hash that depends on addresses"))
        return space.fresh(hash(frozenset(self.table.keys(space))))

    def tp_repr(self, space: Space) -> Value:
        name = space.class_name(self.cls)
        with entered(space, self) as again:
            if again:
                return space.fresh(f"{name}(...)")
            if not self.table.size(space):
                return space.fresh(f"{name}()")
            pieces = list_pieces(space, self.unpack(space))
            return enumeration("{", pieces, "}") if self.cls is set else enumeration(f"{name}({{", pieces, "})")

    # -- comparison -------------------------------------------------------------------------------------------------

    def _within(self, space: Space, other: SetValue) -> bool:
        mine = self.table.keys(space)
        return mine.issubset(other.table.keys(space))

    def tp_eq(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if not isinstance(other, SetValue):
            return NOT_IMPLEMENTED
        return _truth(self._equal(space, other))

    def tp_ne(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if not isinstance(other, SetValue):
            return NOT_IMPLEMENTED
        return _truth(not self._equal(space, other))

    def _equal(self, space: Space, other: SetValue) -> bool:
        return self.table.size(space) == other.table.size(space) and self._within(space, other)

    def tp_le(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        return _truth(self._within(space, other)) if isinstance(other, SetValue) else NOT_IMPLEMENTED

    def tp_lt(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if not isinstance(other, SetValue):
            return NOT_IMPLEMENTED
        return _truth(self.table.size(space) < other.table.size(space) and self._within(space, other))

    def tp_ge(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        return other.tp_le(space, self) if isinstance(other, SetValue) else NOT_IMPLEMENTED

    def tp_gt(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        return other.tp_lt(space, self) if isinstance(other, SetValue) else NOT_IMPLEMENTED

    # -- operators: both operands are sets --------------------------------------------------------------------------

    def tp_or(self, space: Space, other: Value, /) -> Value:
        return _operator(space, "union", self, other)

    def tp_ror(self, space: Space, other: Value, /) -> Value:
        return _operator(space, "union", other, self)

    def tp_and(self, space: Space, other: Value, /) -> Value:
        return _operator(space, "intersection", self, other)

    def tp_rand(self, space: Space, other: Value, /) -> Value:
        return _operator(space, "intersection", other, self)

    def tp_sub(self, space: Space, other: Value, /) -> Value:
        return _operator(space, "difference", self, other)

    def tp_rsub(self, space: Space, other: Value, /) -> Value:
        return _operator(space, "difference", other, self)

    def tp_xor(self, space: Space, other: Value, /) -> Value:
        return _operator(space, "symmetric_difference", self, other)

    def tp_rxor(self, space: Space, other: Value, /) -> Value:
        return _operator(space, "symmetric_difference", other, self)

    def tp_ior(self, space: Space, other: Value, /) -> Value:
        return self._in_place(space, self.update, other)

    def tp_iand(self, space: Space, other: Value, /) -> Value:
        return self._in_place(space, self.intersection_update, other)

    def tp_isub(self, space: Space, other: Value, /) -> Value:
        return self._in_place(space, self.difference_update, other)

    def tp_ixor(self, space: Space, other: Value, /) -> Value:
        return self._in_place(space, self.symmetric_difference_update, other)

    def _in_place(self, space: Space, method: Any, other: Value) -> Value:
        if not isinstance(other.force(), SetValue):
            return NOT_IMPLEMENTED
        method(space, other)
        return self

    # -- methods: the other operands are any iterables ---------------------------------------------------------------

    def union(self, space: Space, *others: Value) -> Value:
        return combine(space, "union", self, others)

    def intersection(self, space: Space, *others: Value) -> Value:
        return combine(space, "intersection", self, others)

    def difference(self, space: Space, *others: Value) -> Value:
        return combine(space, "difference", self, others)

    def symmetric_difference(self, space: Space, other: Value, /) -> Value:
        return combine(space, "symmetric_difference", self, (other,))

    def isdisjoint(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if isinstance(other, SetValue):
            mine = self.table.keys(space)
            return _truth(mine.isdisjoint(other.table.keys(space)))
        return _truth(not any(self.table.has(space, space.key_as(item, _ELEMENT)) for item in space.iterate(other)))

    def issubset(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if not isinstance(other, SetValue):
            other = SetValue.from_items(space, space.unpack(other))
        return _truth(self._within(space, other))

    def issuperset(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if isinstance(other, SetValue):
            return _truth(other._within(space, self))
        return _truth(all(self.table.has(space, space.key_as(item, _ELEMENT)) for item in space.iterate(other)))

    def tp_reduce(self, space: Space) -> Value:
        items, state = space.new_list(space.unpack(self)), space.call_method(self, "__getstate__")
        return space.new_tuple([space.class_value(self.cls), space.new_tuple([items]), state])

    def copy(self, space: Space) -> Value:
        return self if self.cls is frozenset else combine(space, "copy", self, ())

    def add(self, space: Space, item: Value, /) -> Value:
        key = space.key_as(item, _ELEMENT)
        space.mark_mutated(self)
        self.table.add(space, key, item)
        return NONE

    def discard(self, space: Space, item: Value, /) -> Value:
        key = self.probe(space, item)
        space.mark_mutated(self)
        self.table.discard(space, key)
        return NONE

    def remove(self, space: Space, item: Value, /) -> Value:
        key = self.probe(space, item)
        space.mark_mutated(self)
        if not self.table.discard(space, key):
            raise key_error(space, item)
        return NONE

    def pop(self, space: Space) -> Value:
        keys = self.table.keys(space)
        if not keys:
            raise space.error(KeyError, "pop from an empty set")
        if len(keys) > 1 and not self.table.is_exact(space):
            raise Unsupported(errors.UnsupportedMethod("set", "pop"))
        space.mark_mutated(self)
        return self.table.pop(space)

    def clear(self, space: Space) -> Value:
        space.mark_mutated(self)
        self.table.clear(space)
        return NONE

    def update(self, space: Space, *others: Value) -> Value:
        for other in others:
            space.mark_mutated(self)
            _fill(space, self, other.force())
        return NONE

    def intersection_update(self, space: Space, *others: Value) -> Value:
        operands = _operands(space, others, "intersection")
        reals = [_snapshot(space, self, real) for real in operands.reals]
        space.mark_mutated(self)
        self.table.intersect(space, operands, reals)
        return NONE

    def difference_update(self, space: Space, *others: Value) -> Value:
        for other in others:
            other = other.force()
            space.mark_mutated(self)
            if other is self:
                self.table.clear(space)
                continue
            known = _host_operand(space, other)
            items = () if known is not None else space.iterate(other)
            keys = (space.key_as(item, _ELEMENT) for item in items) if known is None else list(known)
            self.table.remove_all(space, keys)
        return NONE

    def symmetric_difference_update(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        space.mark_mutated(self)
        if other is self:
            self.table.clear(space)
            return NONE
        if _host_operand(space, other) is None:
            other = SetValue.from_items(space, space.unpack(other))
        found = _elements(space, other)
        self.table.toggle(space, _host_operand(space, other), found, _is_exact(space, other))
        return NONE


def _truth(flag: bool) -> Value:
    return TRUE if flag else FALSE


def _made(writer: Writer, inserted: str, empty: str, table: Any, items: str) -> str:
    """The expression for a set: made by inserting its elements, or an empty one given its table."""
    return inserted if table is None else f"{writer.const(fill_table)}({empty}, {writer.const(table)}, {items or '()'})"


def _calls(method: str, operands: list[str]) -> list[tuple[str, str]]:
    """The methods to call, with their arguments, for a step of the log."""
    if method == "pop":
        return [("pop", "")] * len(operands)
    if method == "discard" or (method == "add" and len(operands) == 1):
        return [(method, operand) for operand in operands]
    if method in ("add", "difference_update"):
        return [("update" if method == "add" else method, f"[{', '.join(operands)}]")]
    return [(method, ", ".join(operands))]


def _host_operand(space: Space, other: Value) -> Any:
    """The host set or dict of keys that a set method handles in its own way, or None for other iterables."""
    if isinstance(other, SetValue):
        return other.table.keys(space)
    if isinstance(other, DictValue) and other.cls is dict:
        return other.table.finish(space)
    return None


def _elements(space: Space, other: Value) -> dict[int, Value]:
    """The elements of such an operand, by the ids of their keys."""
    if isinstance(other, SetValue):
        return other.table.elements(space)
    assert isinstance(other, DictValue)
    return {id(key): entry.key for key, entry in other.table.finish(space).items()}


def _operands(space: Space, others: tuple[Value, ...], method: str) -> Operands:
    """What a method is given, each operand run through in turn."""
    # An intersection's elements are looked up by their hashes, without the set's own words for one that has none.
    key_of = space.key if method == "intersection" else lambda item: space.key_as(item, _ELEMENT)
    hosts: list[Any] = []
    reals: list[Value] = []
    found: dict[int, Value] = {}
    exact = True
    for other in others:
        other = other.force()
        host = _host_operand(space, other)
        if host is None:
            items = [(key_of(item), item) for item in space.iterate(other)]
            host = [key for key, _ in items]
            other = space.new_list([item for _, item in items])
            found = {id(key): item for key, item in reversed(items)} | found
        else:
            found = _elements(space, other) | found
        hosts.append(host)
        reals.append(other)
        exact = exact and _is_exact(space, other)
    return Operands(hosts, reals, found, exact)


def _is_exact(space: Space, other: Value) -> bool:
    """Whether the order of an operand is known."""
    return not isinstance(other, SetValue) or other.table.is_exact(space)


def _fill(space: Space, target: SetValue, other: Value) -> None:
    """`set_update_internal`: sets and dicts are merged, anything else is run through."""
    operand = _host_operand(space, other)
    if operand is None:
        for item in space.iterate(other):
            target.table.add(space, space.key_as(item, _ELEMENT), item)
    elif other is not target:
        real = _snapshot(space, target, other)
        target.table.merge(space, operand, _elements(space, other), _is_exact(space, other), real)


def _snapshot(space: Space, target: SetValue, other: Value) -> Value:
    """The operand as it is now, for generated code to do the same to an existing set."""
    if target.source is None or other is target:
        return other
    if isinstance(other, SetValue):
        other.table.check_order(space)
        copied = SetValue()
        copied.table.copy_exactly(space, other.table)
        return copied
    return other.duplicate(space, DictValue()) if isinstance(other, DictValue) else other


def _operator(space: Space, method: str, left: Value, right: Value) -> Value:
    left, right = left.force(), right.force()
    if not isinstance(left, SetValue) or not isinstance(right, SetValue):
        return NOT_IMPLEMENTED
    return combine(space, method, left, (right,))


def combine(space: Space, method: str, left: SetValue, others: tuple[Value, ...]) -> Value:
    """A new set, the result of an operation: the host sets' own method computes it."""
    mine = left.table.keys(space)
    operands = _operands(space, others, method)
    found = operands.elements(method, left.table.elements(space))  # now: comparing elements may change the sets
    keys = getattr(set, method)(mine, *operands.hosts)
    exact = left.table.is_exact(space) and operands.exact
    result = SetValue(left.solid)
    result.table.result(keys, found, exact or (method == "intersection" and len(keys) < 2))
    result.table.check_order(space)
    return result
