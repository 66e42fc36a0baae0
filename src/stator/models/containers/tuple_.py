"""tuple and what derives from it: named tuples, structure sequences, user subclasses."""

from __future__ import annotations

import collections
import datetime
import operator
import types
import weakref

from stator import errors
from stator.guards.raw import members
from stator.guards.source import FieldSource, ItemSource, Source, field_names
from stator.models.classes.instance import fill
from stator.models.containers.part_hashes import hash_of_parts
from stator.models.containers.sequence import Sequence, slice_of
from stator.models.iterators.iterator import TupleIterator
from stator.space.attributes import MISSING
from stator.space.facts import attribute
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.length_hint import iterate_sized
from stator.space.protocol import COMPARISONS, models, pure
from stator.space.space import Space
from stator.space.value import NotKnown, Raised, Unsupported, Value

__all__ = ["TupleValue", "structure_fields"]

#: methods that decide what CPython computes when it meets the tuple in a real operation
_TELLING = [*COMPARISONS, "__hash__", "__len__", "__iter__", "__getitem__", "__repr__", "__str__", "__format__"]
_TELLING += ["__contains__", "__bool__", "__index__", "__float__", "__int__"]
_TELLING += ["__add__", "__radd__", "__mul__", "__rmul__"]
#: the methods of named tuples read nothing but the items
_NAMED = vars(collections)
_WRITTEN_IN_C = (types.WrapperDescriptorType, types.MethodDescriptorType, types.BuiltinFunctionType)
#: slots that do what those of tuple do: a type of C code may have wrappers of its own for them
LIKE_TUPLES: dict[str, list[Host]] = {"__hash__": [tuple.__hash__], "__eq__": [tuple.__eq__]}
#: C types whose `__new__` takes the items one by one
SPREAD: set[type] = {type(datetime.date.min.isocalendar())}
_structures: weakref.WeakKeyDictionary[type, dict[str, int]] = weakref.WeakKeyDictionary()


def _hashes_as_tuples(space: Space, cls: type) -> bool:
    """Whether instances of the class are found in dicts as tuples are."""
    found = {name: space.host_lookup(cls, name) for name in LIKE_TUPLES}
    return all(any(found[name] is slot for slot in slots) for name, slots in LIKE_TUPLES.items())


