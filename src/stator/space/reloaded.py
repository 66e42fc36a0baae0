"""C modules that were loaded a second time: what they define is modelled as what the first one defines."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING

from stator import errors
from stator.guards.raw import members
from stator.space.host_types import Host
from stator.space.protocol import HANDLERS, IMMUTABLE, MODELS, PURE, REALISERS, handler_of, pure, register
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from stator.space.protocol import Handler
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["adopt", "adopt_type"]

_module_of = type.__dict__["__module__"].__get__

#: modules that keep a state of their own, which is another one for a second copy
_STATEFUL = frozenset({"decimal", "_decimal"})


def adopt(host: Host) -> bool:
    """Give a C callable the model of the one it is a second copy of; whether there is one."""
    owner = getattr(host, "__objclass__", None) or getattr(host, "__self__", None)
    if isinstance(owner, type):
        return adopt_type(owner) and id(host) in HANDLERS
    if type(host) is not types.BuiltinFunctionType or not isinstance(owner, types.ModuleType):
        return False
    if owner.__name__ in _STATEFUL:
        return False
    return _take(host, getattr(sys.modules.get(owner.__name__), host.__name__, None))


def adopt_type(cls: type) -> bool:
    """Give a C type, and its methods, the model of the type it is a second copy of; whether there is one."""
    if cls in MODELS:
        return False
    try:
        module = _module_of(cls)
    except AttributeError:  # `type("C", (), {})` in a namespace without `__name__`
        return False
    if module in _STATEFUL:
        return False
    first = getattr(sys.modules.get(module), cls.__qualname__, None)
    if first is cls or not isinstance(first, type) or first not in MODELS or not _alike(cls, first):
        return False
    MODELS[cls] = MODELS[first]
    if first in REALISERS:
        REALISERS[cls] = REALISERS[first]
    if first in IMMUTABLE:
        IMMUTABLE.add(cls)
    for name, member in vars(cls).items():
        _take(member, vars(first)[name])
    maker = HANDLERS.get(id(cls.__new__))
    if maker is not None:
        register(cls.__new__, _of_its_class(maker))
    return True


def _of_its_class(maker: Handler) -> Handler:
    """The model of `__new__`, where it makes instances of the class it is asked for."""

    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        made = maker(space, args, kwargs)
        if made is not None and args[0].force().as_host(space) is not made.force().cls:
            raise Unsupported(errors.UnsupportedCCall(f"{made.type_name(space)}.__new__"))
        return made

    return model


def _alike(cls: type, first: type) -> bool:
    """Whether both are laid out and defined alike, in C."""
    if vars(cls).keys() != vars(first).keys() or cls.__basicsize__ != first.__basicsize__:
        return False
    return not members(cls, types.FunctionType)


def _take(host: Host, first: Host) -> bool:
    """The model, and the purity, of `first` for `host`."""
    if host is first:
        return False
    handler = handler_of(first)
    if handler is not None:
        register(host, handler)
    if id(first) in PURE:
        pure(host)
    return handler is not None or id(first) in PURE
