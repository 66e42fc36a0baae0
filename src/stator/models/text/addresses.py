"""Texts that show where an object lies in memory: `object_repr` and those of functions and methods.

Where an existing object lies is known, under a guard on its identity; that of an object which the traced program makes
is text that is computed when the object has been made.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable

from stator.guards.raw import is_heap_type
from stator.host.version_facts import TYPES_NAMED_IN_FULL
from stator.models.functions.cell import CellValue
from stator.models.identity.id_ import IdValue
from stator.models.identity.weakref_ import RefValue
from stator.models.text.repr_ import repr_of
from stator.models.text.str_format import text_of
from stator.space.deferred import DeferredStr, joined
from stator.space.host_types import Host
from stator.space.operands import refuse_use
from stator.space.protocol import CALL_HOOKS, bad_call, builtin
from stator.space.space import Space
from stator.space.value import Constant, Raised, Value

__all__ = ["address", "joined_text", "referent_type"]

_METHOD_WRAPPER = type(object().__str__)


class _Address(IdValue):
    """The id of an object in a text: where an object lay that is gone, another could lie."""

    __slots__ = ("_kept",)

    def __init__(self, target: Value) -> None:
        super().__init__(target)
        # Generated code makes the object for its text; what is finalised ends where the program lets go of it.
        self._kept = None if hasattr(target, "tp_del") else target

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Address) and other.target is self.target

    __hash__ = object.__hash__

    def anchor(self, space: Space) -> Host:
        return space.identity(self.target)


def address(space: Space, value: Value) -> Value:
    """How `%p` shows the object."""
    value = value.force()
    host = space.identity(value)
    if isinstance(host, Value):
        return DeferredStr([(hex, [_Address(value)])])
    space.guard_identity_of(value.source, host)
    return Constant(hex(id(host)))


def _shown_number(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`f"{id(made)}"`: the number of an object that the program makes, as text (see protocol.CALL_HOOKS)."""
    show = _SHOWS.get(host)
    if show is None or type(number := args[0].force()) is not IdValue:
        return None
    if not isinstance(space.identity(number.target), Value):
        return None
    return DeferredStr([(show, [_Address(number.target), *args[1:]])])


#: methods of int that give text, and what does so when the number is there
_SHOWS: dict[Host, Callable[..., str]] = {int.__repr__: repr, int.__format__: format}
CALL_HOOKS.append(_shown_number)


def joined_text(space: Space, *pieces: Value | str) -> Value:
    """The pieces in one text, which may have to be computed yet."""
    values = [Constant(piece) if isinstance(piece, str) else piece for piece in pieces]
    return joined(values, lambda piece: text_of(space, piece, "repr"))


def _text(space: Space, owner: Value, name: str) -> str | None:
    found = space.getattr_or_none(owner, name)
    return space.str_(found) if found is not None and found.isa(str) else None


@builtin(object.__repr__)
def object_repr(space: Space, value: Value, /) -> Value:
    value = value.force()
    cls = space.class_value(value.cls)
    module = _text(space, cls, "__module__")
    plain = module in (None, "builtins")
    name = value.type_name(space) if plain else f"{module}.{_text(space, cls, '__qualname__')}"
    return joined_text(space, f"<{name} object at ", address(space, value), ">")


@builtin(types.FunctionType.__repr__)
def function_repr(space: Space, function: Value, /) -> Value:
    return joined_text(space, f"<function {_text(space, function, '__qualname__')} at ", address(space, function), ">")


@builtin(types.MethodType.__repr__)
def method_repr(space: Space, method: Value, /) -> Value:
    """`method_repr`: the name its function goes by, and what it is bound to."""
    function = space.getattr(method, "__func__")
    name = _text(space, function, "__qualname__") or _text(space, function, "__name__") or "?"
    return joined_text(space, f"<bound method {name} of ", repr_of(space, space.getattr(method, "__self__")), ">")


