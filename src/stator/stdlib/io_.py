"""Files in memory made by the traced program: their methods run for real on a host file that only the trace has.

What is written to files that existed before goes out after the graph; reading them breaks the graph.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from stator.objects.memoryview_ import MemoryView
from stator.objects.protocol import NONE, models, register
from stator.objects.slice_ import SliceValue
from stator.objects.value import Constant, ObjectValue, Raised, Value
from stator.stdlib.output import SINKS
from stator.stdlib.support import known_host, refuse

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.objects.space import Space
    from stator.residual.writer import Writer

#: methods that a host file in memory may run: what they do depends on the file and on known operands
_METHODS = (
    *("write", "writelines", "getvalue", "read", "readline", "readlines", "seek", "tell", "truncate", "close", "flush"),
    *("isatty", "readable", "writable", "seekable", "__enter__", "__exit__", "__next__", "__iter__"),
)


_CHANGING = ("write", "writelines", "truncate", "close", "__exit__")


class MemoryFile(ObjectValue):
    """`io.StringIO` or `io.BytesIO`."""

    __slots__ = ()
    kind: Any

    def __init__(self, host: Any) -> None:
        self.cls = self.kind
        self.source: Source | None = None
        self.host = host

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> MemoryFile:
        space.guard_type(host, source)
        self = cls(host)
        self.cls = type(host)
        self.source = source
        return self

    @classmethod
    def make(cls, space: Space, owner: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """`cls(…)`, of the builtin type itself."""
        if known_host(space, owner, cls.kind.__name__) is not cls.kind:
            raise refuse(f"io.{cls.kind.__name__}.__new__ of a subclass")
        hosts = [known_host(space, arg, "io") for arg in args]
        named = {name: known_host(space, value, "io") for name, value in kwargs.items()}
        try:
            return cls(cls.kind(*hosts, **named))
        except Exception as e:
            raise Raised(space.exception(e)) from None

    def run(self, space: Space, method: str, args: list[Value]) -> Value:
        """Let the host file do it."""
        if self.source is not None:
            raise refuse(f"io.{self.kind.__name__}.{method}")
        if method == "writelines":
            args = [space.new_list(space.unpack(args[0]))] if args else args
        hosts = [known_host(space, arg, f"io.{self.kind.__name__}.{method}") for arg in args]
        space.touch(self)
        try:
            result = getattr(self.host, method)(*hosts)
        except Exception as e:
            raise Raised(space.exception(e)) from None
        return self if result is self.host else space.fresh(result)

    def get_field(self, space: Space, name: str) -> Value | None:
        return Constant(self.host.closed) if name == "closed" and self.source is None else None

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        shell = writer.shell_of(self)
        if shell is not None:
            return shell
        name = str(writer.assign("file", f"{writer.const(self.kind)}()"))
        writer.name_value(self, name)
        writer.line(f"{name}.__setstate__({writer.const(self.host.__getstate__())})")
        return name


@models(io.StringIO)
class TextFile(MemoryFile):
    """`io.StringIO`."""

    __slots__ = ()
    kind = io.StringIO


@models(io.BytesIO)
class BytesFile(MemoryFile):
    """`io.BytesIO`."""

    __slots__ = ("views",)
    kind = io.BytesIO

    def __init__(self, host: Any) -> None:
        super().__init__(host)
        self.views: list[MemoryView] = []

    def run(self, space: Space, method: str, args: list[Value]) -> Value:
        if method in _CHANGING and not all(view.released for view in self.views):
            # what it would refuse depends on when the view dies
            raise refuse(f"BytesIO.{method} while there is a view of its buffer")
        return super().run(space, method, args)

    def readinto(self, space: Space, buffer: Value, /) -> Value:
        """Into a bytearray that the trace has made."""
        buffer = buffer.force()
        if self.source is not None or buffer.cls is not bytearray:
            raise refuse("BytesIO.readinto")
        size = space.len(buffer)
        read = self.run(space, "read", [size])
        count = space.len(read)
        space.setitem(buffer, SliceValue(NONE, count, NONE), read)
        return count

    def getbuffer(self, space: Space) -> Value:
        """A view of what it holds now; it cannot change while the view is there."""
        if self.source is not None:
            raise refuse("BytesIO.getbuffer")
        try:
            made = MemoryView(memoryview(bytearray(self.host.getvalue())), self)
        except ValueError as e:
            raise Raised(space.exception(e)) from None
        self.views.append(made)
        return made


def _register(file_class: type[MemoryFile]) -> None:
    def new(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return file_class.make(space, args[0], args[1:], kwargs)

    def init(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return NONE

    kind = file_class.kind
    register(kind.__new__, new)
    register(kind.__init__, init)
    for name in _METHODS:
        for base in kind.__mro__:
            host = base.__dict__.get(name)
            if callable(host) and host not in SINKS:
                register(host, _runner(host, name))


def _runner(host: Any, name: str) -> Any:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        file = args[0].force() if args else None
        if isinstance(file, MemoryFile) and not kwargs and host.__objclass__ in file.cls.__mro__:
            return file.run(space, name, args[1:])
        raise refuse(f"io.{host.__qualname__}")

    return handler


_register(TextFile)
_register(BytesFile)


def _sink(host: Any) -> None:
    """`write` of a text file: known text goes out after the graph."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        file, text = (arg.force() for arg in args) if len(args) == 2 and not kwargs else (None, None)
        if file is None or text is None or not issubclass(text.cls, str):
            return space.unmodelled(host, args, kwargs)
        if isinstance(file, MemoryFile) and file.source is None:
            return file.run(space, "write", [text])
        written = str.__str__(known_host(space, text, "write"))
        space.trace.defer(host, [file, Constant(written)])
        return Constant(len(written))

    register(host, handler)


for _host in SINKS:
    _sink(_host)


def _flush(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    space.trace.defer(io.TextIOWrapper.flush, args, kwargs)
    return NONE


register(io.TextIOWrapper.flush, _flush)
