"""What a traced value is.

A `Value` stands for one application-level object of the traced program. A *host* object is a plain Python object of
the tracing process; a *source* says where an object that existed before the trace is found at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stator import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stator.guards.source import Source
    from stator.space.interfaces import Writer
    from stator.space.space import Space


class NotKnown(Exception):
    """The value has no host object that could stand for it during tracing."""


class Raised(Exception):
    """An exception raised by the *traced* program, on its way through the interpreter.

    `value` is the traced exception. Host exceptions other than this one and `Unsupported` are defects of ours.
    """

    def __init__(self, value: Value) -> None:
        self.value = value.force()

    def matches(self, kind: type[BaseException] | tuple[type[BaseException], ...]) -> bool:
        """`except kind:` of builtin classes."""
        return self.value.isa(kind)


class Value:
    """A traced value: its class, where it came from, and (in subclasses) its payload.

    The methods of the modelled type are methods of the subclass, under their own names, the special ones as `tp_x`
    (`tp_len` models `__len__`), and take the space as first argument. `protocol.models` registers them under the host
    type's own descriptors.
    """

    __slots__ = ("__weakref__", "cls", "source")

    #: true only for values read from the frame that nothing has looked at yet
    lazy: ClassVar[bool] = False
    #: true for values whose number is only known as a symbol (SymInt …)
    symbolic: ClassVar[bool] = False
    #: true for known objects of immutable types: CPython may compute with their `host`
    constant: ClassVar[bool] = False
    #: C-level attributes (`tp_getset`, `tp_members`): name → what gives the value of one, for existing objects None
    #: where it is to be read from the object
    FIELDS: ClassVar[Mapping[str, Callable[[Any, Space], Value | None]]] = {}
    #: whether caches refer weakly to such objects, and call back: their end is nothing that the program notices
    CACHED_WEAKLY: ClassVar[bool] = False
    #: whether what the tracer computes for real may be taken for an object that existed before: nothing changes it
    ALWAYS_EXISTING: ClassVar[bool] = False
    #: whether it is a text or number that is not the same for good, by which something may be selected
    selects: ClassVar[bool] = False
    #: the object whose `__dict__` this value is, where it is one
    dict_owner: Any = None
    #: the existing object, or the known one that may stand for the value; None where there is none
    host: Any = None

    cls: type
    source: Source | None

    def type_name(self, space: Space) -> str:
        """The name that CPython's messages give the class."""
        return space.type_name(self.cls)

    def isa(self, kind: type | tuple[type, ...]) -> bool:
        """Whether the object is laid out as instances of `kind`: `__class__` and `__instancecheck__` are not asked."""
        return issubclass(self.cls, kind)

    def is_none(self) -> bool:
        """Whether the object is None."""
        return self.cls is type(None)

    def force(self) -> Value:
        """The realised value; installs the guards that realising needs."""
        return self

    def as_host(self, space: Space) -> Any:
        """The host object this value is known to equal; raises NotKnown. Containers give fresh copies."""
        raise NotKnown(self)

    def as_existing(self, space: Space) -> Any:
        """The existing object itself, under a guard that it is this one; raises NotKnown where it is not as before."""
        if self.source is None or self.host is None or space.trace.effects.is_mutated(self):
            raise NotKnown(self)
        space.guard_identity(self)
        return self.host

    def identity(self, space: Space) -> Any:
        """A host object whose identity stands for this value's identity (itself, for what exists only traced)."""
        return self

    def key(self, space: Space) -> Any:
        """A hashable host object that hashes and compares as this value does in a dict or set."""
        return space.traced_key(self)

    def number_now(self) -> int | None:
        """What a whole number that varies is in this call; None for anything else."""
        return None

    def text_key(self, space: Space) -> Any:
        """The `TextKey` of a text that varies, where it is known what it is in this call; None for anything else."""
        return None

    def number_source(self) -> Source | None:
        """Where such a number is found before the graph runs; None for what only the graph knows."""
        return None

    def select(self, space: Space, container: Value, read: Callable[[Any, Any], Any]) -> Value | None:
        """What `read` finds in an existing container by this key, where the key is no number for good: an existing
        object by itself, guarded by what it is like and not by which one it is; NULL where `read` raises a KeyError.
        None where the key must be known."""
        return None

    def within(self, before: str, after: str) -> Value:
        """Text that varies, with known text before and behind it."""
        raise NotKnown(self)

    def reconstruct(self, writer: Writer) -> str:
        """Emit code that gives this object at run time; returns the expression naming it."""
        raise Unsupported(errors.NotReconstructible(self.describe()))

    def shell(self, writer: Writer) -> str:
        """The expression for this (fresh) object without its contents, which refer to it."""
        raise Unsupported(errors.NotReconstructible(f"{self.describe()}, which holds itself"))

    def attr_dict(self, space: Space) -> Any:
        """The DictValue of the instance's `__dict__`, or None where instances of the class have none."""
        return None

    def lacks_dict(self, space: Space) -> bool:
        """Whether it is known to have no `__dict__` yet, where making one shows, as in copies of an exception."""
        return False

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> Value:
        """The value of an object that existed before the trace, under the guards that its model needs."""
        raise NotImplementedError

    @classmethod
    def from_fresh(cls, space: Space, host: Any) -> Value:
        """The value of an object that the tracer has just computed for real, where the model can take it over."""
        if cls.ALWAYS_EXISTING:
            return space.existing(host)
        raise Unsupported(errors.OpaqueResult(f"{type(host).__module__}.{type(host).__qualname__}"))

    def get_field(self, space: Space, name: str) -> Value | None:
        """A C-level attribute, or None: read it from the existing object."""
        getter = self.FIELDS.get(name)
        return None if getter is None else getter(self, space)

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        """Assign to a C-level attribute, or delete it (None); False where that has no model."""
        return False

    @classmethod
    def answers(cls, host: type, name: str) -> bool:
        """Whether a C-level attribute of `host` is answered for whatever instance, by what the program can pass on.

        A frame of the trace (`tb_frame`, `gi_frame` …) does not leave it.
        """
        return name in cls.FIELDS and not name.endswith("_frame")

    def held(self) -> Iterable[Value]:
        """Values that this one keeps alive, as far as the trace has met them; others may be missing."""
        return ()

    def dropped(self, hosts: list[Any]) -> list[Any] | None:
        """Which of the existing objects that it held before the trace it holds no more; None: that is not known."""
        return None

    def describe(self) -> str:
        return f"a {self.cls.__qualname__} object"

    def call_hint(self, space: Any) -> str:
        """What CPython adds to the words of the TypeError where an object that is not callable is called."""
        return ""

    def __repr__(self) -> str:
        where = f" from {self.source.expr()}" if self.source is not None else ""
        return f"<{type(self).__name__} {self.cls.__name__}{where}>"


