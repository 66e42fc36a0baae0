"""decimal.Context: contexts of decimal arithmetic, and which of them is the current one.

A context is traced by a shadow, a real context in the state that the traced program has brought it to. While the
program uses decimals, CPython computes under the shadow of the current context, so that neither the settings nor the
flags of the real one have a part in tracing. The flags that an existing context had before are read (and guarded)
only where the program asks for them: what operations raise is added to them.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable

from stator import errors
from stator.guards.guard import Equals
from stator.guards.source import CallSource, ConstSource, GetAttrSource, Source
from stator.space.attributes import attribute_name
from stator.space.host_types import Host
from stator.space.interfaces import Trace, Writer
from stator.space.operands import known_host, refuse, refuse_object, refuse_use
from stator.space.protocol import NONE, bad_call, models
from stator.space.space import Space
from stator.space.value import Constant, ExtensibleValue, Known, NotKnown, ObjectValue, Unsupported, Value

__all__ = ["Arithmetic", "ContextValue", "arithmetic", "compute"]

_FIELDS = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
_SIGNALS = ("flags", "traps")
_getattr = decimal.Context.__getattribute__
_setattr = decimal.Context.__setattr__
_SignalDict: Host = type(decimal.Context().flags).__mro__[1]
Settings = tuple[Host, ...]


# -- real contexts --------------------------------------------------------------------------------------------------


def names_set(signals: Host) -> tuple[str, ...]:
    """The names of the signals that are on."""
    return tuple(signal.__name__ for signal in signals if signals[signal])


def settings(context: Host) -> Settings:
    """What results depend on: all but the flags."""
    return (*(_getattr(context, name) for name in _FIELDS), names_set(_getattr(context, "traps")))


def flags_of(context: Host) -> tuple[str, ...]:
    """The names of the flags that are raised."""
    return names_set(_getattr(context, "flags"))


def _switch(signals: Host, names: tuple[str, ...], *, others_off: bool) -> None:
    for signal in list(signals):
        if signal.__name__ in names:
            signals[signal] = True
        elif others_off:
            signals[signal] = False


def put(context: Host, state: Settings) -> None:
    """Give a context these settings."""
    for name, value in zip(_FIELDS, state, strict=False):
        if _getattr(context, name) != value:
            _setattr(context, name, value)
    _switch(_getattr(context, "traps"), state[-1], others_off=True)


def put_flags(context: Host, names: tuple[str, ...]) -> None:
    """Raise these flags, and no others."""
    _switch(_getattr(context, "flags"), names, others_off=True)


def raise_flags(context: Host, names: tuple[str, ...]) -> None:
    """Raise these flags, besides those that are raised."""
    _switch(_getattr(context, "flags"), names, others_off=False)


def made(state: Settings, flags: tuple[str, ...], base: Host = None) -> decimal.Context:
    """A new context; the flags of `base` are raised in it too."""
    context = decimal.Context(flags=[], traps=[])
    put(context, state)
    raise_flags(context, flags if base is None else flags + flags_of(base))
    return context


def current(module: Host) -> Host:
    """The context of this thread."""
    return decimal.getcontext()


# -- the state of a trace -------------------------------------------------------------------------------------------


class Arithmetic:
    """Which context is the current one, in one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        source = CallSource(current, ConstSource(decimal, "decimal"), "current_context")
        self._initial = trace.space.wrap(current(decimal), source)
        self._current: Value | None = None
        self._change = _CurrentContext(self)

    @property
    def current(self) -> ContextValue:
        """The current context, on which all results depend that are computed from now on."""
        found = (self._current or self._initial).force()
        if not isinstance(found, ContextValue):
            raise refuse("decimal.getcontext")
        return found

    def set(self, context: Value) -> None:
        """Make another context the current one."""
        self._trace.mutation_count += 1
        self._trace.effects.mutated(self._change)
        self._current = context

    def changed(self) -> Value | None:
        """The current context, where it is not the one from before the trace."""
        if self._current is None or self._current.force() is self._initial.force():
            return None
        return self._current

    def compute(self, function: Callable[..., Host], *args: Host, **kwargs: Host) -> Host:
        """Call a host function in the current context of the traced program."""
        context = self.current
        outside = decimal.getcontext()
        decimal.setcontext(context.shadow)
        try:
            return function(*args, **kwargs)
        finally:
            decimal.setcontext(outside)
            context.note_flags(self._trace.space)


class _CurrentContext(Value):
    """That another context is the current one than before the trace: an effect."""

    __slots__ = ("_arithmetic",)

    def __init__(self, state: Arithmetic) -> None:
        self.cls = type(self)
        self.source = None
        self._arithmetic = state

    def effects(self, writer: Writer) -> list[str]:
        context = self._arithmetic.changed()
        return [] if context is None else [f"{writer.const(decimal.setcontext)}({writer.expr(context)})"]


def arithmetic(space: Space) -> Arithmetic:
    """The program uses decimals: from now on CPython computes in the program's context."""
    state = space.trace.extension(Arithmetic)
    space.compute = state.compute
    return state


