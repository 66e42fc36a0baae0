"""Files in memory made by the traced program: their methods run for real on a host file that only the trace has.

What is written to files that existed before goes out after the graph; reading them breaks the graph.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from stator import errors
from stator.guards.callable_names import callable_name
from stator.guards.source import Source
from stator.models.classes.instance import fill, held_attributes, slot_effects
from stator.models.containers.slice_ import SliceValue
from stator.models.rare.text.memoryview_ import MemoryView
from stator.models.stdlib.text_files import SINKS, write_later
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import host_errors, known_host, refuse, refuse_use
from stator.space.protocol import NONE, models, register
from stator.space.space import Space
from stator.space.value import Constant, ExtensibleValue, Unsupported, Value

#: methods that a host file in memory may run: what they do depends on the file and on known operands
_OF_STREAMS = ("__init__", "__enter__", "__exit__", "__iter__", "__next__", "close", "flush")
_OF_CONTENTS = ("read", "readline", "readlines", "getvalue", "write", "writelines", "truncate", "seek", "tell")
_METHODS = (*_OF_STREAMS, *_OF_CONTENTS, "isatty", "readable", "writable", "seekable")
_CHANGING = ("__init__", "write", "writelines", "truncate", "close", "__exit__")


class MemoryFile(ExtensibleValue):
    """`io.StringIO` or `io.BytesIO`."""

    __slots__ = ("slots",)
    kind: Any

    def __init__(self, host: Host) -> None:
        super().__init__(self.kind)
        self.host = host
        self.slots: dict[Host, Value | None] = {}

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> MemoryFile:
        self = cls(host)
        self.cls = space.guard_type(host, source)
        self.source = source
        return self

    @classmethod
    def make(cls, space: Space, owner: Value) -> Value:
        """`cls.__new__(cls, …)`, of the builtin type itself: what else it is given is for `__init__`."""
        if known_host(space, owner, cls.kind.__name__) is not cls.kind:
            raise refuse_use(f"io.{cls.kind.__name__}.__new__", "of a subclass")
        return cls(cls.kind.__new__(cls.kind))

    def run(self, space: Space, method: str, args: list[Value], kwargs: dict[str, Value] | None = None) -> Value:
        """Let the host file do it."""
        function = f"io.{self.kind.__name__}.{method}"
        if self.source is not None:
            raise refuse(function)
        if method == "writelines":
            args = [space.new_list(space.unpack(args[0]))] if args else args
        hosts = [known_host(space, arg, function) for arg in args]
        named = {name: known_host(space, value, function) for name, value in (kwargs or {}).items()}
        space.mark_mutated(self)
        with host_errors(space, Exception):
            result = getattr(self.host, method)(*hosts, **named)
        return self if result is self.host else space.fresh(result)

    def get_field(self, space: Space, name: str) -> Value | None:
        if name != "closed" or self.source is not None:
            return None
        with host_errors(space, ValueError):  # one that has not been initialised
            return Constant(self.host.closed)

    def rebuilt(self, writer: Writer) -> str:
        shell = writer.shell_of(self)
        if shell is not None:
            return shell
        kind = writer.const(self.kind)
        name = str(writer.assign("file", f"{kind}.__new__({kind})"))
        writer.name_value(self, name)
        self.restore(writer, name)
        fill(self, writer, name)
        return name

    def effects(self, writer: Writer) -> list[str]:
        return slot_effects(self, writer)

    def held(self) -> Iterable[Value]:
        return held_attributes(self)

    def restore(self, writer: Writer, name: str) -> None:
        """Lines that give a new file, not initialised yet, the state of this one."""
        try:
            closed = self.host.closed
        except ValueError:
            return  # not initialised either
        if closed:
            writer.line(f"{name}.__init__()")
            writer.line(f"{name}.close()")
        else:
            writer.line(f"{name}.__setstate__({writer.const(self.host.__getstate__())})")


@models(io.StringIO)
class TextFile(MemoryFile):
    """`io.StringIO`."""

    __slots__ = ()
    kind = io.StringIO

    def restore(self, writer: Writer, name: str) -> None:
        super().restore(writer, name)
        if not _is_open(self.host):
            return
        twin: Any = io.StringIO()
        twin.__setstate__(self.host.__getstate__())
        if twin.newlines != self.host.newlines:
            raise Unsupported(errors.NotReconstructible("a StringIO that has met ends of lines of several kinds"))


def _is_open(host: Host) -> bool:
    try:
        return not host.closed
    except ValueError:
        return False


@models(io.BytesIO)
class BytesFile(MemoryFile):
    """`io.BytesIO`."""

    __slots__ = ("changed", "views")
    kind = io.BytesIO

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.views: list[MemoryView] = []
        #: whether it may no longer share the bytes that it was made of
        self.changed = False

    def run(self, space: Space, method: str, args: list[Value], kwargs: dict[str, Value] | None = None) -> Value:
        if method in _CHANGING:
            if not all(view.released for view in self.views):
                # what it would refuse depends on when the view dies
                raise refuse_use(f"io.BytesIO.{method}", "while there is a view of its buffer")
            self.changed = method != "__init__"
        return super().run(space, method, args, kwargs)

    def restore(self, writer: Writer, name: str) -> None:
        if self.changed:
            super().restore(writer, name)
            return
        # Bytes that nothing else shares: the file counts them as its own.
        own = f"bytes(bytearray({writer.const(self.host.getvalue())}))"
        writer.line(f"{name}.__init__({own})")
        if self.host.tell():
            writer.line(f"{name}.seek({self.host.tell()})")

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
        with host_errors(space, ValueError):
            made = MemoryView(memoryview(bytearray(self.host.getvalue())), self)
        self.views.append(made)
        return made


def _register(file_class: type[MemoryFile]) -> None:
    def new(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return file_class.make(space, args[0])

    kind = file_class.kind
    register(kind.__new__, new)
    for name in _METHODS:
        # What a base class defines, too, does another thing there.
        host = getattr(kind, name)
        if host not in SINKS:
            register(host, _runner(host, name))


def _runner(host: Host, name: str) -> Any:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        file = args[0].force() if args else None
        if isinstance(file, MemoryFile) and getattr(file.cls, name) is host:
            if kwargs and name != "__init__":
                raise refuse_use(f"io.{host.__qualname__}", "with arguments by name")
            return file.run(space, name, args[1:], kwargs)
        raise refuse(callable_name(host, args[0].force().cls if args else None))

    return handler


_register(TextFile)
_register(BytesFile)


def _write(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`write` of a file that existed before goes out after the graph."""
    file = args[0].force() if len(args) == 2 and not kwargs else None
    if isinstance(file, MemoryFile) and file.source is None and args[1].isa(str):
        return file.run(space, "write", args[1:])
    return write_later(space, io.StringIO.write, args, kwargs)


register(io.StringIO.write, _write)
