"""datetime: dates and times are constants; the program may derive classes from them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from stator.guards.source import Source
from stator.models.classes.payload import PayloadValue, makes_itself, payload_type
from stator.models.hostcalls.purity import frozen
from stator.space.host_types import Host
from stator.space.operands import hooked, host_errors, known_host, refuse_use
from stator.space.protocol import builtin, impure, register
from stator.space.space import Space
from stator.space.value import Constant, Value


def _date_state(host: Host) -> Any:
    return host.__reduce__()[1][0]


def _delta_state(host: datetime.timedelta) -> Any:
    return (host.days, host.seconds, host.microseconds)


#: methods of dates and times that their other methods call
_CALLED_BACK = ("timetuple", "strftime", "toordinal", "utcoffset", "tzname", "dst")


def _refuse_callbacks(space: Space, cls: type, base: type) -> None:
    """The C methods of an instance of `cls` must not run code of the program's, which is not traced then."""
    for name in _CALLED_BACK:
        if space.host_lookup(cls, name) is not space.host_lookup(base, name):
            raise refuse_use(f"{base.__name__}.{name}", f"of {cls.__qualname__}, which overrides it")


def _derived(cls: Any, state: Callable[[Any], Any] | None, *remaking: str) -> None:
    """A type that the program may derive from; its methods `remaking` call the class of the object for their result."""

    def foreign(space: Space, host: Host, source: Source) -> Value:
        _refuse_callbacks(space, space.guard_type(host, source), cls)
        return PayloadValue.from_host(space, host, source)

    frozen(cls, state, foreign)
    payload_type(cls)

    @builtin(cls.__new__)
    def new(space: Space, owner: Value, *args: Value, **kwargs: Value) -> Value:
        made: type = known_host(space, owner, f"{cls.__name__}.__new__")
        if made is cls:
            return space.run_known(cls, list(args), kwargs)
        _refuse_callbacks(space, made, cls)
        name = f"{cls.__name__}.__new__"
        hosts = [known_host(space, arg, name) for arg in args]
        named = {key: known_host(space, arg, name) for key, arg in kwargs.items()}
        with host_errors(space, TypeError, ValueError, OverflowError):
            return PayloadValue(cls, cls.__new__(made, *hosts, **named))

    for name in remaking:
        _remaking(cls.__dict__[name])


def _texts(cls: Any, *separator: str) -> None:
    """`str(value)` and `format(value)` call methods of the object."""

    @builtin(cls.__str__)
    def str_(space: Space, value: Value, /) -> Value:
        return space.call_method(value, "isoformat", *map(Constant, separator))

    @builtin(cls.__format__)
    def format_(space: Space, value: Value, spec: Value, /) -> Value:
        if spec.force().cls is not str:
            return hooked(space, cls.__format__, [value, spec])
        return space.call_method(value, "strftime", spec) if space.truth(spec) else space.str(value)


def _remaking(host: Host) -> None:
    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        value = args[0].force() if args else None
        if isinstance(value, PayloadValue) and not makes_itself(space, value.cls):
            raise refuse_use(host.__qualname__, f"of a {value.cls.__qualname__}")
        return hooked(space, host, args, kwargs)

    register(host, model)


def _of_now(cls: type, *names: str) -> None:
    """Methods of an immutable type that ask the clock or the time zone of the machine."""
    for name in names:
        host = cls.__dict__.get(name)
        if host is not None:
            impure(host)


_derived(datetime.date, _date_state, "__add__", "__radd__", "__sub__", "replace")
_derived(datetime.time, None, "replace")
_derived(datetime.datetime, None, "__add__", "__radd__", "__sub__", "replace")
_derived(datetime.timedelta, _delta_state)
frozen(datetime.timezone)
_texts(datetime.date)
_texts(datetime.time)
_texts(datetime.datetime, " ")
_of_now(datetime.date, "today", "fromtimestamp")
_of_now(datetime.datetime, "now", "utcnow", "today", "fromtimestamp", "timestamp", "astimezone")
