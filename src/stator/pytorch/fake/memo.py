"""Outcomes of operations, remembered by operation and metadata of the operands.

A miss runs the operation on fake tensors made from the metadata alone, so that identical layers run it once per
process. Where sizes are symbols, the memory is the trace's own, as the symbols are; what is learnt there, the process
remembers but for their names (`renaming.py`). What depends on more than metadata (mutated views, tensors with known
contents) is not remembered.
"""

from __future__ import annotations

import functools
import threading
import types
import weakref
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake import small
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.fake.fake_executor import FakeExecutor
from stator.pytorch.fake.metadata import TensorMeta, meta_of
from stator.pytorch.fake.outcome import HostResult, Outcome, outcome_of, versions_of
from stator.pytorch.fake.renaming import Renaming
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from stator.pytorch.types import Args, Descriptions, FakeOperand, Function, Kwargs, OperandMeta

__all__ = ["MEMO", "Memo"]

#: outcomes that the process remembers at least, when they are those asked for last; never more than twice as many
_GENERATION = 1_000
_DATA_DEPENDENT = (errors.DynamicOutputShape, errors.DataDependentValue)
#: metadata alone does not tell the outcome
_UNKNOWN = Outcome(HostResult(None), (), False, lasting=False)


class Memo:
    """A memory of outcomes: the process's, or that of one trace, which has an executor with symbols."""

    def __init__(self, fake_executor: FakeExecutor | None = None) -> None:
        #: by the id of the function and what it is called with: what was asked for lately, and before that
        self._young: dict[tuple[int, object], Any] = {}
        self._old: dict[tuple[int, object], Any] = {}
        self._fakes: dict[OperandMeta, FakeOperand] = {}
        self._kept: dict[int, Function | None] = {}
        self._fake_executor = fake_executor
        #: a trace's own: a tensor in whose place a number was read remembers the symbol made for it
        self._own = fake_executor is not None
        self._renaming = Renaming(MEMO.recall, MEMO.learn) if self._own else None
        #: descriptions with symbols in them
        self.symbolic: Descriptions = {}
        self._lock = threading.RLock()
        self.hits = 0
        self.misses = 0

    @property
    def fake_executor(self) -> FakeExecutor:
        """Where operations are run on fake tensors."""
        if self._fake_executor is None:
            self._fake_executor = FakeExecutor()
        return self._fake_executor

    def outcome(
        self, function: Function, args: Args, kwargs: Kwargs, key: object, metas: list[OperandMeta], fill: Function
    ) -> Outcome | None:
        """The outcome of the operation, or None where metadata alone does not tell it.

        `fill(template, fakes)` puts fake tensors in the place of the operands.
        """
        found = self.recall(function, key)
        if found is not None:
            self.hits += 1
            return found if found.lasting else None
        with self._lock:
            self.misses += 1
            ask = functools.partial(self._ask, function, args, kwargs, metas, fill)
            env = self.fake_executor.shape_env
            if self._renaming is None or env is None:
                found = ask()
            else:
                found = self._renaming.outcome(env, function, key, metas, self.symbolic, ask)
            self.learn(function, key, found)
        return found if found.lasting else None

    def recall(self, function: Function, key: object) -> Any:
        """What has been learnt of a function under this key, or None."""
        full = (id(function), key)
        return self._young.get(full) or self._recalled(full)

    def learn(self, function: Function, key: object, what: object) -> None:
        """Remember something of a function under this key."""
        with self._lock:
            self._keep(function)
            self._remember((id(function), key), what)

    def _recalled(self, full: tuple[int, object]) -> Any:
        """An outcome that has not been asked for lately."""
        with self._lock:
            found = self._old.pop(full, None)
            if found is not None:
                self._remember(full, found)
        return found

    def _remember(self, full: tuple[int, object], outcome: object) -> None:
        if len(self._young) >= _GENERATION and not self._own:
            self._old, self._young = self._young, {}
        self._young[full] = outcome

    def _keep(self, function: Function) -> None:
        """The id of a function stays its own as long as something is remembered of it."""
        number = id(function)
        if number in self._kept:
            return
        if isinstance(function, types.FunctionType) and not self._own:  # which may come and go
            self._kept[number] = None
            weakref.finalize(function, self._forget, number).atexit = False
        else:
            self._kept[number] = function

    def _forget(self, number: int) -> None:
        with self._lock:
            self._kept.pop(number, None)
            for outcomes in (self._young, self._old):
                for full in [full for full in outcomes if full[0] == number]:
                    del outcomes[full]

    def _ask(self, function: Function, args: Args, kwargs: Kwargs, metas: list[OperandMeta], fill: Function) -> Outcome:
        if not self._own and small.preferable(metas):
            found = self._seen(function, args, kwargs, metas, fill)
            if found is not None:
                return found
        fake_executor = self.fake_executor
        fakes = [self._operand(meta, i, metas) for i, meta in enumerate(metas)]
        before = versions_of(fakes)
        try:
            observed = fake_executor.run(function, args, kwargs, fakes, fill)
        except BaseException as e:
            self._fakes.clear()  # a failed operation may have written half of its results
            if isinstance(e, Unsupported) and isinstance(e.brk, _DATA_DEPENDENT):
                return _UNKNOWN  # symbols may do
            raise
        if fake_executor.forget_new_symbols():
            return _UNKNOWN  # each run makes others
        outcome = outcome_of(observed, fakes, before, describe_callable(function), self.symbolic)
        if outcome.written:
            outcome.lasting = outcome.lasting and self._harmless(outcome, metas, fakes)
            for meta in metas:
                self._fakes.pop(meta, None)
        return outcome

    def _seen(
        self, function: Function, args: Args, kwargs: Kwargs, metas: list[OperandMeta], fill: Function
    ) -> Outcome | None:
        """The outcome on small real tensors; None where fake ones have to tell."""
        with internals.disable_current_modes():
            operands = [small.operand(meta) for meta in metas]
        before = versions_of(operands)
        observed = small.observe(function, fill(args, operands), fill(kwargs, operands))
        if observed is None:
            return None
        outcome = outcome_of(observed, operands, before, describe_callable(function), self.symbolic)
        if outcome.written:
            outcome.lasting = outcome.lasting and self._harmless(outcome, metas, operands)
        return outcome

    def _harmless(self, outcome: Outcome, metas: list[OperandMeta], fakes: list[FakeOperand]) -> bool:
        """A write that changed contents only: no view is involved, and the metadata stayed."""
        needed = any(isinstance(meta, TensorMeta) and meta.requires_grad for meta in metas)
        if needed and any(metas[i].is_view for i in outcome.written):
            return False  # autograd rewrites the history of what it is a view of, or refuses to
        return all(self._stayed(meta, fake) for meta, fake in zip(metas, fakes, strict=True))

    def _stayed(self, meta: OperandMeta, fake: FakeOperand) -> bool:
        """Whether an operand is as it was described, but for being a view, which a fake made of it is not."""
        if not isinstance(meta, TensorMeta):
            return True
        found = meta_of(fake, self.symbolic)
        return found is not None and found.is_like(meta)

    def _operand(self, meta: OperandMeta, position: int, metas: list[OperandMeta]) -> FakeOperand:
        """A fake tensor to compute with, used again where nothing sticks to it; two operands alike get two."""
        if self._own or any(other is meta for other in metas[:position]):
            return self.make(meta)
        return self._shared(meta)

    def _shared(self, meta: OperandMeta) -> FakeOperand:
        found = self._fakes.get(meta)
        if found is None:
            found = self.make(meta)
            if len(self._fakes) > 4096:
                self._fakes.clear()
            self._fakes[meta] = found
        return found

    def example(self, meta: OperandMeta) -> FakeOperand:
        """A fake tensor to show (as a node's example value), never to compute with."""
        with self._lock:
            return self._shared(meta)

    def make(self, meta: OperandMeta) -> FakeOperand:
        """A new fake tensor of this description (except for being a view)."""
        # A backend at work may ask, with its own modes on.
        with internals.disable_current_modes():
            return self.fake_executor.mode.like(meta)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._young.clear()
            self._old.clear()
            self._fakes.clear()


MEMO = Memo()
