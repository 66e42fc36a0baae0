"""contextvars: the value of a variable in the current context."""

from __future__ import annotations

import contextvars
from collections.abc import Iterable
from typing import Any

from stator import errors
from stator.guards.guard import Predicate
from stator.guards.source import CallSource, ConstSource, Source
from stator.space.facts import fixed
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.protocol import NONE, models
from stator.space.space import Space
from stator.space.value import Constant, NotKnown, ObjectValue, Raised, Unsupported, Value


def current(variable: contextvars.ContextVar[Any]) -> Any:
    """The value of the variable in the running context; LookupError where it has none."""
    return variable.get()


def _has_none(variable: contextvars.ContextVar[Any]) -> bool:
    try:
        variable.get()
    except LookupError:
        return True
    return False


def _is_set(variable: contextvars.ContextVar[Any]) -> bool:
    return variable in contextvars.copy_context()


def _is_not_set(variable: contextvars.ContextVar[Any]) -> bool:
    return not _is_set(variable)


@models(contextvars.ContextVar)
class ContextVarValue(Value):
    """A context variable, with what the traced program has set it to."""

    __slots__ = ("host", "live", "tokens")
    FIELDS = {"name": lambda self, space: self.name}

    def __init__(self, host: contextvars.ContextVar[Any] | None, source: Source | None) -> None:
        self.cls = contextvars.ContextVar
        self.source = source
        self.host = host
        #: the tokens of the values set and not reset, oldest first
        self.live: list[TokenValue] = []
        #: their names in generated code, once the variable has been set there
        self.tokens: list[str] | None = None

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> ContextVarValue:
        space.guard_identity_of(source, host)
        return cls(host, ConstSource(host, fixed(host, "name")))

    @staticmethod
    def tp_new(space: Space, cls: Value, name: Value, /, *, default: Value | None = None) -> Value:
        if not name.isa(str):
            raise space.error(TypeError, "context variable name must be a str")
        return NewContextVar(name, default)

    @property
    def name(self) -> Value:
        """Its name."""
        return Constant(fixed(self.host, "name"))

    def identity(self, space: Space) -> Host:
        return self.host

    def as_host(self, space: Space) -> Host:
        return self.host

    def reconstruct(self, writer: Writer) -> str:
        return writer.const(self.host)

    def describe(self) -> str:
        return f"context variable {fixed(self.host, 'name')}"

    def get(self, space: Space, default: Value | None = None, /) -> Value:
        """The value in this context: the traced one, or the one before the trace."""
        if self.live:
            return self.live[-1].value
        if default is not None and not self._set_before(space):
            # The variable's own default counts less than the one given.
            return default
        return self._before(space)

    def _before(self, space: Space) -> Value:
        """The value before the trace."""
        assert self.source is not None
        try:
            found = current(self.host)
        except LookupError as e:
            space.trace.guard(Predicate((self.source,), _has_none, f"{fixed(self.host, 'name')} has no value"))
            raise Raised(space.exception(e)) from None
        return space.wrap(found, CallSource(current, self.source, "current"))

    def _set_before(self, space: Space) -> bool:
        assert self.source is not None
        is_set = _is_set(self.host)
        check = _is_set if is_set else _is_not_set
        space.trace.guard(
            Predicate((self.source,), check, f"{fixed(self.host, 'name')} is {'' if is_set else 'not '}set")
        )
        return is_set

    def set(self, space: Space, value: Value, /) -> Value:
        space.mark_mutated(self)
        token = TokenValue(self, value)
        self.live.append(token)
        return token

    def reset(self, space: Space, token: Value, /) -> Value:
        token = token.force()
        if not token.isa(contextvars.Token):
            text = f"expected an instance of Token, got {space.str_(space.repr(token))}"
            raise space.error(TypeError, text)
        if not isinstance(token, TokenValue) or token.source is not None:
            raise Unsupported(errors.UnsupportedMethod("ContextVar", "reset"))
        if token.used:
            raise Unsupported(errors.UnsupportedMethod("ContextVar", "reset"))  # a RuntimeError that shows an address
        if token.variable is not self or token not in self.live:
            raise Unsupported(errors.UnsupportedMethod("ContextVar", "reset"))
        space.mark_mutated(self)
        token.used = True
        del self.live[self.live.index(token) :]
        return NONE

    def perform(self, writer: Writer) -> list[str]:
        """Set the variable in generated code as often as it is set now; the names of the tokens."""
        name = writer.expr(self)  # a new one is set when it is made
        if self.tokens is None:
            values = [writer.expr(token.value) for token in self.live]
            self.tokens = [writer.assign("token", f"{name}.set({value})") for value in values]
        return self.tokens

    def effects(self, writer: Writer) -> list[str]:
        self.perform(writer)
        return []


class NewContextVar(ContextVarValue):
    """One that the trace has made; where nothing has it any more, it is not made, and not set in the context."""

    __slots__ = ("default", "title")

    def __init__(self, title: Value, default: Value | None) -> None:
        super().__init__(None, None)
        self.title = title
        self.default = default

    @property
    def name(self) -> Value:
        return self.title

    def identity(self, space: Space) -> Host:
        return self

    def as_host(self, space: Space) -> Host:
        raise NotKnown(self)

    def describe(self) -> str:
        return "a context variable"

    def held(self) -> Iterable[Value]:
        return (*(token.value for token in self.live), *(() if self.default is None else (self.default,)))

    def reconstruct(self, writer: Writer) -> str:
        default = "" if self.default is None else f", default={writer.expr(self.default)}"
        name = writer.assign("variable", f"{writer.const(self.cls)}({writer.expr(self.title)}{default})")
        writer.name_value(self, name)
        self.perform(writer)
        return name

    def _set_before(self, space: Space) -> bool:
        return False

    def _before(self, space: Space) -> Value:
        if self.default is None:
            raise Raised(space.call(space.existing(LookupError), [self], {}))
        return self.default


@models(contextvars.Token)
class TokenValue(ObjectValue):
    """What `ContextVar.set` gives: the way back."""

    __slots__ = ("used", "value", "variable")
    FIELDS = {"var": lambda self, space: self.variable}

    def __init__(self, variable: ContextVarValue | None, value: Value) -> None:
        super().__init__(contextvars.Token)
        self.variable = variable
        self.value = value
        self.used = False

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> TokenValue:
        space.guard_type(host, source)
        self = cls(None, NONE)
        self.host, self.source = host, source
        return self

    def rebuilt(self, writer: Writer) -> str:
        assert self.variable is not None
        if self.used or self not in self.variable.live:
            return super().rebuilt(writer)
        index = self.variable.live.index(self)
        return self.variable.perform(writer)[index]
