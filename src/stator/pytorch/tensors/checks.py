"""Branches of which one side only raises: the other is assumed, and the assumption checked when the graph has run.

`if not valid.all(): raise ValueError(...)` and `assert valid.all()` need not break the graph, nor need `if not
is_valid(x): raise …` where the function returns `bool(valid.all())` (`Trace.truth`). The tensor becomes one more
result of the graph; should it be otherwise, or should the graph fail, random numbers are put back and the whole frame
runs again as ordinary Python, which raises the error the program means. That is sound as long as all that the graph
does can be undone: a trace of which that turns out not to be so, or only by large copies, is made again, with a break
at the branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.interp.branches import BRANCH_HOOKS, leads_to_raise
from stator.pytorch import internals
from stator.pytorch.graph.undo import undone_for_certain, within_limit
from stator.pytorch.shapes.assertions import Assertions, condition_of
from stator.pytorch.tensors.calls import function_handler
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import Handler, register
from stator.space.signals import Restart
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Function, Host
    from stator.space.interfaces import Frame, Trace, Writer
    from stator.space.space import Space

__all__ = ["Checks", "branch", "install"]


class Checks:
    """The assumptions of one trace about the contents of tensors."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        #: tensors of one element, and the truth values assumed of them
        self.assumed: list[tuple[Value, bool]] = []
        self.step = 0
        trace.recorder.checks.append(self)

    def assume(self, value: TensorValue, truth: bool) -> bool:
        """Take the truth of a tensor for granted; False where that cannot be."""
        recorder: Recorder = self.trace.recorder
        if not self.trace.root.repeatable or recorder.nodes.around or not _is_undone(recorder):
            return False  # or what an operation runs once, often or never decides it
        # A copy, for the tensor may be changed later on.
        snapshot = record_method(self.trace.space, "clone", value)
        self.assumed.append((snapshot, truth))
        self.step = self.step or self.trace.steps
        return True

    def confirm(self) -> None:
        """The trace is over: make sure that its graph can be thrown away after the event."""
        if self.assumed and not _is_undone(self.trace.recorder):
            raise Restart(self.step, errors.DataDependentBranch())

    def expressions(self, writer: Writer) -> list[str]:
        """What must be true when the graph has run, as expressions of the generated program."""
        return [writer.expr(value) if truth else f"not {writer.expr(value)}" for value, truth in self.assumed]


def _is_undone(recorder: Recorder) -> bool:
    return undone_for_certain(recorder) and within_limit(recorder)


def branch(frame: Frame, value: Value, when_true: int, when_false: int) -> bool | None:
    """Decide a branch on a tensor, or a number in one, if one side of it raises (see branches.BRANCH_HOOKS)."""
    bad_if_true, bad_if_false = leads_to_raise(frame, when_true), leads_to_raise(frame, when_false)
    if bad_if_true == bad_if_false:
        return None
    return bad_if_false if _assumed(frame.trace, value, bad_if_false) else None


def _assumed(trace: Trace, value: Value, truth: bool) -> bool:
    if isinstance(value, TensorValue):
        return all(size == 1 for size in value.shape) and trace.extension(Checks).assume(value, truth)
    condition = condition_of(trace, value)
    return condition is not None and trace.extension(Assertions).assume(condition, truth)


def _reduction(host: Host, method: Function) -> Handler:
    """`torch._is_all_true(x)` is `x.all()`, which unlike it can be run on fake tensors of symbolic sizes."""
    otherwise = function_handler(host)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) == 1 and not kwargs:
            tensor = args[0].force()
            if isinstance(tensor, TensorValue) and tensor.dtype is torch.bool:
                return space.call_builtin(method, [tensor], {})
        return otherwise(space, args, kwargs)

    return handler


def _asserting(host: Host) -> Handler:
    """An assertion about a tensor: AOTAutograd drops one that has no message."""
    otherwise, told = function_handler(host), function_handler(internals.assert_async_msg)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) + len(kwargs) == 1 and not space.trace.recorder.keeps_order:
            return told(space, [*args, *kwargs.values(), Constant("the condition does not hold")], {})
        return otherwise(space, args, kwargs)

    return handler


def install() -> None:
    """Register the hook, the operators that torch.distributions checks its arguments with, and assertions."""
    BRANCH_HOOKS.append(branch)
    register(internals.is_all_true, _reduction(internals.is_all_true, torch.Tensor.all))
    register(internals.is_any_true, _reduction(internals.is_any_true, torch.Tensor.any))
    for host in (internals.assert_async, internals.assert_async_op, internals.assert_async_op.default):
        register(host, _asserting(host))