def compute(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Call a C function of known operands, contexts among them."""
    arithmetic(space)
    contexts = []

    def operand(value: Value) -> Value:
        value = value.force()
        if not isinstance(value, ContextValue):
            return value
        contexts.append(value)
        return Known(value.shadow)

    args, kwargs = list(map(operand, args)), {name: operand(value) for name, value in kwargs.items()}
    try:
        return space.run_known(host, args, kwargs)
    except NotKnown:
        raise refuse(f"decimal.{host.__qualname__}") from None
    finally:
        for context in contexts:
            context.note_flags(space)


# -- contexts -------------------------------------------------------------------------------------------------------


@models(decimal.Context)
class ContextValue(ExtensibleValue):
    """A context; its flags are those of `shadow`, and those that `base` had before the trace, if there is one."""

    __slots__ = ("_signals", "base", "before", "manager", "noted", "shadow")

    def __init__(self, shadow: Host, cls: type = decimal.Context) -> None:
        super().__init__(cls)
        self._signals: dict[str, SignalsValue] = {}
        self.shadow = shadow
        #: the shadow as it was when its flags were looked at last
        self.noted = shadow.copy()
        #: an existing context, the flags of which have not been looked at
        self.base: ContextValue | None = None
        self.before: Settings = ()
        #: the context manager that has made it
        self.manager: Value | None = None

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> ContextValue:
        arithmetic(space)
        own = space.guard_type(host, source)
        state = settings(host)
        space.trace.guard(Equals(CallSource(settings, source, "settings"), state))
        self = cls(made(state, ()), own)
        self.source, self.host, self.before = source, host, state
        self.base = self
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> ContextValue:
        return cls(host)

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        if known_host(space, cls, "decimal.Context.__new__") is not decimal.Context:
            raise refuse_use("decimal.Context.__new__", "of a subclass")
        if any(type(host) is decimal.Context and is_template(host) for host in space.trace.effects.changed_hosts()):
            raise refuse_use("decimal.Context", "after a change of decimal.DefaultContext")
        arithmetic(space)
        source = CallSource(_default, ConstSource(decimal, "decimal"), "default_context")
        host = decimal.Context()
        space.trace.guard(Equals(source, _state(host)))
        return ContextValue(host)

    def tp_init(self, space: Space, /, *args: Value, **kwargs: Value) -> Value:
        shadow = self.changing(space, flags=True)
        try:
            return space.run_known(decimal.Context.__init__, [Known(shadow), *args], kwargs)
        except NotKnown:
            return bad_call(space, decimal.Context.__init__, [self, *args], kwargs)

    # -- the state --------------------------------------------------------------------------------------------------

    def changing(self, space: Space, *, flags: bool = False) -> Host:
        """The shadow, about to be changed; `flags`: or looked at with its flags."""
        if flags:
            self.load_flags(space)
        space.mark_mutated(self)
        return self.shadow

    def load_flags(self, space: Space) -> Host:
        """The shadow with all its flags: those from before the trace are guarded."""
        if self.base is not None:
            source, host = self.base.source, self.base.host
            assert source is not None
            flags = flags_of(host)
            space.trace.guard(Equals(CallSource(flags_of, source, "flags_of"), flags))
            raise_flags(self.shadow, flags)
            self.noted = self.shadow.copy()
            self.base = None
        return self.shadow

    def note_flags(self, space: Space) -> None:
        """Operations may have raised flags of the context."""
        if self.shadow.flags != self.noted.flags:
            space.mark_mutated(self)
            self.noted = self.shadow.copy()

    def copied(self) -> ContextValue:
        """`context.copy()`."""
        new = ContextValue(self.shadow.copy())
        new.base = self.base
        return new

    # -- attributes -------------------------------------------------------------------------------------------------

    def tp_getattribute(self, space: Space, name: Value, /) -> Value:
        text = attribute_name(space, name)
        return self.signals(space, text) if text in _SIGNALS else space.generic_getattr(self, text)

    def tp_setattr(self, space: Space, name: Value, value: Value, /) -> Value:
        text = attribute_name(space, name)
        if text in _SIGNALS:
            self.assign(space, text, value)
        else:
            space.generic_setattr(self, text, value)
        return NONE

    def tp_delattr(self, space: Space, name: Value, /) -> Value:
        raise space.error(AttributeError, "context attributes cannot be deleted")

    def assign(self, space: Space, name: str, value: Value) -> None:
        """Set what C keeps; `flags` and `traps` take the state of another such mapping over."""
        host = known_host(space, value, f"decimal.Context.{name}")
        space.run_known(_setattr, [Known(self.changing(space, flags=name == "flags")), Constant(name), Known(host)])

    def get_field(self, space: Space, name: str) -> Value | None:
        return Constant(_getattr(self.shadow, name)) if name in _FIELDS else None

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        if name not in _FIELDS or value is None:
            return False
        self.assign(space, name, value)
        return True

    def signals(self, space: Space, name: str) -> Value:
        """The mapping that shows the flags, or the traps."""
        found = self._signals.get(name)
        if found is None:
            found = self._signals[name] = SignalsValue(self, name)
            if found.source is not None:
                space._by_id[id(found.host)] = found
                space._kept.append(found.host)
        return found

    # -- methods ----------------------------------------------------------------------------------------------------

    def tp_repr(self, space: Space) -> Value:
        return Constant(decimal.Context.__repr__(self.load_flags(space)))

    def copy(self, space: Space) -> Value:
        return self.copied()

    def tp_copy(self, space: Space) -> Value:
        return self.copied()

    def clear_flags(self, space: Space) -> Value:
        self.changing(space).clear_flags()
        self.base = None
        return NONE

    def clear_traps(self, space: Space) -> Value:
        self.changing(space).clear_traps()
        return NONE

    def tp_reduce(self, space: Space) -> Value:
        if self.cls is not decimal.Context:
            raise refuse_use("decimal.Context.__reduce__", "of a subclass")
        return space.run_known(decimal.Context.__reduce__, [Known(self.load_flags(space))])

    # -- generated code ---------------------------------------------------------------------------------------------

    def rebuilt(self, writer: Writer) -> str:
        if self.manager is not None:
            return writer.assign("context", f"{writer.const(inner_of)}({writer.expr(self.manager)})")
        return writer.assign("context", f"{writer.const(made)}({self.text(writer)})")

    def text(self, writer: Writer) -> str:
        """The arguments of `made` for a context in the same state."""
        base = None if self.base is None else writer.source(self.base.source)  # type: ignore[arg-type]
        return f"{settings(self.shadow)!r}, {flags_of(self.shadow)!r}, {base}"

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        name, state, flags = writer.source(self.source), settings(self.shadow), flags_of(self.shadow)
        lines = [] if state == self.before else [f"{writer.const(put)}({name}, {state!r})"]
        if flags or self.base is None:
            change = put_flags if self.base is None else raise_flags
            lines.append(f"{writer.const(change)}({name}, {flags!r})")
        return lines


def is_template(context: Host) -> bool:
    """Whether new contexts are made after this one: what is set is a copy of it, then."""
    outside = decimal.getcontext()
    decimal.setcontext(context)
    copied = decimal.getcontext() is not context
    decimal.setcontext(outside)
    return copied


def _state(context: Host) -> Settings:
    return (*settings(context), flags_of(context))


def _default(module: Host) -> Settings:
    return _state(decimal.Context())


def inner_of(manager: Host) -> Host:
    """The context that `with manager:` makes the current one."""
    outside = decimal.getcontext()
    inner = manager.__enter__()
    decimal.setcontext(outside)
    return inner


# -- flags and traps ------------------------------------------------------------------------------------------------


def _run_by_host(name: str) -> Callable[..., Value]:
    """A method that the host's mapping has."""

    def method(self: SignalsValue, space: Space, *args: Value) -> Value:
        return self.run(space, name, *args)

    return method


@models(_SignalDict)
class SignalsValue(ObjectValue):
    """`context.flags`, `context.traps`."""

    __slots__ = ("kind", "owner")

    def __init__(self, owner: ContextValue, kind: str) -> None:
        self.owner = owner
        self.kind = kind
        self.source = None if owner.source is None else GetAttrSource(owner.source, kind)
        self.host = _getattr(owner.shadow if owner.host is None else owner.host, kind)
        self.cls = type(self.host)

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        # It does not say whose it is.
        raise refuse_object("the dict of flags or traps of a decimal.Context, kept apart from it,")

    def _mapping(self, space: Space, *, change: bool = False) -> Host:
        flags = self.kind == "flags"
        if change:
            self.owner.changing(space, flags=flags)
        elif flags:
            self.owner.load_flags(space)
        return getattr(self.owner.shadow, self.kind)

    def as_host(self, space: Space) -> Host:
        return self._mapping(space)

    def run(self, space: Space, name: str, *args: Value, change: bool = False) -> Value:
        """Let the host's mapping do it."""
        try:
            return space.run_known(getattr(_SignalDict, name), [Known(self._mapping(space, change=change)), *args])
        except NotKnown:
            raise refuse(f"decimal.SignalDictMixin.{name}") from None

    def tp_setitem(self, space: Space, key: Value, item: Value, /) -> Value:
        return self.run(space, "__setitem__", key, item, change=True)

    tp_getitem, tp_delitem, tp_len = map(_run_by_host, ("__getitem__", "__delitem__", "__len__"))
    tp_eq, tp_ne, tp_repr, copy = map(_run_by_host, ("__eq__", "__ne__", "__repr__", "copy"))

    def tp_iter(self, space: Space) -> Value:
        return space.iter(space.fresh(tuple(self.host)))

    def tp_init(self, space: Space, /, *args: Value, **kwargs: Value) -> Value:
        return bad_call(space, _SignalDict.__init__, [self, *args], kwargs)

    def reconstruct(self, writer: Writer) -> str:
        # It points into its context without keeping it: code after the break might no longer hold the context.
        raise Unsupported(errors.NotReconstructible(f"{self.kind} of a decimal.Context, apart from it"))
