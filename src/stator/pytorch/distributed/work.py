"""The handle of a collective that has begun: `work.wait()` may come anywhere in the traced code.

A Work that is not waited for when the graph ends, or that leaves the trace, is one of C++: then the trace is done
again, and ends before the call that has begun the collective.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator import errors
from stator.guards.callable_names import function_of
from stator.guards.raw import class_dict
from stator.pytorch import internals
from stator.pytorch.distributed import recipes
from stator.space.protocol import TRUE, register
from stator.space.signals import Restart
from stator.space.value import ObjectValue, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["WorkValue", "install"]


class WorkValue(ObjectValue):
    """The Work of a collective that is an operation of the graph.

    Args:
        name: of the collective.
        writes: what `recipes.complete` takes.
        step: the instruction by which the program has begun it.
    """

    __slots__ = ("name", "step", "waited", "writes")

    def __init__(self, name: str, writes: Value, step: int) -> None:
        super().__init__(internals.c10d.Work)
        self.name = name
        self.writes = writes
        self.step = step
        self.waited = False

    def wait(self, space: Space) -> None:
        """Write what the collective has made."""
        if not self.waited:
            space.mark_mutated(self)
            self.waited = True
            self.complete(space)

    def complete(self, space: Space) -> None:
        space.call(space.existing(recipes.complete), [self.writes], {})

    def held(self) -> Iterable[Value]:
        return (self.writes,)

    def rebuilt(self, writer: Writer) -> str:
        raise self.left("its handle leaves the graph")

    # -- as one of the recorder's checks ----------------------------------------------------------------------------

    def confirm(self) -> None:
        """The trace is over: it must have been waited for."""
        if not self.waited:
            raise self.left("the graph ends before it is waited for")

    def expressions(self, writer: Writer) -> list[str]:
        return []

    def left(self, why: str) -> Restart:
        return Restart(self.step, errors.CollectiveCall(self.name, why))


def _wait(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    work = args[0].force()
    if not isinstance(work, WorkValue):
        raise Unsupported(errors.CollectiveCall("torch.distributed.Work.wait", "it was begun outside of the graph"))
    if len(args) > 1 or kwargs:
        raise work.left("it is waited for with a timeout")
    work.wait(space)
    return TRUE


def install() -> None:
    """Register the model."""
    register(function_of(class_dict(internals.c10d.Work)["wait"]), _wait)
