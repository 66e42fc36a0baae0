"""torch's functional collectives, which the program, or torch's own Python, calls as operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.distributed import recipes
from stator.pytorch.nesting import is_sequence
from stator.pytorch.tensors.calls import function_handler
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import Handler, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space

__all__ = ["install", "without_contents"]


def _wait_tensor(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`wait_tensor(x)`, which gives `x` itself to who calls it, and another tensor to a graph.

    So it is left to Python where the program would see the difference; and what has been waited for is not again.
    """
    tensor = args[0].force() if args else None
    if not isinstance(tensor, TensorValue):
        return None
    if tensor.root.host is not None:
        raise Unsupported(errors.CollectiveCall("wait_tensor", "the tensor existed before the graph"))
    waited = tensor.operation is not None and tensor.operation.function in _waiting()
    return tensor if waited and not tensor.requires_grad else None


def _waiting() -> tuple[Operator, Operator]:
    packet = internals.collective_operators.wait_tensor
    return packet, packet.default


def _direct(host: Operator) -> Handler:
    """The model of an operator that communicates, which the program calls itself."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = [without_contents(space, arg.force()) for arg in args]
        return record(space, given, {name: without_contents(space, arg.force()) for name, arg in kwargs.items()})

    record = function_handler(host)
    return handler


def without_contents(space: Space, value: Value) -> Value:
    """An argument of a collective, whose contents no fake tensor knows."""
    if isinstance(value, TensorValue):
        known = getattr(value.fake, "constant", None) is not None
        return space.call(space.existing(recipes.unknown), [value], {}) if known else value
    if is_sequence(value):
        return space.new_list([without_contents(space, part.force()) for part in space.unpack(value)])
    return value


def _operators() -> list[Operator]:
    """torch's functional collectives, as packets and by their overloads."""
    names = [name.partition(".")[0].split("::") for name in internals.operator_names()]
    found = [getattr(getattr(torch.ops, space), name) for space, name in names if space.startswith("_c10d_functional")]
    return [host for packet in found for host in (packet, packet.default)]


def install() -> None:
    """Register the models."""
    for host in _operators():
        register(host, _direct(host))
    for waiting in _waiting():
        register(waiting, _wait_tensor)
