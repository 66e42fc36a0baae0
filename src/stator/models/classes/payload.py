"""Instances of the program's own subclasses of immutable types: numbers, texts, dates.

Such an object is an immutable number or text (its *payload*) with an instance dict. The slots it inherits run for
real on a host instance; those its class overrides are found by the ordinary look-up and traced.
"""

from __future__ import annotations

from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

from stator.guards.guard import Equals
from stator.guards.raw import type_lookup
from stator.guards.source import CallSource, Source
from stator.space.host_types import Host
from stator.space.identity.keys import traced_key
from stator.space.interfaces import Writer
from stator.space.operands import host_errors, known_host
from stator.space.protocol import MODELS
from stator.space.space import Space
from stator.space.value import ExtensibleValue, Value

_FIELDS = (GetSetDescriptorType, MemberDescriptorType)
#: the plain equal of an instance is what its type makes of it; for the other types, of what `__reduce__` gives
_LITERALS: tuple[type, ...] = (int, float, complex, str, bytes)
PAYLOADS: set[type] = set()


class PayloadValue(ExtensibleValue):
    """An instance of a strict subclass of an immutable type."""

    __slots__ = ("base", "payload", "payload_guarded")

    def __init__(self, base: type, host: Host) -> None:
        super().__init__(type(host))
        self.base = base
        self.host = host
        self.payload = plain(host)
        self.payload_guarded = False

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> PayloadValue:
        space.guard_type(host, source)
        self = cls(base_of(host), host)
        self.source = source
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> Value:
        """The result of a real computation, of a class that is made without the program's help."""
        if makes_itself(space, type(host)):
            return cls(base_of(host), host)
        return super().from_fresh(space, host)

    @classmethod
    def of_class(cls, space: Space, owner: type, base: type, result: Value) -> Value:
        """What the constructor of the immutable type gives for one of its subclasses, or for itself."""
        if owner is base:
            return result
        return cls.made(space, owner, base, plain(known_host(space, result, f"{base.__name__}.__new__")))

    @classmethod
    def made(cls, space: Space, owner: type, base: type, payload: Any) -> PayloadValue:
        """`base.__new__(owner, payload)`."""
        with host_errors(space, TypeError):  # `tp_new_wrapper`: not the `__new__` of this class
            return cls(base, base.__new__(owner, payload))

    def as_host(self, space: Space) -> Host:
        if self.source is not None and not self.payload_guarded:
            self.payload_guarded = True
            if not self.source.is_constant:
                space.trace.guard(Equals(CallSource(plain, self.source, self.base.__name__), self.payload))
        return self.host

    def key(self, space: Space) -> Host:
        for name in ("__hash__", "__eq__"):
            if space.host_lookup(self.cls, name) is not getattr(self.base, name):
                return traced_key(space, self)
        self.as_host(space)
        return self.payload

    def get_field(self, space: Space, name: str) -> Value | None:
        """A C-level attribute: a part of the payload."""
        field: Any = type_lookup(self.base, name)
        return space.fresh(field.__get__(self.as_host(space))) if type(field) in _FIELDS else None

    def shell(self, writer: Writer) -> str:
        if self.base in _LITERALS:
            return f"{self.base.__name__}.__new__({writer.const(self.cls)}, {writer.const(self.payload)})"
        return f"{writer.const(self.base)}.__new__({writer.const(self.cls)}, *{writer.const(_arguments(self.payload))})"

    def rebuilt(self, writer: Writer) -> str:
        name: str = writer.early(self)
        if self._attrs is not None:
            self._attrs.write(writer, name)
        return name


def base_of(host: Host) -> type:
    """The builtin type that holds the payload."""
    for base in type(host).__mro__:  # guards ask: a generator would cost three times as much
        if base in PAYLOADS:
            return base
    raise TypeError(f"{type(host).__name__} derives from no type with a payload")


def makes_itself(space: Space, cls: type) -> bool:
    """Whether an instance of the class is made without code of the program's."""
    return all(type(space.host_lookup(cls, name)) is not FunctionType for name in ("__new__", "__init__"))


def _arguments(host: Host) -> Any:
    """What the constructor makes a plain equal of."""
    base: Any = base_of(host)
    return base.__reduce__(host)[1]


def plain(host: Host) -> Any:
    """The number or text alone, whatever the subclass overrides."""
    base = base_of(host)
    if base is str:
        return str.__str__(host)
    if base is bytes:
        return bytes.__getitem__(host, slice(None))
    if base is int:
        return int.__int__(host)
    kind: Any = base
    return kind.__pos__(host) if base in _LITERALS else kind(*_arguments(host))


def payload_type(base: type) -> None:
    """Instances of subclasses of the immutable type are modelled by their plain equals."""
    PAYLOADS.add(base)
    MODELS[base] = PayloadValue


for _base in _LITERALS:
    payload_type(_base)
