"""Messages between two ranks are performed in the order of the program.

Two messages to one rank are told apart by their order alone, and one that waits before it has sent what the other
waits for waits for ever. So each operation is given the result of the one before: whatever a backend does to a graph,
they are performed in the order of the program. Collectives are given nothing of the kind, and stand in other graphs; so
do messages in the body of an operation, which others around it know nothing of.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from stator import errors
from stator.pytorch.distributed import recipes
from stator.pytorch.distributed.operators import is_message
from stator.pytorch.fake.failure import describe_callable
from stator.space.signals import Restart
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Function
    from stator.space.interfaces import Trace, Writer
    from stator.space.space import Space

__all__ = ["Messages"]

_APART = "messages between two ranks and other communication are not in one graph"


class Messages:
    """Those of a trace, which are one of its recorder's checks."""

    def __init__(self, trace: Trace) -> None:
        self.recorder: Recorder = trace.recorder
        self.recorder.checks.append(self)
        #: the result of the last operation, in a list
        self.after: list[Value] = []

    def perform(self, space: Space, recipe: Function, *args: Value) -> list[Value]:
        """Trace an operation, as what comes after the last one."""
        nodes = self.recorder.nodes
        if nodes.graph is not nodes.whole:
            raise Unsupported(errors.CollectiveCall("torch.distributed", "it is in the body of an operation"))
        if self._others():
            raise Unsupported(errors.CollectiveCall("torch.distributed", _APART))
        made = space.call(space.existing(recipe), [*args, space.new_list(self.after)], {}).force()
        parts = [made] if recipe in (recipes.sent, recipes.arrived) else list(space.unpack(made))
        self.after = parts[:1]
        return parts

    def _others(self) -> list[torch.fx.Node]:
        """What else the graph does that this process alone may not do."""
        return [node for node in self.recorder.effects.acting if not is_message(node.target)]

    # -- as one of the recorder's checks ----------------------------------------------------------------------------

    def confirm(self) -> None:
        """The trace is over: nothing else has come after the messages."""
        others = [self.recorder.nodes.operations[node] for node in self._others()]
        if others:
            first = min(others, key=attrgetter("step"))
            raise Restart(first.step, errors.CollectiveCall(describe_callable(first.function), _APART))

    def expressions(self, writer: Writer) -> list[str]:
        return []
