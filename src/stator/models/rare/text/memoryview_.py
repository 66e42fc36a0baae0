"""memoryview: of bytes that only the trace has, run for real; what others may write is left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from stator._core import has_buffer
from stator.guards.source import Source
from stator.models.classes.instance import InstanceValue
from stator.models.hostcalls.proxies import call_on_proxies
from stator.models.iterators.iterator import IteratorValue, advanced, iterator_type
from stator.models.rare.text.bytearray_ import ByteArrayValue
from stator.models.text.addresses import address, joined_text
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import bool_value, host_errors, known_host, refuse, refuse_object, refuse_use
from stator.space.protocol import NONE, NOT_IMPLEMENTED, models
from stator.space.space import Space
from stator.space.value import Constant, Known, NotKnown, Value

__all__ = ["MemoryView"]

#: attributes that follow from the bytes
_LAYOUT = ("c_contiguous", "contiguous", "f_contiguous", "format", "itemsize", "ndim", "shape", "strides")


def _fact(name: str) -> Callable[[MemoryView, Space], Value]:
    return lambda self, space: self.run(space, getattr, Constant(name))


def _run_by_host(name: str) -> Callable[..., Value]:
    """A method that the host view has."""
    host = vars(memoryview)[name]

    def method(self: MemoryView, space: Space, *args: Value) -> Value:
        return self.run(space, host, *args)

    return method


@models(memoryview)
class MemoryView(Value):
    """A view of bytes or of a bytearray of the trace; an existing one is opaque."""

    __slots__ = ("host", "obj")
    FIELDS = {name: _fact(name) for name in (*_LAYOUT, "nbytes", "readonly")} | {
        "obj": lambda self, space: self.base(space)
    }
    source: Source | None = None
    host: memoryview

    def __init__(self, host: memoryview, obj: Value) -> None:
        self.cls = memoryview
        self.host = host
        #: whose bytes they are
        self.obj = obj

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        return InstanceValue.from_host(space, host, source)

    @staticmethod
    def tp_new(space: Space, cls: Value, object: Value) -> Value:
        object = object.force()
        if isinstance(object, MemoryView):
            object.check(space)
            return MemoryView(memoryview(object.as_host(space)), object.obj)
        if isinstance(object, ByteArrayValue):
            made = MemoryView(memoryview(object.contents(space)), object)
            object.views.append(made)
            return made
        if object.constant and not object.isa(bytes):
            return space.run_known(memoryview, [object])
        if not object.isa(bytes):
            raise refuse("memoryview.__new__")
        return MemoryView(memoryview(known_host(space, object, "memoryview")), object)

    @property
    def released(self) -> bool:
        """Whether the program has let go of it."""
        try:
            return self.host.nbytes < 0
        except ValueError:
            return True

    def as_host(self, space: Space) -> Host:
        return self.host

    def held(self) -> Iterable[Value]:
        return (self.obj,)

    def check(self, space: Space) -> None:
        """`CHECK_RELEASED`."""
        if self.released:
            raise space.error(ValueError, "operation forbidden on released memoryview object")

    def run(self, space: Space, method: Host, *args: Value) -> Value:
        """Let the host view do it."""
        try:
            result = call_on_proxies(space, partial(method, self.as_host(space)), list(args), {})
        except NotKnown:
            raise refuse("memoryview") from None
        if not isinstance(result, memoryview):
            return space.fresh(result)
        made = MemoryView(result, self.obj)
        if isinstance(self.obj, ByteArrayValue):
            self.obj.views.append(made)
        return made

    def base(self, space: Space) -> Value:
        """What has the bytes."""
        self.check(space)
        return self.obj

    # -- slots ------------------------------------------------------------------------------------------------------

    def tp_richcompare(self, space: Space, symbol: str, other: Value) -> Value:
        if symbol not in ("==", "!=") or not has_buffer(other.cls):
            return NOT_IMPLEMENTED
        equal: bool = self.as_host(space) == known_host(space, other, "memoryview.__eq__")
        return bool_value(equal is (symbol == "=="))

    tp_len, tp_getitem, tp_delitem, tp_hash = map(_run_by_host, ("__len__", "__getitem__", "__delitem__", "__hash__"))
    tolist, hex, toreadonly = map(_run_by_host, ("tolist", "hex", "toreadonly"))

    def tp_setitem(self, space: Space, key: Value, item: Value, /) -> Value:
        if not isinstance(self.obj, ByteArrayValue) and not self.released and not self.host.readonly:
            raise refuse("memoryview.__setitem__")  # a view of a copy
        space.mark_mutated(self.obj)
        return self.run(space, memoryview.__setitem__, key, item)

    def tp_repr(self, space: Space) -> Value:
        word = "released memory" if self.released else "memory"
        return joined_text(space, f"<{word} at ", address(space, self), ">")

    def tp_iter(self, space: Space) -> Value:
        if self.released:
            raise refuse_use("memoryview.__iter__", "of one that is released")  # CPython has a SystemError for it
        with host_errors(space, TypeError, NotImplementedError):
            iter(self.host)
        return MemoryIterator(self)

    def tp_enter(self, space: Space) -> Value:
        self.check(space)
        return self

    def tp_exit(self, space: Space, *args: Value) -> Value:
        return self.release(space)

    # -- methods ----------------------------------------------------------------------------------------------------

    def tobytes(self, space: Space, order: Value = NONE) -> Value:
        return self.run(space, memoryview.tobytes, order)

    def cast(self, space: Space, format: Value, shape: Value | None = None) -> Value:
        return self.run(space, memoryview.cast, format, *(() if shape is None else (shape,)))

    def release(self, space: Space) -> Value:
        space.mark_mutated(self)
        return self.run(space, memoryview.release)

    # -- generated code ---------------------------------------------------------------------------------------------

    def identity(self, space: Space) -> Host:
        return self

    def reconstruct(self, writer: Writer) -> str:
        whole = not self.released and self.host.format == "B" and self.host.strides == (1,)
        if not whole or not isinstance(self.obj, (ByteArrayValue, Known)):
            raise refuse_object("a memoryview that outlives the compiled function")
        if isinstance(self.obj, Known):
            return writer.assign("view", f"{writer.const(memoryview)}({writer.const(self.host.tobytes())})")
        if self.host.readonly or self.obj.changed or len(self.host) != len(self.obj._contents or b""):
            raise refuse_object("a memoryview that outlives the compiled function")
        return writer.assign("view", f"{writer.const(memoryview)}({writer.expr(self.obj)})")


@iterator_type(type(iter(memoryview(b""))))
class MemoryIterator(IteratorValue):
    """`iter(memoryview(…))`: its length is fixed when it is made."""

    __slots__ = ("index", "length", "view")

    def __init__(self, view: MemoryView) -> None:
        super().__init__()
        self.view: MemoryView | None = view
        self.length = len(view.host)
        self.index = 0

    def produce(self, space: Space) -> Value | None:
        if self.view is None:
            return None
        space.mark_mutated(self)
        if self.index < self.length:
            self.index += 1
            return self.view.run(space, memoryview.__getitem__, Constant(self.index - 1))
        self.view = None
        return None

    def rebuilt(self, writer: Writer) -> str:
        if self.view is None:
            return advanced(writer, "iter(memoryview(b''))", 1)
        return advanced(writer, f"iter({writer.expr(self.view)})", self.index)
