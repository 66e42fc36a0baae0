"""`bytearray`: its contents are known, so its methods run for real on a copy that only the trace has."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from stator import errors
from stator._core import has_buffer
from stator.models.classes.instance import fill, held_attributes, slot_effects
from stator.models.hostcalls.proxies import call_on_proxies
from stator.models.iterators.iterator import PositionIterator, iterator_type
from stator.space.facts import answer
from stator.space.host_types import Host
from stator.space.identity.aliasing import KnownBytes
from stator.space.identity.reachability import is_alive
from stator.space.interfaces import Writer
from stator.space.operands import known_host, refuse, refuse_object
from stator.space.protocol import NOT_IMPLEMENTED, bad_call, models, register
from stator.space.space import Space
from stator.space.value import Constant, ExtensibleValue, NotKnown, Raised, Unsupported, Value

_SLOTS = frozenset({"__add__", "__mul__", "__rmul__", "__iadd__"})
_SLOTS |= frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
_CHANGING = frozenset({"__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "extend", "insert", "pop"})
_CHANGING |= frozenset({"remove", "reverse", "clear", "__init__"})
_APART = frozenset({"__new__", "__iter__", "__getattribute__", "__doc__", "__hash__", "__repr__", "__str__"})
_APART |= frozenset(
    {"__sizeof__", "__alloc__", "__reduce__", "__reduce_ex__", "__buffer__", "__release_buffer__", "fromhex"}
)


@models(bytearray)
class ByteArrayValue(ExtensibleValue):
    """A bytearray, or an instance of a subclass."""

    __slots__ = ("_contents", "slots", "views")

    plain_iters = (bytearray.__iter__,)

    def __init__(self, cls: type, contents: bytearray | None = None) -> None:
        super().__init__(cls)
        self._contents = contents
        self.slots: dict[Host, Value | None] = {}
        #: memory views of it that the trace has made
        self.views: list[Any] = []

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> ByteArrayValue:
        if type(host) is not bytearray:
            raise refuse_object("an object of a subclass of bytearray")
        return cls(bytearray, host)

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        return ByteArrayValue(known_host(space, cls, "bytearray.__new__"), bytearray())

    def contents(self, space: Space) -> bytearray:
        """The contents as they are now."""
        if self._contents is None:
            if not answer(space, self, resizable, "resizable"):  # the view's bytes are not known
                raise refuse_object("a bytearray that others have a view of")
            space.trace.extension(KnownBytes).values.append(self)
            self._contents = bytearray(answer(space, self, bytes, "bytes"))
        return self._contents

    @property
    def changed(self) -> bool:
        """Whether the traced program may have changed this existing array."""
        return self.source is not None and self._contents is not None and self._contents != self.host

    def as_host(self, space: Space) -> Host:
        if self.cls is not bytearray:
            raise NotKnown(self)
        return bytearray(self.contents(space))

    def held(self) -> Iterable[Value]:
        return held_attributes(self)

    def unpack(self, space: Space) -> list[Value]:
        return [Constant(number) for number in self.contents(space)]

    def run(self, space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Host:
        """The host result of a method."""
        contents = self.contents(space)
        changes = host.__name__ in _CHANGING
        if changes:
            space.mark_mutated(self)
        try:
            return call_on_proxies(space, partial(host, contents), args, kwargs)
        except Raised as e:
            if changes and e.value.isa(BufferError) and not self.is_viewed(space):
                raise Unsupported(errors.LifetimeObserved("a view of a bytearray")) from None
            raise

    def is_viewed(self, space: Space) -> bool:
        """Whether there certainly is a view, so that the size cannot change."""
        return any(not view.released and is_alive(space, view) for view in self.views)

    # -- slots ------------------------------------------------------------------------------------------------------

    def tp_iter(self, space: Space) -> Value:
        return ByteArrayIterator(self)

    def tp_repr(self, space: Space) -> Value:
        shown = repr(self.contents(space))
        return Constant(self.type_name(space).rpartition(".")[2] + shown.removeprefix("bytearray"))

    def tp_str(self, space: Space) -> Value:
        return self.tp_repr(space)

    def tp_reduce(self, space: Space) -> Value:
        return self.tp_reduce_ex(space, Constant(2))

    def tp_reduce_ex(self, space: Space, protocol: Value = Constant(0), /) -> Value:  # noqa: B008 (immutable)
        """`_common_reduce`: before protocol 3 as text, for Python 2."""
        version = space.int_(protocol)
        state = space.call_method(self, "__getstate__")
        contents = self.contents(space)
        args: list[Value] = [Constant(bytes(contents))]
        if version < 3:
            args = [Constant(contents.decode("latin-1")), Constant("latin-1")]
        return space.new_tuple([space.class_value(self.cls), space.new_tuple(args if contents else []), state])

    # -- generated code ---------------------------------------------------------------------------------------------

    def rebuilt(self, writer: Writer) -> str:
        shown = f"bytearray({bytes(self._contents or b'')!r})"
        if self.cls is bytearray:
            return writer.shell_of(self) or str(writer.assign("bytes", shown))
        name: str = writer.early(self)
        fill(self, writer, name)
        return name

    def shell(self, writer: Writer) -> str:
        shown = f"bytearray({bytes(self._contents or b'')!r})"
        return shown if self.cls is bytearray else f"{writer.const(filled)}({writer.const(self.cls)}, {shown})"

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        lines = slot_effects(self, writer) if self.slots else []
        if self._contents is None:
            return lines
        setter = f"{writer.const(bytearray)}.__setitem__"
        return [*lines, f"{setter}({writer.source(self.source)}, slice(None), {bytes(self._contents)!r})"]


def resizable(array: bytearray) -> bool:
    """Whether nobody has a view of the array.

    Asked without moving it: a tensor of `torch.frombuffer` would be left in memory that is free.
    """
    try:
        bytearray.__delitem__(array, slice(0, 0, 2))
    except BufferError:
        return False
    return True


def filled(cls: type[bytearray], contents: bytes) -> bytearray:
    """An instance of the subclass, made without its constructor."""
    made = bytearray.__new__(cls)
    bytearray.__init__(made, contents)
    return made


@iterator_type(type(iter(bytearray())))
class ByteArrayIterator(PositionIterator):
    """`iter(bytearray())`."""

    __slots__ = ()
    base = bytearray

    def fetch(self, space: Space, target: Value, index: int) -> Value | None:
        assert isinstance(target, ByteArrayValue)
        contents = target.contents(space)
        return Constant(contents[index]) if index < len(contents) else None


def _model(name: str, host: Host) -> None:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        array = args[0].force() if args else None
        if not isinstance(array, ByteArrayValue):
            return bad_call(space, host, args, kwargs)
        try:
            result = array.run(space, host, args[1:], kwargs)
        except NotKnown:
            if name in _SLOTS and not has_buffer(args[1].force().cls):
                return NOT_IMPLEMENTED
            raise refuse(f"bytearray.{name}") from None
        return array if result is array.contents(space) else space.fresh(result)

    register(host, handler)


for _name, _host in list(vars(bytearray).items()):
    if callable(_host) and _name not in _APART and hasattr(_host, "__objclass__"):
        _model(_name, _host)
