"""What the models of C functions share."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from stator import errors
from stator.space.protocol import FALSE, NOT_IMPLEMENTED, TRUE, ask_hooks
from stator.space.value import Constant, NotKnown, Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.space.space import Space

F = TypeVar("F", bound=Callable[..., Any])

#: exact types whose instances behave alike wherever they come from, so that CPython may compute with them
LITERAL_TYPES = frozenset({int, float, complex, bool, str, bytes, type(None)})


def refuse(function: str) -> Unsupported:
    """`raise refuse("os.fork")`: nothing is known about what the function does."""
    return Unsupported(errors.UnsupportedCCall(function))


def refuse_use(function: str, case: str) -> Unsupported:
    """`raise refuse_use("bytes.__new__", "of a buffer")`: the function is modelled, but not for this use."""
    return Unsupported(errors.UnsupportedUse(function, case))


def refuse_object(what: str) -> Unsupported:
    """`raise refuse_object("an existing weakref.proxy")`: what the object does cannot be traced."""
    return Unsupported(errors.UnsupportedObject(what))


def bool_value(truth: bool) -> Value:
    """The traced True or False."""
    return TRUE if truth else FALSE


def literal(value: Value) -> bool:
    """Whether the value is a known number, string, bytes or None of exactly the builtin type."""
    return value.constant and value.cls in LITERAL_TYPES


def known_host(space: Space, value: Value, function: str) -> Any:
    """The host object of an operand that must be known, or a break that names the function."""
    value = value.force()
    try:
        return value.as_host(space)
    except NotKnown:
        raise Unsupported(errors.UnknownArgument(function, value.describe())) from None


def check_kind(space: Space, value: Value, kind: type | tuple[type, ...], words: str) -> Value:
    """The value itself if it is an instance of `kind`, else a TypeError in these words; %T is its type's name."""
    value = value.force()
    if not value.isa(kind):
        raise _type_error(space, value, words)
    return value


def among(*kinds: type) -> Callable[[F], F]:
    """Decorator of a binary slot for operands of these kinds: NotImplemented of others, as `PyAnySet_Check` decides."""

    def decorate(method: F) -> F:
        @functools.wraps(method)
        def slot(self: Value, space: Space, *args: Any) -> Value:
            other = args[-1].force()
            return method(self, space, *args[:-1], other) if other.isa(kinds) else NOT_IMPLEMENTED

        return slot  # type: ignore[return-value]

    return decorate


def call_slot(space: Space, value: Value, method: str, words: str, *args: Value) -> Value:
    """What the special method of the value's type gives, or a TypeError in these words (see `check_kind`)."""
    value = value.force()
    slot = space.special(value, method)
    if slot is None:
        raise _type_error(space, value, words)
    return space.call(slot, [value, *args], {}).force()


def _type_error(space: Space, value: Value, words: str) -> Raised:
    return space.error(TypeError, words.replace("%T", value.type_name(space)) if "%T" in words else words)


def strict_subclass(words: str, kind: type) -> str:
    """What is said of a conversion that gives an instance of a strict subclass."""
    deprecated = f"The ability to return an instance of a strict subclass of {kind.__name__} is deprecated"
    return f"{words}.  {deprecated}, and may be removed in a future version of Python."


def exact_number(space: Space, result: Value, kind: type, words: str) -> Value:
    """What `__int__`, `__float__` or `__complex__` gave, as an exact number; `words`: the error for something else."""
    if result.cls is kind:
        return result
    if not result.isa(kind):
        raise space.error(TypeError, words)
    space.warn(DeprecationWarning, strict_subclass(words, kind))
    return Constant(getattr(kind, f"__{kind.__name__}__")(known_host(space, result, kind.__name__)))


@contextlib.contextmanager
def host_errors(space: Space, *kinds: type[Exception]) -> Iterator[None]:
    """`with host_errors(space, TypeError):` what a host function raises in the block the traced program raises."""
    try:
        yield
    except kinds as e:
        raise Raised(space.exception(e)) from None


def hooked(space: Space, host: Any, args: list[Value], kwargs: dict[str, Value] | None = None) -> Value:
    """Call a pure host function that is modelled, for operands the model leaves to it: higher layers, then for real."""
    result = ask_hooks(space, host, args, kwargs or {})
    if result is not None:
        return result
    try:
        return space.run_known(host, args, kwargs)
    except NotKnown:
        pass
    result = space.immutable_fallback(host, args) or space.call_on_proxies(host, args, kwargs)
    if result is not None:
        return result
    raise refuse(getattr(host, "__qualname__", repr(host)))
