"""Hooks on the tensors that are saved for the backward pass, as checkpoints set them on all that is computed in them.

They are part of the program, and see what it saves, each time it does: not what the tracer computes on fake tensors,
and nothing twice. A checkpoint counts, and ends its second pass by an exception in such a hook.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from stator import errors
from stator.guards.guard import GlobalState
from stator.interp import policy
from stator.pytorch import internals
from stator.pytorch.state import saved_on_cpu
from stator.pytorch.state.last_steps import only_returns
from stator.space.protocol import NONE, register
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stator.space.interfaces import Trace
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["SavedHooks", "active", "are_counted", "checkpoint_at_work", "install", "see_other_tensors", "suspend"]

#: where the hooks of a checkpoint come from: that of its first pass, and of the second
_OF_CHECKPOINTS = "torch.utils.checkpoint", "_checkpoint_hook.__init__.<locals>.pack_hook"
_OF_SECOND_PASSES = "torch.utils.checkpoint", "_recomputation_hook.__init__.<locals>.pack_hook"


class SavedHooks:
    """What the program is in: checkpoints, which set hooks, and transforms of torch.func, which refuse to run so."""

    def __init__(self, trace: Trace) -> None:
        self._inside: list[tuple[str, Sequence[Value]]] = []

    @property
    def inside_any(self) -> bool:
        """Whether the program is in any of them."""
        return bool(self._inside)

    def inside(self, kind: str) -> bool:
        """Whether the program is in a "checkpoint", a "transform", one of "forward mode", which runs so, or "vmap"."""
        return self.depth(kind) > 0

    def depth(self, kind: str) -> int:
        """In how many of them it is."""
        return sum(kind == other for other, _ in self._inside)

    @contextmanager
    def entered(self, kind: str, details: Sequence[Value] = ()) -> Iterator[None]:
        """The program is in one meanwhile."""
        self._inside.append((kind, details))
        try:
            yield
        finally:
            self._inside.pop()

    @contextmanager
    def around_vmap(self) -> Iterator[Sequence[Value]]:
        """The program is in what is around the innermost vmap, of which there are these details."""
        before = self._inside
        at = max(i for i, (kind, _) in enumerate(before) if kind == "vmap")
        self._inside = before[:at]
        try:
            yield before[at][1]
        finally:
            self._inside = before


def suspend(suspended: bool) -> bool:
    """Whether no hook is called on this thread from now on; returns what held before."""
    return bool(internals.suspend_saved_tensors_hooks(suspended))


def active() -> bool:
    """Whether there is a hook that sees what is saved now."""
    return internals.top_saved_tensors_hooks(True) is not None


def checkpoint_at_work() -> str | None:
    """Whether a checkpoint counts what is saved, to find it again by its number when all runs a second time.

    One that a hook of a module's has begun inside of a compiled call runs the module again without the frame hook: what
    a trace of it would save in between has other numbers. A compiled function that the checkpoint itself calls is
    called again with it.
    """
    return "inside of a checkpoint" if _place_of_hook() == _OF_CHECKPOINTS else None


def _place_of_hook() -> tuple[object, object] | None:
    """Where the function comes from that sees what is saved now."""
    hooks = internals.top_saved_tensors_hooks(True)
    return None if hooks is None else (getattr(hooks[0], "__module__", None), getattr(hooks[0], "__qualname__", None))


def may_change_what_is_saved() -> bool:
    """Whether a hook of the program's sees what is saved now; torch's own give back what they are given."""
    place = _place_of_hook()
    return place is not None and str(place[0]).partition(".")[0] != "torch"


def see_other_tensors(trace: Trace) -> bool:
    """Whether hooks of the program's would see what a rewritten graph saves; guarded.

    A backend that rewrites the graph saves other tensors than the program, which shows in gradients where a hook rounds
    them.
    """
    now = may_change_what_is_saved()
    text = f"hooks on saved tensors: {now}"
    trace.guard(GlobalState(may_change_what_is_saved if now else _may_not_change, text))
    return now


def are_counted(trace: Trace) -> bool:
    """Whether a checkpoint counts what the graph saves, or runs it again until it has found all of that; guarded."""
    now = _counts()
    trace.guard(GlobalState(_counts if now else _counts_not, f"a checkpoint counts what is saved: {now}"))
    return now


def _counts() -> bool:
    return _place_of_hook() in (_OF_CHECKPOINTS, _OF_SECOND_PASSES)


def _counts_not() -> bool:
    return not _counts()


def _may_not_change() -> bool:
    return internals.top_saved_tensors_hooks(True) is None or not may_change_what_is_saved()


def _refusal() -> errors.Break:
    why = "its hooks see what is saved when the graph runs"
    return errors.UnsupportedTensorOperation("torch.autograd.graph.saved_tensors_hooks", why)


def _push(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Hooks for what is saved from now on: an error where the program has said that there are to be none."""
    space.trace.recorder.state.rely(("saved hooks",))
    message = internals.why_no_saved_hooks()
    if message is not None:
        raise space.error(RuntimeError, message)
    on_cpu = None if space.trace.extension(SavedHooks).inside_any else saved_on_cpu.options_of(space, args)
    if kwargs or on_cpu is None or not saved_on_cpu.set_hooks(space, on_cpu, _refusal()):
        raise Unsupported(_refusal())
    return NONE


def _pop(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The end of hooks that ordinary Python has set before the trace, if it is the last thing that the program does.

    These hooks see what the graph saves, and may do anything then: so the graph must have run before the program goes
    on. Where it only returns, they may as well end when the graph has run.
    """
    if not args and not kwargs and saved_on_cpu.end(space):
        return NONE
    if args or kwargs or not only_returns(space.trace):
        raise Unsupported(_refusal())
    space.trace.defer(internals.pop_saved_tensors_hooks, [])
    return NONE


def install() -> None:
    """Register the models, and tell the policy of the frame hook."""
    register(internals.push_saved_tensors_hooks, _push)
    register(internals.pop_saved_tensors_hooks, _pop)
    policy.BEGUN_INSIDE.append(checkpoint_at_work)
