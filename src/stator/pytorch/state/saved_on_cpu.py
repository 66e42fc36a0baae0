"""`save_on_cpu` entered inside: what is saved for the backward pass lies on the CPU meanwhile, without a break.

    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        x = self.block(x)          # a part of the graph that is compiled by itself, and runs under the hooks

Its hooks are torch's own. They do nothing but copy, so that nobody sees when they run. The graph has a call where they
are set and one where they end, between which it is cut in pieces (see `backend_call.pieces`): what a backend makes of a
piece saves its tensors when the piece has run. A graph that cannot be cut there runs in the program's order.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.graph import save_on_cpu

from stator.models.functions.function import FunctionValue
from stator.pytorch import internals
from stator.pytorch.state.within_graph import WithinGraph
from stator.space.operands import known_host
from stator.space.value import Value

if TYPE_CHECKING:
    import torch.fx

    from stator.errors import Break
    from stator.space.space import Space

__all__ = ["SavedOnCPU", "count", "end", "end_beyond", "is_boundary", "options_of", "set_hooks"]

_MADE = save_on_cpu()
_HOOKS: list[Any] = [_MADE.pack_hook, _MADE.unpack_hook]


class _Set(threading.local):
    """How many hooks graphs and their traces have set on this thread, and not ended."""

    count = 0


_set = _Set()


def enter_save_on_cpu(pin_memory: bool, device_type: str) -> None:
    """The call in a graph that sets the hooks; the options are those of `torch.autograd.graph.save_on_cpu`."""
    save_on_cpu(pin_memory, device_type).__enter__()
    _set.count += 1


def exit_save_on_cpu() -> None:
    """The call in a graph that ends the hooks set last."""
    internals.pop_saved_tensors_hooks()
    _set.count -= 1


def count() -> int:
    """How many of them are set."""
    return _set.count


def end_beyond(before: int) -> None:
    """A graph has failed: end those that it had set."""
    while _set.count > before:
        exit_save_on_cpu()


def is_boundary(node: torch.fx.Node) -> bool:
    """Whether a node of a graph is a call that sets the hooks, or ends them."""
    return node.target is enter_save_on_cpu or node.target is exit_save_on_cpu


class SavedOnCPU(WithinGraph):
    """A block that the traced program has entered."""


def options_of(space: Space, hooks: list[Value]) -> tuple[bool, str] | None:
    """What `save_on_cpu` was made with, if these are its hooks; guarded."""
    known: dict[str, Any] = {}
    for hook, own in zip(hooks, _HOOKS, strict=True):
        function = _of_code(space, hook.force(), own)
        if function is None:
            return None
        for name, cell in zip(function.code.co_freevars, function.cells(space), strict=True):
            value = known_host(space, cell.filled(space), "torch.autograd.graph.save_on_cpu")
            if known.setdefault(name, value) is not value:
                return None  # hooks of two
    device = known["device_module"].__name__.rpartition(".")[2]
    return (known["pin_memory"], device) if getattr(torch, device, None) is known["device_module"] else None


def _of_code(space: Space, hook: Value, own: Any) -> FunctionValue | None:
    """A function if it runs the code of this one; guarded."""
    if not isinstance(hook, FunctionValue):
        return None
    if hook.host is not None:
        hook.guard_code(space)
    return hook if hook.code is own.__code__ and hook.globals is own.__globals__ else None


def set_hooks(space: Space, options: tuple[bool, str], refusal: Break) -> bool:
    """The program sets the hooks; False where the graph is not the one that the program runs.

    They are set while tracing too, where none is called: torch refuses transforms, say, where there are any.
    """
    if not SavedOnCPU.may_be_entered(space.trace):
        return False
    SavedOnCPU(space.trace, refusal, exit_save_on_cpu).enter(enter_save_on_cpu, options)
    return True


def end(space: Space) -> bool:
    """The program ends the hooks set last; False where it did not set them."""
    entered = space.trace.recorder.state.open
    if not entered or not isinstance(entered[-1], SavedOnCPU):
        return False
    entered[-1].leave()
    return True