class Lazy(Value):
    """Something read from the frame and not looked at yet: passing it on costs no guard."""

    __slots__ = ("_value", "host", "space")

    lazy = True

    def __init__(self, space: Space, host: Any, source: Source) -> None:
        self.space = space
        self.host = host
        self.source = source
        self._value: Value | None = None

    @property
    def cls(self) -> type:  # type: ignore[override]
        return self.force().cls

    def force(self) -> Value:
        value = self._value
        if value is None:
            assert self.source is not None
            value = self._value = self.space.realise(self.host, self.source)
        return value

    def as_host(self, space: Space) -> Any:
        return self.force().as_host(space)

    def identity(self, space: Space) -> Any:
        return self.force().identity(space)

    def key(self, space: Space) -> Any:
        return self.force().key(space)

    def held(self) -> Iterable[Value]:
        return () if self._value is None else (self._value,)

    def reconstruct(self, writer: Writer) -> str:
        if self._value is not None:
            return writer.expr(self._value)
        assert self.source is not None
        return writer.source(self.source)

    def __repr__(self) -> str:
        return f"<Lazy {self.source.expr() if self.source else '?'}>"


class Known(Value):
    """A value whose host object is known while tracing and may stand for it: operations on it can run for real."""

    __slots__ = ("host",)

    def __init__(self, host: Any, source: Source | None = None) -> None:
        self.host = host
        self.cls = type(host)
        self.source = source

    def as_host(self, space: Space) -> Any:
        return self.host

    def identity(self, space: Space) -> Any:
        return self.host

    def key(self, space: Space) -> Any:
        return self.host

    def reconstruct(self, writer: Writer) -> str:
        return writer.const(self.host)

    def describe(self) -> str:
        return repr(self.host)[:120]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.host!r:.80}>"


