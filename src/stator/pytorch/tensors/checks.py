"""Branches of which one side is hardly ever taken: the other is assumed, and that is checked when the graph has run.

`if not valid.all(): raise ValueError(...)` and `assert valid.all()` need not break the graph, nor need `if not
is_valid(x): raise …` where the function returns `bool(valid.all())` (`Trace.truth`). The tensor becomes one more
result of the graph; should it be otherwise, or should the graph fail, random numbers are put back and the whole frame
runs again as ordinary Python, which raises the error the program means. That is sound as long as all that the graph
does can be undone: a trace of which that turns out not to be so, or only by large copies, is made again, with a break
at the branch.

So it is where a side warns, or returns at once what has not passed (`if not valid.all(): return valid`, as constraints
of distributions do). The program may go on from there, and so it counts how often it does (`stator.pytorch.reliance`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.interp.branches import BRANCH_HOOKS
from stator.pytorch.graph.irrevocable import Obstacle, costly, irrevocable, irrevocable_afterwards
from stator.pytorch.rare_sides import leads_to_raise, returned_early, warns
from stator.pytorch.reliance import Reliance, Reliances, is_doubted
from stator.pytorch.shapes.assertions import Assertions, condition_of, not_assumed
from stator.pytorch.shapes.symbols import SymValue
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.signals import Restart
from stator.space.value import Value

if TYPE_CHECKING:
    from stator.errors import Break
    from stator.pytorch.interfaces import Recorder
    from stator.space.interfaces import Frame, Trace, Writer

__all__ = ["Checks", "branch", "install"]

_VERDICTS = (torch.Tensor.all, torch.Tensor.any, torch.all, torch.any)


class Checks:
    """The assumptions of one trace about the contents of tensors."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        #: tensors of one element, the truth values assumed of them, and what counts how often they are others
        self.assumed: list[tuple[Value, bool, Reliance | None]] = []
        self.step = 0
        trace.recorder.checks.append(self)

    def assume(self, value: TensorValue, truth: bool, mostly: str | None = None) -> bool:
        """Take the truth of a tensor for granted; False where that cannot be (see `_assumed`)."""
        recorder: Recorder = self.trace.recorder
        if not self.trace.root.repeatable or recorder.nodes.around or _obstacle(recorder):
            return False  # or what an operation runs once, often or never decides it
        # A copy, for the tensor may be changed later on.
        snapshot = record_method(self.trace.space, "clone", value)
        counted = None if mostly is None else self.trace.extension(Reliances).rely(mostly)
        self.assumed.append((snapshot, truth, counted))
        self.step = self.step or self.trace.steps
        return True

    def confirm(self) -> None:
        """The trace is over: make sure that its graph can be thrown away after the event."""
        obstacle = _obstacle(self.trace.recorder) if self.assumed else None
        if obstacle is not None:
            raise Restart(self.step, not_assumed(obstacle))

    def expressions(self, writer: Writer) -> list[str]:
        """What must be true when the graph has run, as expressions of the generated program."""
        texts = []
        for value, truth, counted in self.assumed:
            text = writer.expr(value) if truth else f"not {writer.expr(value)}"
            texts.append(text if counted is None else f"{writer.const(counted.judged, 'holds')}({text})")
        return texts


def _obstacle(recorder: Recorder) -> Obstacle | None:
    """Why the graph so far could not be thrown away after it has run."""
    return irrevocable_afterwards(recorder) or costly(recorder)


def branch(frame: Frame, value: Value, when_true: int, when_false: int) -> bool | Break | None:
    """Decide a branch on a tensor, or a number in one, if one side of it is hardly ever taken (see BRANCH_HOOKS)."""
    bad_if_true, bad_if_false = leads_to_raise(frame, when_true), leads_to_raise(frame, when_false)
    if bad_if_true != bad_if_false:
        return bad_if_false if _assumed(frame.trace, value, bad_if_false) else _refusal(frame.trace, value)
    rare_if_true, rare_if_false = _is_rare(frame, value, when_true), _is_rare(frame, value, when_false)
    if rare_if_true == rare_if_false:
        return None
    mostly = f"the branch at {frame.code.co_filename}:{frame.line()} goes on"
    if _assumed(frame.trace, value, rare_if_false, mostly):
        return rare_if_false
    return _refusal(frame.trace, value, mostly)


def _is_rare(frame: Frame, value: Value, index: int) -> bool:
    """Whether a side of a branch warns, or returns at once the tensor of which `all` or `any` decides it."""
    if warns(frame, index):
        return True
    result = returned_early(frame, index)
    operation = value.operation if isinstance(value, TensorValue) else None
    if result is None or operation is None or operation.function not in _VERDICTS:
        return False
    return result.force() in operation.operands


def _assumed(trace: Trace, value: Value, truth: bool, mostly: str | None = None) -> bool:
    """Take a truth value for granted; False where that cannot be.

    Args:
        mostly: the assumption as a sentence, where the program need not be wrong if it does not hold.
    """
    if mostly is not None and is_doubted(trace, mostly):
        return False
    if isinstance(value, TensorValue):
        return all(size == 1 for size in value.shape) and trace.extension(Checks).assume(value, truth, mostly)
    condition = condition_of(trace, value)
    if condition is None or not trace.extension(Assertions).assume(condition, truth):
        return False
    if mostly is not None:
        trace.extension(Reliances).rely(mostly)
    return True


def _refusal(trace: Trace, value: Value, mostly: str | None = None) -> Break | None:
    """Why a truth value could not be taken for granted, where that can be said in the program's terms."""
    if mostly is not None and is_doubted(trace, mostly):
        return not_assumed(Obstacle("it has gone the other way too often"))
    if isinstance(value, TensorValue):
        obstacle = _obstacle(trace.recorder)
    else:
        obstacle = irrevocable(trace.recorder) if isinstance(value, SymValue) else None
    return None if obstacle is None else not_assumed(obstacle)


def install() -> None:
    """Register the hook."""
    BRANCH_HOOKS.append(branch)
