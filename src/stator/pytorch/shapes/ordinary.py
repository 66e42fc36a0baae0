"""Sizes in tensors are assumed to be what they mostly are, where the program or an operation asks: not 0, or not 1.

    token = torch.where(index == number)[0]
    if token.numel() == 0: continue

The graph asserts it. Where it is not so the frame runs as ordinary Python, and after a few times the assumption is made
no more (`stator.pytorch.reliance`).
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from stator.bytecode.flow import flow
from stator.pytorch.fake.metadata import expression_of
from stator.pytorch.reliance import Reliances, is_doubted
from stator.pytorch.shapes.assertions import Assertions, condition_of
from stator.pytorch.shapes.symbols import SymValue, compute
from stator.pytorch.shapes.unbacked import symbols_of
from stator.space.protocol import OUTCOME_HOOKS
from stator.space.value import Constant

if TYPE_CHECKING:
    import sympy  # type: ignore[import-untyped]

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Function, Host
    from stator.space.interfaces import Trace
    from stator.space.value import Value

__all__ = ["OrdinarySizes", "install"]

_ASSUMPTION = "sizes in tensors are rarely 0 or 1"
#: sizes for which a condition must be the same to be one about emptiness
_SOME = range(1, 10)


class OrdinarySizes:
    """What one trace assumes of sizes in tensors."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        #: what operations have asked: that no assumption has answered will not be answered by another
        self._asked: set[sympy.Basic] = set()

    def assume(self, condition: Value, truth: bool = True) -> bool:
        """Take the truth of a condition for granted; False where that cannot be."""
        if is_doubted(self.trace, _ASSUMPTION) or not self.trace.extension(Assertions).assume(condition, truth):
            return False
        self.trace.extension(Reliances).rely(_ASSUMPTION)
        return True

    def goes_round(self) -> bool:
        """Whether a `while` or a recursion comes here again: `while order.numel() > 0` would never end in the trace."""
        frames = self.trace.running()
        recursive = len({frame.code for frame in frames}) < len(frames)
        return recursive or any(flow(frame.code).repeats(frame.index - 1) for frame in frames)

    def not_empty(self, condition: Value) -> bool | None:
        """The truth of a condition that asks whether a size in a tensor is 0, if it may be assumed."""
        if not isinstance(condition, SymValue):
            return None
        symbols = symbols_of(condition.number)
        recorder: Recorder = self.trace.recorder
        if self.goes_round():
            return None
        if len(symbols) != 1 or not symbols <= recorder.shapes.env.size_like:
            return None
        (symbol,) = symbols
        expression: Any = expression_of(condition.number)
        truths = {expression.subs(symbol, n) for n in _SOME}
        if len(truths) != 1 or expression.subs(symbol, 0) in truths:
            return None
        truth = bool(truths.pop())
        return truth if self.assume(condition, truth) else None

    def neither_0_nor_1(self, condition: sympy.Basic, operands: list[Value]) -> bool:
        """An operation asks of a size whether it is 0 or 1: take for granted that it is neither; False if it cannot be.

        So `interpolate` asks for the distance of the corners, which a side of one pixel does not have.
        """
        if len(condition.free_symbols) != 1 or condition in self._asked:
            return False
        self._asked.add(condition)
        (symbol,) = condition.free_symbols
        for size in operands:
            if not isinstance(size, SymValue) or size.cls is not int or symbols_of(size.number) != {symbol}:
                continue
            numbers = [n for n in range(2, 10) if expression_of(size.number).subs(symbol, n) > 1]
            if len({condition.subs(symbol, n) for n in numbers}) == 1:
                more = compute(self.trace.space, operator.gt, [size, Constant(1)])
                return more.symbolic and self.assume(more)
        return False


def _not_empty(trace: Trace, function: Function, value: Value, more: tuple[Host, ...]) -> bool | None:
    """Which way a branch goes on whether a size in a tensor is 0 (see protocol.OUTCOME_HOOKS)."""
    condition = condition_of(trace, value) if function is bool else None
    return None if condition is None else trace.extension(OrdinarySizes).not_empty(condition)


def install() -> None:
    """Register the hook."""
    OUTCOME_HOOKS.append(_not_empty)
