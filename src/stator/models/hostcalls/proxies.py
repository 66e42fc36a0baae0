"""C functions on operands that exist only in the trace: proxies answer what CPython asks them, by tracing the answer.

`b"".join([X()])` asks each item for `__bytes__`, `"a".center(x)` asks for `__index__`. CPython's own function runs on
host objects of look-alike classes whose slots call the traced slots, so that order, checks and errors are its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stator.guards.raw import is_mutable_type, type_lookup
from stator.models.containers.sequence import Sequence
from stator.models.exceptions.exception_parts import native_base
from stator.models.numbers.float_ import as_double
from stator.models.numbers.int_ import to_int
from stator.space.attributes import MISSING
from stator.space.host_types import Host
from stator.space.protocol import RESTRICTED, SLOTS
from stator.space.space import Space
from stator.space.value import NotKnown, Raised, Value

__all__ = ["call_on_proxies"]

#: slots that a proxy has of its own
_OWN_SLOTS = frozenset(
    {"tp_getattro", "tp_setattro", "tp_descr_get", "tp_descr_set", "tp_init", "tp_new", "tp_finalize"}
)
_OWN_SLOTS |= frozenset({"bf_getbuffer", "bf_releasebuffer"})
#: what C code may ask of an operand by its slot, or by the name of a method that it looks up in the class
_ASKED = (
    *(name for slot, names in SLOTS.items() if slot not in _OWN_SLOTS for name in names),
    *("__complex__", "__trunc__", "__bytes__", "__length_hint__", "__format__"),
)
#: types of results in which no operand can hide
_PLAIN = frozenset({int, float, complex, bool, str, bytes, bytearray, memoryview, range})
_PLAIN |= frozenset({type(None), type(NotImplemented)})
#: types with a C API of their own, which looks past the slots
_LOOKED_INTO = (int, float, complex, str, bytes, bytearray, memoryview, list, tuple, dict, set, frozenset, type)


def call_on_proxies(space: Space, function: Callable[..., Host], args: list[Value], kwargs: dict[str, Value]) -> Host:
    """The host result of `function`, which does nothing but compute it; raises NotKnown where it would be unsound."""
    return _Answers(space).run(function, args, kwargs)


class _Answers:
    """One such call."""

    def __init__(self, space: Space) -> None:
        self.space = space
        #: id(proxy) → what it stands for
        self.values: dict[int, Value] = {}
        #: id(value) → its proxy
        self.hosts: dict[int, Host] = {}
        self.classes: dict[type, type] = {}
        #: lists whose items were handed over, with the items as they were
        self.lists: list[tuple[Sequence, list[Value]]] = []
        #: copies of what the program may change, with what makes them
        self.copies: list[tuple[Callable[[], Host], Host]] = []
        #: whether any code of the program's has run
        self.asked = False
        #: what ended the trace inside an answer: C code must not swallow it
        self.ended: BaseException | None = None

    def run(self, function: Callable[..., Host], args: list[Value], kwargs: dict[str, Value]) -> Host:
        hosts = [self.host(arg) for arg in args]
        named = {name: self.host(arg) for name, arg in kwargs.items()}
        if id(function) in RESTRICTED:
            RESTRICTED[id(function)](self.space, hosts, named)
        result, failure = None, None
        try:
            result = function(*hosts, **named)
        except BaseException as e:
            failure = e
        if self.ended is not None:
            raise self.ended
        if self.asked and self._changed():
            raise NotKnown  # CPython would have seen the change
        if isinstance(failure, Raised):
            raise Raised(failure.value)
        if failure is not None:
            if isinstance(failure.__context__, Raised) or not isinstance(failure, Exception):
                raise NotKnown
            raise Raised(self.space.exception(failure))
        if not _plain(result):
            raise NotKnown
        return result

    def _changed(self) -> bool:
        """Whether an answer has changed one of the operands that were handed over as a copy."""
        if any(sequence.items != items for sequence, items in self.lists):
            return True
        return any(copy() != host for copy, host in self.copies)

    # -- operands ---------------------------------------------------------------------------------------------------

    def host(self, value: Value) -> Host:
        """The host object of a known operand, or a proxy."""
        value = value.force()
        try:
            if value.constant:
                return value.host
            return self._copied(lambda: value.as_host(self.space))
        except NotKnown:
            pass
        made = self.hosts.get(id(value))
        if made is None:
            made = self._proxy(value)
            self.hosts[id(value)] = made
            self.values[id(made)] = value
        return made

    def _copied(self, copy: Callable[[], Host]) -> Host:
        host = copy()
        self.copies.append((copy, host))
        return host

    def _proxy(self, value: Value) -> Host:
        if isinstance(value, Sequence) and value.cls is value.kind:
            items = list(value.items)
            self.lists.append((value, items))
            return value.kind([self.host(item) for item in items])
        if value.cls is slice:
            return slice(*[self.host(self.space.getattr(value, name)) for name in ("start", "stop", "step")])
        cls = self.classes.get(value.cls)
        if cls is None:
            cls = self.classes[value.cls] = self._look_alike(value.cls)
        if issubclass(cls, bytearray):
            return self._copied(lambda: cls(value.contents(self.space)))  # type: ignore[attr-defined]
        return cls()

    def _look_alike(self, cls: type) -> type:
        asked = {name: self.space.host_lookup(cls, name) for name in _ASKED}
        if issubclass(cls, bytearray):
            if any(found is not type_lookup(bytearray, name) for name, found in asked.items()):
                raise NotKnown
            return type(self.space.type_name(cls), (bytearray,), {})
        if issubclass(cls, _LOOKED_INTO) or (asked["__next__"] is MISSING and not _has_no_layout(cls)):
            raise NotKnown
        if self.space.host_lookup(cls, "__buffer__") is not MISSING:
            raise NotKnown
        namespace: dict[str, Host] = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__}
        for name, found in asked.items():
            if found is not MISSING:
                namespace[name] = None if found is None else self._slot(name)
        namespace["__getattr__"] = self._attribute
        return type(self.space.type_name(cls), (), namespace)

    # -- answers ----------------------------------------------------------------------------------------------------

    def _slot(self, name: str) -> Callable[..., Host]:
        def slot(proxy: Host, *args: Host) -> Host:
            return self._answer(lambda: self._call(name, self.values[id(proxy)], args))

        return slot

    @property
    def _attribute(self) -> Callable[[Host, str], Host]:
        def getattribute(proxy: Host, name: str) -> Host:
            return self._answer(lambda: self.space.getattr(self.values[id(proxy)], name))

        return getattribute

    def _call(self, name: str, value: Value, args: tuple[Host, ...]) -> Value:
        if name in _CONVERSIONS:
            return _CONVERSIONS[name](self.space, value)
        slot = self.space.special(value, name)
        if slot is None:
            raise NotKnown
        if name == "__next__":
            return self.space.advance(value)
        return self.space.call(slot, [value, *[self._value(arg) for arg in args]], {})

    def _value(self, host: Host) -> Value:
        known = self.values.get(id(host))
        return self.space.fresh(host) if known is None else known

    def _answer(self, trace: Callable[[], Value]) -> Host:
        if self.ended is not None:
            raise self.ended
        self.asked = True
        try:
            return self.host(trace())
        except Raised as e:
            failure = e
        except BaseException as e:
            self.ended = e
            raise
        raise _raisable(failure)


def _has_no_layout(cls: type) -> bool:
    """Whether instances hold nothing that only C code sees: a class of the program's, derived from no C type."""
    for base in cls.__mro__[:-1]:
        made = vars(base).get("__new__")
        if not is_mutable_type(base) or getattr(made, "__self__", None) is base:
            return False
    return True


def _raisable(raised: Raised) -> BaseException:
    """An exception that C code takes for the one the traced program has raised."""
    native = native_base(raised.value.cls)
    if issubclass(native, BaseExceptionGroup):
        native = Exception if issubclass(native, Exception) else BaseException
    bases = (Raised,) if native in (Exception, BaseException) else (Raised, native)
    cls: Any = type(native.__name__, bases, {})
    return cls(raised.value)  # type: ignore[no-any-return]


def _plain(result: Host) -> bool:
    if type(result) in (tuple, list):
        return all(map(_plain, result))
    return type(result) in _PLAIN


def _index(space: Space, value: Value) -> Value:
    return space.index(value)


def _int(space: Space, value: Value) -> Value:
    return to_int(space, value)


def _float(space: Space, value: Value) -> Value:
    return as_double(space, value)


#: conversions that CPython checks where it asks for them
_CONVERSIONS: dict[str, Callable[[Space, Value], Value]] = {
    "__index__": _index,
    "__int__": _int,
    "__float__": _float,
}
