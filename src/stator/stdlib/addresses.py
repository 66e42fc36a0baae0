"""Texts that show where an object lies in memory: `object_repr` and those of functions and methods.

Where an existing object lies is known, under a guard on its identity; that of an object which the traced program makes
is text that is computed when the object has been made.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from stator.guards.raw import type_name
from stator.objects.pending import PendingText, joined
from stator.objects.protocol import builtin
from stator.objects.value import Constant, Value
from stator.stdlib.id_ import IdValue
from stator.stdlib.repr_ import repr_of
from stator.stdlib.str_ import text_of

if TYPE_CHECKING:
    from stator.objects.space import Space

__all__ = ["address"]

_METHOD_WRAPPER = type(object().__str__)


class _Address(IdValue):
    """The id of an object in a text: where an object lay that is gone, another could lie."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Address) and other.target is self.target

    __hash__ = object.__hash__

    def anchor(self, space: Space) -> Any:
        return space.identity(self.target)


def address(space: Space, value: Value) -> Value:
    """How `%p` shows the object."""
    value = value.force()
    host = space.identity(value)
    if isinstance(host, Value):
        return PendingText([(hex, [_Address(value)])])
    space.guard_identity_of(value.source, host)
    return Constant(hex(id(host)))


def _joined(space: Space, *pieces: Value | str) -> Value:
    values = [Constant(piece) if isinstance(piece, str) else piece for piece in pieces]
    return joined(values, lambda piece: text_of(space, piece, "repr"))


def _text(space: Space, owner: Value, name: str) -> str | None:
    found = space.getattr_or_none(owner, name)
    return space.str_(found) if found is not None and issubclass(found.force().cls, str) else None


@builtin(object.__repr__)
def object_repr(space: Space, value: Value, /) -> Value:
    value = value.force()
    cls = space.class_value(value.cls)
    module = _text(space, cls, "__module__")
    name = type_name(value.cls) if module in (None, "builtins") else f"{module}.{_text(space, cls, '__qualname__')}"
    return _joined(space, f"<{name} object at ", address(space, value), ">")


@builtin(types.FunctionType.__repr__)
def function_repr(space: Space, function: Value, /) -> Value:
    return _joined(space, f"<function {_text(space, function, '__qualname__')} at ", address(space, function), ">")


@builtin(types.MethodType.__repr__)
def method_repr(space: Space, method: Value, /) -> Value:
    """`method_repr`: the name its function goes by, and what it is bound to."""
    function = space.getattr(method, "__func__")
    name = _text(space, function, "__qualname__") or _text(space, function, "__name__") or "?"
    return _joined(space, f"<bound method {name} of ", repr_of(space, space.getattr(method, "__self__")), ">")


@builtin(types.BuiltinFunctionType.__repr__)
def builtin_repr(space: Space, function: Value, /) -> Value:
    """`meth_repr`: a function of a module, or a method of the object it is bound to."""
    owner = space.getattr(function, "__self__").force()
    name = _text(space, function, "__name__")
    if owner.cls is type(None) or issubclass(owner.cls, types.ModuleType):
        return Constant(f"<built-in function {name}>")
    return _joined(space, f"<built-in method {name} of {owner.type_name} object at ", address(space, owner), ">")


@builtin(_METHOD_WRAPPER.__repr__)
def method_wrapper_repr(space: Space, wrapper: Value, /) -> Value:
    owner = space.getattr(wrapper, "__self__").force()
    name = _text(space, wrapper, "__name__")
    return _joined(space, f"<method-wrapper '{name}' of {owner.type_name} object at ", address(space, owner), ">")


@builtin(types.GeneratorType.__repr__, types.CoroutineType.__repr__, types.AsyncGeneratorType.__repr__)
def generator_repr(space: Space, generator: Value, /) -> Value:
    kind: dict[type, str] = {types.CoroutineType: "coroutine", types.AsyncGeneratorType: "async_generator"}
    word = kind.get(generator.force().cls, "generator")
    name = _text(space, generator, "__qualname__")
    return _joined(space, f"<{word} object {name} at ", address(space, generator), ">")


def _wrapping(word: str) -> Any:
    def shown(space: Space, wrapper: Value, /) -> Value:
        return _joined(space, f"<{word}(", repr_of(space, space.getattr(wrapper, "__func__")), ")>")

    return shown


builtin(staticmethod.__repr__)(_wrapping("staticmethod"))
builtin(classmethod.__repr__)(_wrapping("classmethod"))
