"""memoryview: of known bytes, run for real on a copy that only the trace has; what others may write is left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator.objects.instance import InstanceValue
from stator.objects.protocol import NONE, NOT_IMPLEMENTED, models
from stator.objects.value import Constant, Raised, Value
from stator.stdlib.support import bool_value, known_host, refuse

__all__ = ["MemoryView"]

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.objects.space import Space
    from stator.residual.writer import Writer

#: attributes that follow from the bytes
_FACTS = frozenset(
    {
        "c_contiguous",
        "contiguous",
        "f_contiguous",
        "format",
        "itemsize",
        "nbytes",
        "ndim",
        "readonly",
        "shape",
        "strides",
    }
)


@models(memoryview)
class MemoryView(Value):
    """A view of bytes that nothing in the trace changes; an existing one is opaque."""

    __slots__ = ("host", "obj")
    FIELDS = _FACTS | {"obj"}
    source: Source | None = None

    def __init__(self, host: memoryview, obj: Value) -> None:
        self.cls = memoryview
        self.host = host
        #: whose bytes they are
        self.obj = obj

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> Value:
        return InstanceValue.from_host(space, host, source)

    @staticmethod
    def tp_new(space: Space, cls: Value, object: Value) -> Value:
        object = object.force()
        if isinstance(object, MemoryView):
            return MemoryView(memoryview(object.as_host(space)), object.obj)
        if type(object) is Constant and object.cls is not bytes:
            return space.run_known(memoryview, [object])
        if object.cls is not bytes:
            raise refuse("memoryview.__new__")
        return MemoryView(memoryview(known_host(space, object, "memoryview")), object)

    @property
    def released(self) -> bool:
        """Whether the program has let go of it."""
        try:
            return self.host.nbytes < 0
        except ValueError:
            return True

    def as_host(self, space: Space) -> Any:
        return self.host

    def run(self, space: Space, method: Any, *args: Value) -> Value:
        """Let the host view do it."""
        hosts = [known_host(space, arg.force(), "memoryview") for arg in args]
        try:
            result = method(self.as_host(space), *hosts)
        except Exception as e:
            raise Raised(space.exception(e)) from None
        return MemoryView(result, self.obj) if isinstance(result, memoryview) else space.fresh(result)

    def get_field(self, space: Space, name: str) -> Value | None:
        if name == "obj":
            return self.obj
        return self.run(space, getattr, Constant(name)) if name in _FACTS else None

    # -- slots ------------------------------------------------------------------------------------------------------

    def tp_eq(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if not issubclass(other.cls, (bytes, bytearray, memoryview)):
            return NOT_IMPLEMENTED
        return bool_value(self.as_host(space) == known_host(space, other, "memoryview.__eq__"))

    def tp_ne(self, space: Space, other: Value, /) -> Value:
        equal = self.tp_eq(space, other)
        return equal if space.is_not_implemented(equal) else bool_value(not space.truth(equal))

    def __len__(self, space: Space) -> Value:
        return self.run(space, len)

    def __getitem__(self, space: Space, key: Value, /) -> Value:
        return self.run(space, memoryview.__getitem__, key)

    def __enter__(self, space: Space) -> Value:
        return self

    def __exit__(self, space: Space, *args: Value) -> Value:
        return self.release(space)

    # -- methods ----------------------------------------------------------------------------------------------------

    def tobytes(self, space: Space, order: Value = NONE) -> Value:
        return self.run(space, memoryview.tobytes, order)

    def tolist(self, space: Space) -> Value:
        return self.run(space, memoryview.tolist)

    def hex(self, space: Space, *args: Value) -> Value:
        return self.run(space, memoryview.hex, *args)

    def toreadonly(self, space: Space) -> Value:
        return self.run(space, memoryview.toreadonly)

    def release(self, space: Space) -> Value:
        space.touch(self)
        return self.run(space, memoryview.release)

    # -- generated code ---------------------------------------------------------------------------------------------

    def identity(self, space: Space) -> Any:
        return self

    def reconstruct(self, writer: Writer) -> str:
        if self.released or self.obj.cls is not bytes:
            raise refuse("a memoryview that outlives the compiled function")
        return writer.assign("view", f"{writer.const(memoryview)}({writer.const(self.host.tobytes())})")
