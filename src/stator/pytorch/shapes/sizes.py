"""torch.Size: a tuple whose own methods are C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.models.containers.tuple_ import LIKE_TUPLES
from stator.pytorch import internals
from stator.space.deferred import concatenated
from stator.space.protocol import COMPARISONS, MODELS, bad_call, pure, register
from stator.space.recursion import repr_piece
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = ["install", "new_size"]


def new_size(space: Space, items: list[Value]) -> Value:
    """A torch.Size of these numbers."""
    made: Any = space.new_tuple(items)
    made.cls = torch.Size
    return made


def _new(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) > 2 or kwargs or not args:
        return bad_call(space, torch.Size.__new__, args, kwargs)
    items = space.unpack(args[1]) if len(args) == 2 else []
    return new_size(space, [space.index(item) for item in items])


def _numel(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    total: Value = Constant(1)
    for item in space.unpack(args[0]):
        total = space.binary("*", total, item)
    return total


def _repr(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch.Size([2, 3])`; with sizes that vary it is put together when the graph has run."""
    items = [item.force() for item in space.unpack(args[0])]
    if all(item.constant for item in items):
        return space.run_known(torch.Size.__repr__, args)
    shown = [piece for item in items for piece in (", ", repr_piece(space, item))]
    return concatenated("torch.Size([", *shown[1:], "])")


def _again(name: str) -> Handler:
    """A method of tuple whose result is a torch.Size where it is a tuple."""
    tuple_method = tuple.__dict__[name]

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        left = args[0].force()
        if name != "__getitem__":
            left = space.new_tuple(space.unpack(left))
        result = space.call_builtin(tuple_method, [left, *args[1:]], kwargs).force()
        if result.cls is tuple and isinstance(result, MODELS[tuple]):
            return new_size(space, space.unpack(result))
        return result

    return handler


def _joined(swap: bool) -> Handler:
    """`size + other` of a tuple, from whichever side."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        if len(args) != 2 or kwargs or not all(arg.force().isa(tuple) for arg in args):
            return None
        left, right = (space.unpack(arg) for arg in (reversed(args) if swap else args))
        return new_size(space, [space.index(item) for item in (*left, *right)])

    return handler


def _as_tuple(name: str) -> Handler:
    """A slot that torch.Size has of its own, and that does what tuple's does."""
    tuple_method = tuple.__dict__[name]

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return space.call_builtin(tuple_method, args, kwargs)

    return handler


def _infer_size(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch._C._infer_size(a, b)`: the sizes to which both are broadcast."""
    if len(args) != 2 or kwargs or any(arg.force().cls is not torch.Size for arg in args):
        return space.run_known(internals.infer_size, args, kwargs)
    first, second = (space.unpack(arg) for arg in args)
    count = max(len(first), len(second))
    padded = ([*[_ONE] * (count - len(sizes)), *sizes] for sizes in (first, second))
    found = [_common(space, *sizes) for sizes in zip(*padded, strict=True)]
    if None in found:  # it says so, of numbers that are known
        return space.run_known(internals.infer_size, args)
    return new_size(space, found)  # type: ignore[arg-type]


_ONE = Constant(1)


def _common(space: Space, size: Value, other: Value) -> Value | None:
    """The size that both become; None if there is none."""
    if space.truth(space.compare("==", size, other)) or space.truth(space.compare("==", other, _ONE)):
        return size
    return other if space.truth(space.compare("==", size, _ONE)) else None


def install() -> None:
    """Register the models."""
    own = vars(torch.Size)
    register(torch.Size.__new__, _new)
    register(own["numel"], _numel)
    register(internals.infer_size, _infer_size)
    pure(own["__reduce__"])
    register(own["__repr__"], _repr)
    register(own["__add__"], _joined(False))
    register(own["__radd__"], _joined(True))
    for name in ("__getitem__", "__mul__", "__rmul__"):
        register(own[name], _again(name))
    for name in ("__hash__", *COMPARISONS):
        if name in own:  # from CPython 3.14 on
            register(own[name], _as_tuple(name))
            LIKE_TUPLES.get(name, []).append(own[name])