@builtin(types.BuiltinFunctionType.__repr__)
def builtin_repr(space: Space, function: Value, /) -> Value:
    """`meth_repr`: a function of a module, or a method of the object it is bound to."""
    owner = space.getattr(function, "__self__").force()
    name = _text(space, function, "__name__")
    if owner.is_none() or owner.isa(types.ModuleType):
        return Constant(f"<built-in function {name}>")
    return joined_text(
        space, f"<built-in method {name} of {owner.type_name(space)} object at ", address(space, owner), ">"
    )


@builtin(_METHOD_WRAPPER.__repr__)
def method_wrapper_repr(space: Space, wrapper: Value, /) -> Value:
    owner = space.getattr(wrapper, "__self__").force()
    name = _text(space, wrapper, "__name__")
    start = f"<method-wrapper '{name}' of {owner.type_name(space)} object at "
    return joined_text(space, start, address(space, owner), ">")


@builtin(types.GeneratorType.__repr__, types.CoroutineType.__repr__, types.AsyncGeneratorType.__repr__)
def generator_repr(space: Space, generator: Value, /) -> Value:
    kind: dict[type, str] = {types.CoroutineType: "coroutine", types.AsyncGeneratorType: "async_generator"}
    word = kind.get(generator.force().cls, "generator")
    name = _text(space, generator, "__qualname__")
    return joined_text(space, f"<{word} object {name} at ", address(space, generator), ">")


def _wrapping(word: str) -> Callable[..., Value]:
    def shown(space: Space, wrapper: Value, /) -> Value:
        return joined_text(space, f"<{word}(", repr_of(space, space.getattr(wrapper, "__func__")), ")>")

    return shown


builtin(staticmethod.__repr__)(_wrapping("staticmethod"))
builtin(classmethod.__repr__)(_wrapping("classmethod"))


@builtin(types.CellType.__repr__)
def cell_repr(space: Space, cell: Value, /) -> Value:
    """`cell_repr`: of the contents, no more than their type."""
    cell = cell.force()
    if not isinstance(cell, CellValue):
        return bad_call(space, types.CellType.__repr__, [cell], {})
    if cell.contents is None:
        return joined_text(space, "<cell at ", address(space, cell), ": empty>")
    contents = cell.contents.force()
    shown = f": {contents.type_name(space)[:80]} object at "
    return joined_text(space, "<cell at ", address(space, cell), shown, address(space, contents), ">")


@builtin(types.FrameType.__repr__)
def frame_repr(space: Space, frame: Value, /) -> Value:
    """`frame_repr`: where the frame is."""
    frame = frame.force()
    if not frame.isa(types.FrameType):
        return bad_call(space, types.FrameType.__repr__, [frame], {})
    code = space.known(space.getattr(frame, "f_code"))
    line = space.known(space.getattr(frame, "f_lineno"))
    if not isinstance(code, types.CodeType) or type(line) is not int:
        raise refuse_use("repr", "of a frame that is not known")
    where = f", file {code.co_filename!r}, line {line}, code {code.co_name}>"
    return joined_text(space, "<frame at ", address(space, frame), where)


def referent_type(space: Space, referent: Value) -> str:
    """How the text of a weak reference names the type of what it leads to."""
    if not TYPES_NAMED_IN_FULL or not is_heap_type(referent.cls):
        return referent.type_name(space)
    cls = space.class_value(referent.cls)
    module, name = _text(space, cls, "__module__"), _text(space, cls, "__qualname__")
    return str(name) if module in (None, "builtins", "__main__") else f"{module}.{name}"


@builtin(weakref.ref.__repr__)
def weakref_repr(space: Space, reference: Value, /) -> Value:
    """`weakref_repr`: with the name of what it leads to, where that has one."""
    reference = reference.force()
    if not isinstance(reference, RefValue):
        return bad_call(space, weakref.ref.__repr__, [reference], {})
    referent = reference.follow(space).force()
    if referent.is_none():
        return joined_text(space, "<weakref at ", address(space, reference), "; dead>")
    to = f"; to '{referent_type(space, referent)}' at "
    try:
        name = _text(space, referent, "__name__")
    except Raised:  # of a `__getattr__`, which CPython ignores
        name = None
    end = ">" if name is None else f" ({name})>"
    return joined_text(space, "<weakref at ", address(space, reference), to, address(space, referent), end)
