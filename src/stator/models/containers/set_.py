"""set and frozenset: `Objects/setobject.c`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from stator import errors
from stator._core import fill_table, set_table
from stator.guards.source import Source
from stator.models.classes.instance import fill, held_attributes, slot_effects
from stator.models.containers.dict_ import DictValue, class_text
from stator.models.containers.set_table import ELEMENT, Operands, SetTable
from stator.models.iterators.container_iterator import TableIterator, broken
from stator.models.iterators.iterator import iterator_type, reduction
from stator.space.host_types import Host
from stator.space.identity.reachability import missing
from stator.space.interfaces import Writer
from stator.space.operands import among, bool_value, refuse
from stator.space.protocol import NONE, bad_call, model_for, models
from stator.space.recursion import acyclic, entered, enumeration, list_pieces
from stator.space.space import Space
from stator.space.value import ExtensibleValue, NotKnown, Raised, Unsupported, Value


def _operators(method: str, in_place: str) -> tuple[Callable[..., Value], ...]:
    """An operator, its reflection and its form that changes the left operand; both operands must be sets."""

    @among(set, frozenset)
    def operator(self: SetValue, space: Space, other: SetValue, /) -> Value:
        return combine(space, method, self, (other,))

    @among(set, frozenset)
    def reflected(self: SetValue, space: Space, other: SetValue, /) -> Value:
        return combine(space, method, other, (self,))

    @among(set, frozenset)
    def updating(self: SetValue, space: Space, other: SetValue, /) -> Value:
        getattr(self, in_place)(space, other)
        return self

    return operator, reflected, updating


def _combining(method: str) -> Callable[..., Value]:
    """A method that makes a new set; the other operands are any iterables."""

    def combined(self: SetValue, space: Space, *others: Value) -> Value:
        return combine(space, method, self, others)

    return combined


@models(set, frozenset)
class SetValue(ExtensibleValue):
    """A set or frozenset, or an instance of a subclass; `table` is what it contains."""

    __slots__ = ("_busy", "slots", "table")

    plain_iters: tuple[Host, ...] = (set.__iter__, frozenset.__iter__)

    def __init__(self, cls: type = set) -> None:
        super().__init__(cls)
        self.table = SetTable()
        self.slots: dict[Host, Value | None] = {}
        self._busy = False

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> SetValue:
        self = cls(space.guard_type(host, source))
        self.source, self.host = source, host
        self.table = SetTable(host, source)
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> SetValue:
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
            self.table.add(space, self.table.key_to_add(space, item), item)
        return self

    @property
    def version(self) -> int:
        """Counts insertions and deletions."""
        return self.table.version

    @property
    def changed(self) -> bool:
        """Whether the traced program has changed this existing set."""
        return bool(self.table.log)

    @property
    def solid(self) -> type:
        """The builtin type whose methods act on the real object without meeting overrides."""
        return set if self.isa(set) else frozenset

    def unpack(self, space: Space) -> list[Value]:
        """The elements, in the order of the real set."""
        return self.table.in_order(space)

    # -- the value protocol -----------------------------------------------------------------------------------------

    @acyclic
    def as_host(self, space: Space) -> Host:
        if self.cls is not self.solid:
            raise NotKnown(self)
        keys = self.table.keys(space)
        hosts = [self.table.element(key).as_host(space) for key in keys]
        table = set_table(keys)
        if self.table.is_exact(space) and tuple(map(hash, hosts)) == table[2]:
            return fill_table(self.cls(), table, hosts)
        return self.cls(hosts)

    def key(self, space: Space) -> Host:
        if space.host_lookup(self.cls, "__hash__") is frozenset.__hash__:
            return frozenset(self.table.keys(space))
        return super().key(space)

    def dropped(self, hosts: list[Host]) -> list[Host] | None:
        return missing(hosts, self.held()) if self.table.complete else None

    def held(self) -> Iterable[Value]:
        return (*self.table.held(), *held_attributes(self))

    # -- generated code ---------------------------------------------------------------------------------------------

    def shell(self, writer: Writer) -> str:
        """An empty set of the class, made without the program's `__new__` and `__init__`."""
        if self.solid is frozenset:
            raise Unsupported(errors.NotReconstructible("a frozenset that holds itself"))
        solid = writer.const(set)
        return f"{solid}()" if self.cls is set else f"{solid}.__new__({class_text(writer, self.cls)})"

    def rebuilt(self, writer: Writer) -> str:
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

    def stored(self, space: Space) -> list[tuple[Host, Value]]:
        """The elements with their hash keys, in order: nothing needs to be hashed again."""
        found = {id(self.table.element(key)): key for key in self.table.keys(space)}
        return [(found[id(value)], value) for value in space.unpack(self)]

    @staticmethod
    def tp_new(space: Space, cls_value: Value, /, *args: Value, **kwargs: Value) -> Value:
        cls = space.known(cls_value)
        if cls is NotKnown:
            raise refuse("set.__new__")
        result: SetValue = model_for(cls)(cls)  # type: ignore[call-arg, assignment]
        if issubclass(cls, set):
            return result
        takes_keywords = cls is not frozenset and space.host_lookup(cls, "__init__") is not object.__init__
        if (kwargs and not takes_keywords) or len(args) > 1:
            return bad_call(space, frozenset, list(args), kwargs)
        if args:
            iterable = args[0].force()
            if cls is frozenset and iterable.cls is frozenset:
                return iterable
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
        varying = self.table.varying_size(space)
        return space.fresh(self.table.size(space)) if varying is None else varying

    def probe(self, space: Space, item: Value) -> Host:
        """The key to look up; an unhashable set stands for the frozenset equal to it."""
        item = item.force()
        try:
            return space.key_as(item, ELEMENT)
        except Raised as e:
            if not isinstance(item, SetValue) or not e.value.isa(TypeError):
                raise
            return frozenset(item.table.keys(space))

    def holds(self, space: Space, item: Value) -> bool:
        return self.table.has(space, self.probe(space, item))

    def tp_contains(self, space: Space, item: Value, /) -> Value:
        return bool_value(self.holds(space, item))

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

    @among(set, frozenset)
    def tp_richcompare(self, space: Space, symbol: str, other: SetValue) -> Value:
        if symbol in (">", ">="):
            return other.tp_richcompare(space, symbol.replace(">", "<"), self)
        if symbol in ("==", "!="):
            equal = self.table.size(space) == other.table.size(space) and self._within(space, other)
            return bool_value(equal is (symbol == "=="))
        fits = symbol == "<=" or self.table.size(space) < other.table.size(space)
        return bool_value(fits and self._within(space, other))

    # -- operators: both operands are sets --------------------------------------------------------------------------

    tp_or, tp_ror, tp_ior = _operators("union", "update")
    tp_and, tp_rand, tp_iand = _operators("intersection", "intersection_update")
    tp_sub, tp_rsub, tp_isub = _operators("difference", "difference_update")
    tp_xor, tp_rxor, tp_ixor = _operators("symmetric_difference", "symmetric_difference_update")

    # -- methods: the other operands are any iterables ---------------------------------------------------------------

    union, intersection, difference = map(_combining, ("union", "intersection", "difference"))

    def symmetric_difference(self, space: Space, other: Value, /) -> Value:
        return combine(space, "symmetric_difference", self, (other,))

    def isdisjoint(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if isinstance(other, SetValue):
            mine = self.table.keys(space)
            return bool_value(mine.isdisjoint(other.table.keys(space)))
        return bool_value(not any(self.table.has(space, space.key_as(item, ELEMENT)) for item in space.iterate(other)))

    def issubset(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if not isinstance(other, SetValue):
            other = SetValue.from_items(space, space.unpack(other))
        return bool_value(self._within(space, other))

    def issuperset(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if isinstance(other, SetValue):
            return bool_value(other._within(space, self))
        return bool_value(all(self.table.has(space, space.key_as(item, ELEMENT)) for item in space.iterate(other)))

    def tp_reduce(self, space: Space) -> Value:
        items, state = space.new_list(space.unpack(self)), space.call_method(self, "__getstate__")
        return reduction(space, self.cls, [items], state)

    def copy(self, space: Space) -> Value:
        return self if self.cls is frozenset else combine(space, "copy", self, ())

    def add(self, space: Space, item: Value, /) -> Value:
        key = self.table.key_to_add(space, item)
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
            raise space.error(KeyError, item.force())
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
            known = _keyed(space, other)
            items = () if known is not None else space.iterate(other)
            keys = (space.key_as(item, ELEMENT) for item in items) if known is None else list(known.keys)
            self.table.remove_all(space, keys)
        return NONE

    def symmetric_difference_update(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        space.mark_mutated(self)
        if other is self:
            self.table.clear(space)
            return NONE
        known = _keyed(space, other) or _keyed(space, SetValue.from_items(space, space.unpack(other)))
        assert known is not None
        self.table.toggle(space, *known)
        return NONE


def _made(writer: Writer, inserted: str, empty: str, table: Host, items: str) -> str:
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


class _Keyed(NamedTuple):
    """An operand that set methods handle in a way of their own: a set or dict."""

    #: a host set or dict of the keys, not to be changed
    keys: Host
    #: the elements, by the ids of their keys
    found: dict[int, Value]
    #: whether their order is known
    exact: bool


def _keyed(space: Space, other: Value) -> _Keyed | None:
    """The operand, or None for other iterables."""
    if isinstance(other, SetValue):
        return _Keyed(other.table.keys(space), other.table.elements(space), other.table.is_exact(space))
    if isinstance(other, DictValue) and other.cls is dict:
        entries = other.table.as_of_set(space)
        return _Keyed(entries, {id(key): entry.key for key, entry in entries.items()}, True)
    return None


def _operands(space: Space, others: tuple[Value, ...], method: str) -> Operands:
    """What a method is given, each operand run through in turn."""
    # An intersection's elements are looked up by their hashes, without the set's own words for one that has none.
    key_of = space.key if method == "intersection" else lambda item: space.key_as(item, ELEMENT)
    hosts: list[Host] = []
    reals: list[Value] = []
    found: dict[int, Value] = {}
    exact = True
    for other in others:
        other = other.force()
        known = _keyed(space, other)
        if known is None:
            items = [(key_of(item), item) for item in space.iterate(other)]
            known = _Keyed([key for key, _ in items], {id(key): item for key, item in reversed(items)}, True)
            other = space.new_list([item for _, item in items])
        hosts.append(known.keys)
        reals.append(other)
        found = known.found | found
        exact = exact and known.exact
    return Operands(hosts, reals, found, exact)


def _fill(space: Space, target: SetValue, other: Value) -> None:
    """`set_update_internal`: sets and dicts are merged, anything else is run through."""
    known = _keyed(space, other)
    if known is None:
        for item in space.iterate(other):
            target.table.add(space, space.key_as(item, ELEMENT), item)
    elif other is not target:
        target.table.merge(space, *known, _snapshot(space, target, other))


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


@iterator_type(type(iter(set())))
class SetIterator(TableIterator):
    """`iter(s)`."""

    __slots__ = ()

    shown: SetValue | None
    kind = ("Set", "set")

    def listed(self, space: Space) -> list[Value]:
        assert self.shown is not None
        return self.shown.unpack(space)

    def project(self, space: Space, entry: Value) -> Value:
        return entry

    def rebuilt(self, writer: Writer) -> str:
        shown = self.shown
        if shown is not None and shown.version != self.version and shown.table.length() == self.size:
            raise Unsupported(errors.NotReconstructible("an iterator over a set whose elements were exchanged"))
        return super().rebuilt(writer)

    def broken(self, writer: Writer) -> str:
        return broken(writer, "set()", lambda other: f"iter({other})", ".add(None)")

    def emptied(self, writer: Writer) -> str:
        return "set()"

    def iterated(self, writer: Writer, target: str) -> str:
        kind = set if self.shown is None else self.shown.solid
        return f"{writer.const(kind)}.__iter__({target})"
