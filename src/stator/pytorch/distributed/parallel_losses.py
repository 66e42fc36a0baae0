"""`loss_parallel()`: for a while, losses of distributed tensors are computed by functions that torch has for it.

    with loss_parallel():
        loss = F.cross_entropy(logits, targets)
        loss.backward()

What the context does to the table of handlers is a change of the global state, in the graph as where it is traced. That
is so as long as the handlers are torch's own: those of the program's may do more than compute, and are left to Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch import internals
from stator.pytorch.state.switches import HANDLERS
from stator.space.protocol import NONE, Handler, register

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.space import Space
    from stator.space.value import Value


def _switching(function: Function, to: bool) -> Handler:
    """The model of one of the functions by which the context changes the table."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        of_losses, state = internals.loss_handlers(), space.trace.recorder.state
        table = internals.tensor_handlers(internals.tensor_dispatcher)
        state.rely((HANDLERS,))  # which also tells what `of_losses` has
        own = all(handler.__globals__ is function.__globals__ for handler in of_losses.values())
        changed = [host for host in space.trace.effects.changed_hosts() if host is table or host is of_losses]
        if args or kwargs or not own or changed or any((name in table) is to for name in of_losses):
            return None
        state.change(function, [])
        return NONE

    return handler


register(internals.enable_parallel_losses, _switching(internals.enable_parallel_losses, True))
register(internals.disable_parallel_losses, _switching(internals.disable_parallel_losses, False))
