"""Messages between two ranks: `send`, `recv`, and those that `isend`, `irecv` and `batch_isend_irecv` begin.

    send = dist.isend(y, 1)      # begun = send(y, [], 1, 0, "0")
    recv = dist.irecv(z, 1)      # next = recv(z, [begun], 1, 0, "0")
    recv.wait()                  # z.data.copy_(arrived(next, [next]))

Each is given the result of the one before (see `in_order`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from stator import errors
from stator.guards.callable_names import function_of
from stator.guards.raw import class_dict
from stator.pytorch import internals
from stator.pytorch.distributed import recipes
from stator.pytorch.distributed.calls import left_to_python
from stator.pytorch.distributed.collectives import begun_by
from stator.pytorch.distributed.in_order import Messages
from stator.pytorch.distributed.work import WorkValue
from stator.pytorch.whole_calls import left_whole
from stator.space.protocol import Handler, register
from stator.space.value import NotKnown, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.space import Space

__all__ = ["install"]


class MessageValue(WorkValue):
    """The Work of a message. `writes` are what has begun, and the tensor that is sent or received."""

    __slots__ = ("completion",)

    def __init__(self, name: str, writes: Value, step: int, completion: Function) -> None:
        super().__init__(name, writes, step)
        self.completion = completion

    def complete(self, space: Space) -> None:
        with left_whole(None, partial(left_to_python, self.name)):
            space.trace.extension(Messages).perform(space, self.completion, *space.unpack(self.writes))


def _message(name: str, recipe: Function, completion: Function) -> Handler:
    """The model of a method of ProcessGroup."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        called, step = begun_by(space, own_name)
        if len(args) != recipe.__code__.co_argcount - 1 or kwargs:
            raise Unsupported(errors.CollectiveCall(called, "it is called by names"))
        if any(space.known(arg.force()) is NotKnown for arg in args[2:]):
            raise Unsupported(errors.CollectiveCall(called, "the rank or the tag varies"))
        with left_whole(None, partial(left_to_python, called)):
            parts = space.trace.extension(Messages).perform(space, recipe, *args)
        work = MessageValue(called, space.new_list(parts), step, completion)
        space.trace.recorder.checks.append(work)
        return work

    own_name = f"torch.distributed.ProcessGroup.{name}"
    return handler


def install() -> None:
    """Register the models."""
    group = class_dict(internals.c10d.ProcessGroup)
    register(function_of(group["send"]), _message("send", recipes.send, recipes.sent))
    register(function_of(group["recv"]), _message("recv", recipes.recv, recipes.arrived))
