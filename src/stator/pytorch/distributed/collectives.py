"""The methods of process groups that communicate: traced as their recipes, or left to Python."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.guards.callable_names import function_of
from stator.guards.raw import class_dict
from stator.pytorch import internals
from stator.pytorch.distributed import recipes
from stator.pytorch.distributed.calls import is_left_whole, left_to_python
from stator.pytorch.distributed.operators import operator
from stator.pytorch.distributed.options import OptionsValue
from stator.pytorch.distributed.work import WorkValue
from stator.pytorch.nesting import is_sequence
from stator.pytorch.tensors.calls import function_handler
from stator.pytorch.tensors.tensor import TensorValue
from stator.pytorch.whole_calls import left_whole, public_name
from stator.space.protocol import Handler, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Operator
    from stator.space.space import Space

__all__ = ["install"]


def _collective(name: str, recipe: Function) -> Handler:
    """The model of a method of ProcessGroup."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = [*args, *kwargs.values()] if kwargs.keys() <= {"opts"} else []
        options = given[-1].force() if given else None
        if not isinstance(options, OptionsValue) or len(given) != recipe.__code__.co_argcount:
            raise Unsupported(errors.CollectiveCall(own_name, "it is called without options"))
        if not options.default("timeout"):
            raise Unsupported(errors.CollectiveCall(own_name, "it has a timeout of its own"))
        called, step = _begun(space, own_name)
        with left_whole(None, partial(left_to_python, called)):
            writes = space.call(space.existing(recipe), given, {})
        work = WorkValue(called, writes, step)
        space.trace.recorder.checks.append(work)
        return work

    own_name = f"torch.distributed.ProcessGroup.{name}"
    return handler


def _begun(space: Space, name: str) -> tuple[str, int]:
    """What the program has called to begin the collective, and at which instruction."""
    frame, step = space.trace.frame, space.trace.steps
    while frame.parent is not None and is_left_whole(frame.code):
        name, step = public_name(frame.function.host), frame.begun
        frame = frame.parent
    return name, step


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


def _operate(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    name, *rest = args
    given = [_without_contents(space, arg.force()) for arg in rest]
    return space.call(space.existing(operator(space.known(name))), given, {})


def _direct(host: Operator) -> Handler:
    """The model of an operator that communicates, which the program calls itself."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = [_without_contents(space, arg.force()) for arg in args]
        return record(space, given, {name: _without_contents(space, arg.force()) for name, arg in kwargs.items()})

    record = function_handler(host)
    return handler


def _without_contents(space: Space, value: Value) -> Value:
    """An argument of a collective, whose contents no fake tensor knows."""
    if isinstance(value, TensorValue):
        known = getattr(value.fake, "constant", None) is not None
        return space.call(space.existing(recipes.unknown), [value], {}) if known else value
    if is_sequence(value):
        return space.new_list([_without_contents(space, part.force()) for part in space.unpack(value)])
    return value


def _operators() -> list[Operator]:
    """torch's functional collectives, as packets and by their overloads."""
    names = [name.partition(".")[0].split("::") for name in internals.operator_names()]
    found = [getattr(getattr(torch.ops, space), name) for space, name in names if space.startswith("_c10d_functional")]
    return [host for packet in found for host in (packet, packet.default)]


def _leave(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise Unsupported(errors.CollectiveCall("torch.distributed", space.known(args[0])))


def install() -> None:
    """Register the models."""
    group = class_dict(internals.c10d.ProcessGroup)
    for name, recipe in recipes.METHODS.items():
        if name in group:
            register(function_of(group[name]), _collective(name, recipe))
    register(recipes.operate, _operate)
    register(recipes.leave, _leave)
    for host in _operators():
        register(host, _direct(host))
    for waiting in _waiting():
        register(waiting, _wait_tensor)