@models(tuple)
class TupleValue(Sequence):
    """A tuple, or an instance of a subclass."""

    __slots__ = ("hidden",)

    kind = tuple
    plain_iters = (tuple.__iter__,)

    def __init__(self, items: list[Value] | None, cls: type | None = None) -> None:
        super().__init__(None if items is None else list(items), cls)
        #: the fields of a new structure sequence that are no items, by name
        self.hidden: dict[str, Value] = {}

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value | None = None, /) -> Value:
        host_cls = cls.force().as_host(space)
        if iterable is None:
            return TupleValue([], host_cls)
        iterable = iterable.force()
        if host_cls is tuple and iterable.cls is tuple:
            return iterable
        return TupleValue(list(iterate_sized(space, iterable)), host_cls)

    # -- known ------------------------------------------------------------------------------------------------------

    def as_host(self, space: Space) -> Host:
        if self.cls is tuple:
            return tuple(self.host_items(space))
        if not _behaves_like_tuple(space, self.cls) or self._attrs is not None:
            raise NotKnown(self)
        items = tuple(self.host_items(space))
        hidden = {name: value.as_host(space) for name, value in self.hidden_fields(space).items()}
        if self.host is not None and _holds(self.host, items, hidden):
            return self.host  # nothing in it has been changed by the trace
        owner, maker = _maker(self.cls)
        if owner is None:
            return super().as_host(space)
        return maker(self.cls, items, *([hidden] if hidden else ()))

    def identity(self, space: Space) -> Host:
        if self.cls is tuple and self._items == []:
            return ()
        return super().identity(space)

    def key(self, space: Space) -> Host:
        if self.cls is not tuple and not _hashes_as_tuples(space, self.cls):
            return super().key(space)
        return tuple([item.force().key(space) for item in self.items])

    # -- the sequence -----------------------------------------------------------------------------------------------

    def tp_getitem(self, space: Space, key: Value, /) -> Value:
        key = key.force()
        if key.cls is slice and self.cls is tuple:
            count = len(self.items)
            if slice_of(space, key).indices(count) == (0, count, 1):
                return self  # as CPython does for a slice of all of it
        return self.get(space, key)

    def tp_iter(self, space: Space) -> Value:
        return TupleIterator(self)

    def tp_add(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if isinstance(other, TupleValue):
            if not self.items and other.cls is tuple:
                return other
            if not other.items and self.cls is tuple:
                return self
        return super().tp_add(space, other)

    def tp_mul(self, space: Space, count: Value, /) -> Value:
        times = self.repetitions(space, count)
        return self if times == 1 and self.cls is tuple else TupleValue(self.items * times)

    def not_in(self, space: Space, item: Value, search: str) -> Raised:
        return space.error(ValueError, "tuple.index(x): x not in tuple")

    # -- hashing, showing -------------------------------------------------------------------------------------------

    def tp_hash(self, space: Space) -> Value:
        return hash_of_parts(space, "tuple", tuple, self.items)

    def tp_repr(self, space: Space) -> Value:
        return self.shown(space, "(", ")")

    def tp_getnewargs(self, space: Space) -> Value:
        return TupleValue([TupleValue(self.items)])

    # -- fields with names ------------------------------------------------------------------------------------------

    def item_source(self, source: Source, index: int) -> ItemSource:
        names = () if self.cls is tuple else field_names(self.cls)
        return FieldSource(source, index, names[index]) if index < len(names) else ItemSource(source, index)

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> TupleValue:
        self: TupleValue = super().from_fresh(space, host)
        if structure_fields(type(host)):
            self.host = host  # for the fields that are no items
        return self

    @classmethod
    def answers(cls, host: type, name: str) -> bool:
        return name in structure_fields(host)

    def get_field(self, space: Space, name: str) -> Value | None:
        """A named field of a structure sequence (`os.stat_result`, `torch.return_types.max` …)."""
        index = structure_fields(self.cls).get(name)
        if index is None:
            return None
        found = self.item(index) or self.hidden.get(name)
        if found is not None or self.host is None:
            return found
        if self.source is not None:
            return attribute(space, self, name)
        return space.fresh(getattr(self.host, name))

    def hidden_fields(self, space: Space) -> dict[str, Value]:
        """The fields of a structure sequence that are no items."""
        if self.hidden:
            return self.hidden
        names = [name for name, index in structure_fields(self.cls).items() if index >= len(self.items)]
        return {name: space.getattr(self, name) for name in names}

    # -- generated code ---------------------------------------------------------------------------------------------

    def rebuilt(self, writer: Writer) -> str:
        parts = [writer.expr(item) for item in (*self.items, *self.hidden.values())]
        if self.host is not None:
            hidden = [name for name, index in structure_fields(self.cls).items() if index >= len(parts)]
            parts += [writer.const(getattr(self.host, name)) for name in hidden]
        text = f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if self.cls is tuple:
            return writer.assign("tuple", text) if parts else "()"
        owner, _ = _maker(self.cls)
        if owner is None:
            raise Unsupported(errors.NotReconstructible(self.describe()))
        spread = "*" if owner in SPREAD else ""
        made = f"{writer.const(owner)}.__new__({writer.const(self.cls)}, {spread}{text})"
        name = writer.assign(self.cls.__name__.lower(), made)
        writer.name_value(self, name)
        fill(self, writer, name)
        return name


def _holds(host: Host, items: tuple[Host, ...], hidden: dict[str, Host]) -> bool:
    """Whether the tuple holds these very objects."""
    return all(map(operator.is_, items, host)) and all(getattr(host, name) is item for name, item in hidden.items())


def _behaves_like_tuple(space: Space, cls: type) -> bool:
    """Whether CPython itself computes with instances of `cls` as with tuples, running no code of the program."""
    return all(_runs_no_code(space.host_lookup(cls, name)) for name in _TELLING)


def _runs_no_code(method: Host) -> bool:
    if isinstance(method, types.FunctionType):
        return method.__globals__ is _NAMED
    return method is MISSING or method is None or isinstance(method, _WRITTEN_IN_C)


def structure_fields(cls: type) -> dict[str, int]:
    """The names of a structure sequence's fields with their positions, hidden ones last; empty for other classes."""
    fields = _structures.get(cls)
    if fields is None:
        fields = _structures[cls] = {}
        if cls in SPREAD:
            fields.update((name, place) for place, name in enumerate(members(cls, types.GetSetDescriptorType)))
        count = members(cls, int).get("n_fields")
        if count is not None and "n_sequence_fields" in cls.__dict__:
            names = list(members(cls, types.MemberDescriptorType))
            if len(names) == count:
                fields.update(zip(names, range(count), strict=True))
                return fields
            probe = cls(range(count))  # which of its fields have no name
            fields.update(sorted(((n, getattr(probe, n)) for n in names), key=lambda field: field[1]))
    return fields


def _maker(cls: type) -> tuple[type | None, Host]:
    """The class along the MRO whose `__new__` is C, and that `__new__`: what makes an instance from its items."""
    for base in cls.__mro__:
        found = base.__dict__.get("__new__")
        if isinstance(found, types.BuiltinFunctionType):
            return base, found
    return None, None


pure(tuple.__dict__["__class_getitem__"])