#: builtin types of which equal instances are one object, and for which of them that holds
CACHED: dict[type, Callable[[Any], bool]] = {
    int: lambda number: -5 <= number <= 256,
    str: lambda text: len(text) <= 1 and text.isascii(),
    bytes: lambda data: len(data) <= 1,
    float: lambda number: False,
    complex: lambda number: False,
}
_SINGLETONS = frozenset({bool, type(None), type(...), type(NotImplemented)})


def is_unique(host: Any) -> bool:
    """Whether what has its type and equals it is this very object."""
    cls = type(host)
    return cls in _SINGLETONS or (cls in CACHED and CACHED[cls](host))


#: types of numbers that are not to be compared with one another as keys: it would raise a flag
UNLIKE: set[type] = {float}


class Constant(Known):
    """A known object of an immutable type: int, str, None, range, dtype, re.Match …"""

    __slots__ = ()

    constant = True

    def key(self, space: Space) -> Any:
        host = self.host
        if type(host) in UNLIKE:
            if type(host) is float and host != host:
                space.guard_identity(self)  # a NaN equals nothing, and is found by its identity
            space.note_unlike(type(host))
        return host

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None and not is_unique(self.host):
            return writer.source(self.source)  # what is equal to it is another object
        if type(self.host) is float and self.host != self.host and self.source is None:
            return writer.new_nan(self.host)
        return writer.const(self.host)


class ObjectValue(Value):
    """An object with an identity: one that exists, found by its `source`, or one that the trace has made."""

    __slots__ = ("host",)

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.source = None
        self.host = None

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> Value:
        """The value of an existing object, of which nothing but its class is looked at."""
        self = cls(space.guard_type(host, source))
        self.host, self.source = host, source
        return self

    def identity(self, space: Space) -> Any:
        return self if self.source is None else self.host

    def reconstruct(self, writer: Writer) -> str:
        return self.rebuilt(writer) if self.source is None else writer.source(self.source)

    def rebuilt(self, writer: Writer) -> str:
        """Emit code that makes the object that the trace has made; returns the expression naming it."""
        raise Unsupported(errors.NotReconstructible(self.describe()))


class ExtensibleValue(ObjectValue):
    """An object of a type that classes derive from: its own may have given it a `__dict__`."""

    __slots__ = ("_attrs",)

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        self._attrs: Any = None

    def attr_dict(self, space: Space) -> Any:
        if self._attrs is None and self.cls.__dictoffset__ != 0:
            self._attrs = space.own_attr_dict(self)
        return self._attrs

    def held(self) -> Iterable[Value]:
        return () if self._attrs is None else self._attrs.held()


class Null(Value):
    """The NULL that CPython puts on the value stack around calls."""

    __slots__ = ()

    def __init__(self) -> None:
        self.cls = type(None)
        self.source = None

    def __repr__(self) -> str:
        return "<NULL>"


NULL = Null()


class Unsupported(Exception):
    """Stator cannot trace what was met: a graph break. Carries one object of a catalogue class."""

    def __init__(self, brk: Any) -> None:
        super().__init__(str(brk))
        self.brk = brk
