"""What must be true of numbers in tensors: assumed by the trace, and checked when the graph runs.

    n = lengths.sum().item()
    torch._check(n < y.shape[0])       # or: assert n < y.shape[0]
    return y.narrow(0, 0, n)

The condition becomes an assertion in the graph, before all that rests on it, and from then on torch's ShapeEnv takes it
for true. Should it not hold, the graph fails, what it did is undone, and the whole frame runs again as ordinary Python,
which raises the error that the program means. So the graph must do nothing that cannot be undone.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.graph.irrevocable import Obstacle, irrevocable
from stator.pytorch.shapes.floats.errors import assert_float_errors
from stator.pytorch.shapes.symbols import SymValue, compute
from stator.pytorch.shapes.unified import assert_contents
from stator.pytorch.tensors.lowering import Call, Operand
from stator.space.signals import Restart
from stator.space.value import Constant

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.interfaces import Recorder
    from stator.space.interfaces import Trace, Writer
    from stator.space.value import Value

__all__ = ["Assertions", "condition_of", "insert_asserts", "not_assumed"]


class Assertions:
    """The conditions of the program's own in one trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        #: the instruction that the first was made for
        self.step = 0
        trace.recorder.checks.append(self)

    def assume(self, condition: Value, truth: bool = True) -> bool:
        """Take the truth of a condition for granted; False where that cannot be."""
        recorder: Recorder = self.trace.recorder
        # What is known is known everywhere; but the body of an operation need not run.
        if recorder.nodes.graph is not recorder.nodes.whole:
            return False
        if not self.trace.root.repeatable or irrevocable(recorder):
            return False
        wanted: Any = condition if truth else compute(self.trace.space, torch.sym_not, [condition])
        call = Call(internals.assert_scalar, "call_function", internals.assert_scalar)
        call.args = (Operand(0), str(wanted.number))
        call.operands, call.metas = [wanted], [wanted.meta]
        recorder.record(call)
        self.step = self.step or self.trace.steps
        return True

    def confirm(self) -> None:
        """The trace is over: make sure that what its graph does can be undone after the event."""
        obstacle = irrevocable(self.trace.recorder) if self.step else None
        if obstacle is not None:
            raise Restart(self.step, not_assumed(obstacle))

    def expressions(self, writer: Writer) -> list[str]:
        """The graph itself checks."""
        return []


def not_assumed(obstacle: Obstacle) -> errors.Break:
    """The break at a branch of which one side is hardly ever taken, with what keeps it from being assumed."""
    form = f"write {obstacle.instead}, which is not in place; or " if obstacle.instead else ""
    return errors.DataDependentBranch(why=f", and is not assumed: {obstacle}").advising(
        f"{form}make the check, or what is in its way, outside"
        " of the compiled function, or switch the check off (that of a distribution: validate_args=False)"
    )


def condition_of(trace: Trace, value: Value) -> Value | None:
    """What decides the truth of a symbolic number; None for any other value."""
    if not isinstance(value, SymValue):
        return None
    found = value if value.cls is bool else compute(trace.space, operator.ne, [value, Constant(0)])
    return found if found.symbolic else None


def insert_asserts(recorder: Recorder, gm: torch.fx.GraphModule) -> None:
    """Put what fake tensors have assumed of numbers into a graph that a backend is to compile.

    `x.narrow(0, 0, n)` is an error where `n` is larger than the dimension. Run as it was recorded, it raises it. A
    backend makes of it a slice, which takes any bounds: an assertion about `n` must tell.
    """
    shapes = recorder.shapes
    if not shapes.begun:
        return
    deferred = bool(shapes.env.deferred_runtime_asserts)
    if deferred:
        from torch.fx.passes.runtime_assert import insert_deferred_runtime_asserts

        insert_deferred_runtime_asserts(gm, shapes.env, "stator")
    contents = assert_contents(gm, shapes.env)
    if (not recorder.keeps_order and assert_float_errors(gm)) or contents or deferred:
        gm.recompile()
