"""Tensors that are copies in the graph and the tensors themselves in the program: nobody may tell.

    if t.any():          # captured as an operation (`higher_order/branches.py`)
        h = h * 2        # on the other side it stays what it was; the operation gives a copy of it

Who has both, and writes to one, asks which they are, or keeps them until the graph has run, could. Then the trace is
done again, and ends before the branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stator import errors
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.identity.reachability import visible
from stator.space.signals import Restart

if TYPE_CHECKING:
    from stator.pytorch.traced import TracedTensor
    from stator.space.interfaces import Trace
    from stator.space.value import Value

__all__ = ["Copies", "not_captured"]


def not_captured(why: str) -> errors.Break:
    """The break at a branch on a tensor, with the reason why it is no operation of the graph."""
    return errors.DataDependentBranch(why=f", and is not captured: {why}")


class _Copy(NamedTuple):
    copy: TracedTensor
    of: TracedTensor
    #: before which the trace must end where somebody can tell, and the last one that knows of no copy
    first: int
    last: int


class Copies:
    """The copies of one trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.found: list[_Copy] = []

    def note(self, result: TracedTensor, leaf: TracedTensor, first: int, *, made: bool) -> None:
        """An operation gives `result`, where the program has `leaf`.

        Args:
            first: the step at which it began.
            made: the leaf has been made on the way, by which nobody else has it; but it may be a copy itself.
        """
        roots = [copy.of for copy in self.found if copy.copy is leaf.root]
        if not made:
            roots.append(leaf.root)
        there = visible(self.trace)
        for root in roots:
            # Of what nobody else has, nobody can tell a copy.
            if root.host is not None or any(getattr(value, "root", None) is root for value in there):
                self.found.append(_Copy(result, root, first, self.trace.steps))
                self.trace.recorder.tracked.hidden_copies.add(result)

    def check(self, outputs: list[Value]) -> None:
        """The graph ends with these outputs: could anybody tell?"""
        if not self.found:
            return
        recorder = self.trace.recorder
        given = {value.root for value in tensors_among(outputs)}
        hooked = {hook.tensor.root for hook in recorder.tracked.engine.traced_hooks}
        hooked |= {value.root for value in recorder.tracked.engine.retaining} | recorder.tracked.hooked
        for copy, of, first, last in self.found:
            if copy in given and (of.host is not None or of in given):
                why = "it may leave a tensor as it is, which exists elsewhere and is given on"
            elif self._is_written(copy, last) or self._is_written(of, last):
                why = "it may leave a tensor as it is, which is written to later"
            elif copy in hooked or of in hooked or (copy.requires_grad and recorder.tracked.engine.backward_steps):
                why = "it may leave a tensor as it is, of whose gradients is asked later"
            else:
                continue
            raise Restart(first, not_captured(why))

    def _is_written(self, root: TracedTensor, last: int) -> bool:
        by = self.trace.recorder.effects.rewritten.get(root)
        return by is not None and by.step > last
