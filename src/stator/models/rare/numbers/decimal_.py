"""decimal: decimals are constants; what the program computes with them is computed in the context it has set."""

from __future__ import annotations

import decimal
import types
from typing import Any

from stator.guards.guard import Predicate
from stator.guards.raw import members
from stator.guards.source import CallSource, Source
from stator.models.hostcalls.purity import as_constant
from stator.models.rare.numbers.decimal_context import ContextValue, arithmetic, compute, inner_of, is_template, made
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import known_host, refuse_use
from stator.space.protocol import HANDLERS, IMMUTABLE, NONE, REALISERS, bad_call, builtin, method_of, models, register
from stator.space.space import Space
from stator.space.value import UNLIKE, Constant, ObjectValue, Value

_ContextManager: Host = type(decimal.localcontext())


# -- decimals -------------------------------------------------------------------------------------------------------

_constant = as_constant(decimal.Decimal, str)


def _realise_decimal(space: Space, host: Host, source: Source) -> Value:
    arithmetic(space)
    return _constant(space, host, source)


UNLIKE.add(decimal.Decimal)  # decimal.FloatOperation
REALISERS[decimal.Decimal] = _realise_decimal
IMMUTABLE.add(decimal.Decimal)


def _in_context(host: Host) -> None:
    """A function of decimals, which may be given a context."""

    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        arithmetic(space)
        if any(value.isa(decimal.Context) for value in (*args, *kwargs.values())):
            return compute(space, host, args, kwargs)
        return None

    register(host, model)


for _member in members(decimal.Decimal, types.MethodDescriptorType, types.ClassMethodDescriptorType).values():
    _in_context(_member)
_in_context(decimal.Decimal)

_ZERO = Constant("0")


@builtin(decimal.Decimal.__new__)
def decimal_new(space: Space, cls: Value, value: Value = _ZERO, context: Value = NONE) -> Value:
    """`Decimal.__new__(cls, value, context)`."""
    if known_host(space, cls, "decimal.Decimal") is not decimal.Decimal:
        raise refuse_use("decimal.Decimal.__new__", "of a subclass")
    return compute(space, decimal.Decimal, [value, context], {})


# -- contexts -------------------------------------------------------------------------------------------------------


def _of_context(host: Host) -> None:
    @method_of(ContextValue, host)
    def model(self: ContextValue, space: Space, /, *args: Value, **kwargs: Value) -> Value:
        return compute(space, host, [self, *args], kwargs)


for _member in members(decimal.Context, types.MethodDescriptorType).values():
    if id(_member) not in HANDLERS:
        _of_context(_member)


@builtin(decimal.getcontext)
def getcontext(space: Space) -> Value:
    return arithmetic(space).current


def _is_no_template(context: Host) -> bool:
    return not is_template(context)


@builtin(decimal.setcontext)
def setcontext(space: Space, context: Any, /) -> Value:
    """What new contexts are made after is not set itself: a copy of it without flags is."""
    context = context.force()
    if not context.isa(decimal.Context):
        return bad_call(space, decimal.setcontext, [context], {})
    state = arithmetic(space)
    if context.source is not None:
        template = is_template(context.host)
        check = is_template if template else _is_no_template
        text = f"{context.source.expr()} is {'one' if template else 'none'} of decimal's own contexts"
        space.trace.guard(Predicate((context.source,), check, text))
        if template:
            context = context.copied()
            context.clear_flags(space)
    state.set(context)
    return NONE


@builtin(decimal.localcontext)
def localcontext(space: Space, ctx: Value = NONE, **kwargs: Value) -> Value:
    """A context manager for a copy of the context."""
    outer = arithmetic(space).current
    ctx = ctx.force()
    given: Any = outer if ctx.is_none() else ctx
    if not given.isa(decimal.Context):
        return bad_call(space, decimal.localcontext, [ctx], kwargs)
    flags = kwargs.get("flags", NONE).force()
    inner = given.copied()
    if not flags.is_none():
        inner.base = None
    if kwargs:
        made_so: Any = compute(space, _local, [inner], kwargs)
        inner.shadow = made_so.shadow
        inner.noted = made_so.noted
    return ManagerValue(inner, outer)


def _local(context: Host, /, **kwargs: Host) -> Host:
    """The context that the settings make of a context."""
    return inner_of(decimal.localcontext(context, **kwargs))


def outer_of(manager: Host) -> Host:
    """The context that is the current one again after `with manager:`."""
    inside = decimal.getcontext()
    manager.__exit__(None, None, None)
    outer = decimal.getcontext()
    decimal.setcontext(inside)
    return outer


def _managing(outer: Host, inner: Host) -> Host:
    """The context manager for a copy of `inner`, made where `outer` is the current one."""
    inside = decimal.getcontext()
    decimal.setcontext(outer)
    manager = decimal.localcontext(inner)
    decimal.setcontext(inside)
    return manager


@models(_ContextManager)
class ManagerValue(ObjectValue):
    """`decimal.localcontext()`: makes `inner` the current context, and `outer` again."""

    __slots__ = ("inner", "outer")

    def __init__(self, inner: Value, outer: Value) -> None:
        super().__init__(_ContextManager)
        self.inner = inner
        self.outer = outer
        if isinstance(inner, ContextValue):
            inner.manager = self

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> ManagerValue:
        space.guard_type(host, source)
        inner = space.wrap(inner_of(host), CallSource(inner_of, source, "inner_of"))
        outer = space.wrap(outer_of(host), CallSource(outer_of, source, "outer_of"))
        self = cls(inner, outer)
        self.source, self.host = source, host
        return self

    def tp_enter(self, space: Space) -> Value:
        arithmetic(space).set(self.inner)
        return self.inner

    def tp_exit(self, space: Space, /, *raised: Value) -> Value:
        arithmetic(space).set(self.outer)
        return NONE

    def held(self) -> tuple[Value, ...]:
        return (self.inner, self.outer)

    def rebuilt(self, writer: Writer) -> str:
        assert isinstance(self.inner, ContextValue)
        inner = f"{writer.const(made)}({self.inner.text(writer)})"
        return writer.assign("manager", f"{writer.const(_managing)}({writer.expr(self.outer)}, {inner})")
