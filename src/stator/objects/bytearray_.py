"""`bytearray`: its contents are known, so its methods run for real on a copy that only the trace has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator.guards.guard import Equals
from stator.guards.source import CallSource
from stator.objects.bytes_ import to_bytes
from stator.objects.protocol import NONE, NOT_IMPLEMENTED, builtin, models, register
from stator.objects.value import Constant, NotKnown, Raised, Value
from stator.stdlib.streams import Stream, stream
from stator.stdlib.support import hooked, known_host, refuse

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.objects.space import Space
    from stator.residual.writer import Writer

_SLOTS = frozenset({"__add__", "__mul__", "__rmul__", "__iadd__"})
_SLOTS |= frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
_CHANGING = frozenset({"__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "extend", "insert", "pop"})
_CHANGING |= frozenset({"remove", "reverse", "clear"})
_APART = frozenset({"__new__", "__init__", "__iter__", "__getattribute__", "__doc__", "__hash__", "__alloc__"})
_APART |= frozenset({"fromhex", "__sizeof__", "__reduce__", "__reduce_ex__", "__buffer__", "__release_buffer__"})


@models(bytearray)
class ByteArrayValue(Value):
    """A bytearray."""

    __slots__ = ("_contents", "host")

    plain_iters = (bytearray.__iter__,)

    def __init__(self, contents: bytearray | None) -> None:
        self.cls: type = bytearray
        self.source: Source | None = None
        self.host: Any = None
        self._contents = contents

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> ByteArrayValue:
        if type(host) is not bytearray:
            raise refuse("an object of a subclass of bytearray")
        space.guard_type(host, source)
        self = cls(None)
        self.source, self.host = source, host
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Any) -> ByteArrayValue:
        return cls(host)

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        if known_host(space, cls, "bytearray.__new__") is not bytearray:
            raise refuse("bytearray.__new__ of a subclass")
        return ByteArrayValue(bytearray())

    def tp_init(self, space: Space, source: Value | None = None, /, *args: Value, **kwargs: Value) -> Value:
        space.touch(self)
        self._contents = bytearray()
        if source is None or args or kwargs:
            made = hooked(space, bytearray, [] if source is None else [source.force(), *args], kwargs)
        else:
            made = to_bytes(space, source, bytearray)
        self._contents = bytearray(known_host(space, made, "bytearray"))
        return NONE

    def contents(self, space: Space) -> bytearray:
        """The contents as they are now."""
        if self._contents is None:
            assert self.source is not None
            self._contents = bytearray(self.host)
            space.trace.guard(Equals(CallSource(bytes, self.source, "bytes"), bytes(self.host)))
        return self._contents

    def as_host(self, space: Space) -> Any:
        return bytearray(self.contents(space))

    def identity(self, space: Space) -> Any:
        return self if self.source is None else self.host

    def unpack(self, space: Space) -> list[Value]:
        return [Constant(number) for number in self.contents(space)]

    def tp_iter(self, space: Space) -> Value:
        return ByteArrayIterator(self)

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        shell = writer.shell_of(self)
        if shell is not None:
            return shell
        return str(writer.assign("bytes", f"bytearray({bytes(self._contents or b'')!r})"))

    def shell(self, writer: Writer) -> str:
        return "bytearray()"

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None and self._contents is not None
        return [f"{writer.source(self.source)}[:] = {bytes(self._contents)!r}"]


@stream(type(iter(bytearray())))
class ByteArrayIterator(Stream):
    """`iter(bytearray)`."""

    __slots__ = ("index", "sequence")

    def __init__(self, sequence: ByteArrayValue) -> None:
        super().__init__(type(iter(bytearray())))
        self.sequence = sequence
        self.index = 0

    def advance(self, space: Space) -> Value | None:
        contents = self.sequence.contents(space)
        if self.index < 0 or self.index >= len(contents):
            self.index = -1
            return None
        space.touch(self)
        self.index += 1
        return Constant(contents[self.index - 1])

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None or self.index < 0:
            return super().reconstruct(writer)
        name = str(writer.assign("iterator", f"iter({writer.expr(self.sequence)})"))
        writer.line(f"{name}.__setstate__({self.index})")
        return name


def _model(name: str, host: Any) -> None:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        array = args[0].force() if args else None
        if not isinstance(array, ByteArrayValue):
            return space.unmodelled(host, args, kwargs)
        try:
            hosts = [_operand(space, arg) for arg in args[1:]]
        except NotKnown:
            if name in _SLOTS:
                return NOT_IMPLEMENTED
            raise refuse(f"bytearray.{name}") from None
        named = {key: known_host(space, value, f"bytearray.{name}") for key, value in kwargs.items()}
        contents = array.contents(space)
        if name in _CHANGING:
            space.touch(array)
        try:
            result = host(contents, *hosts, **named)
        except Exception as e:
            raise Raised(space.exception(e)) from None
        return array if result is contents else space.fresh(result)

    register(host, handler)


def _operand(space: Space, value: Value) -> Any:
    """An operand for the host method: numbers by `__index__`, the rest as known."""
    value = value.force()
    slot = space.special(value, "__index__")
    if slot is not None and not issubclass(value.cls, int):
        return space.int_(value)
    return value.as_host(space)


for _name, _host in list(vars(bytearray).items()):
    if callable(_host) and _name not in _APART and hasattr(_host, "__objclass__"):
        _model(_name, _host)


@builtin(vars(bytearray)["fromhex"])
def fromhex(space: Space, cls: Value, text: Value, /) -> Value:
    if known_host(space, cls, "bytearray.fromhex") is not bytearray:
        raise refuse("bytearray.fromhex of a subclass")
    return space.run_known(bytearray.fromhex, [text])
