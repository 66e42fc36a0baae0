"""Running operations on fake tensors: what they return, what they mutate, and how they fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.failure import Failure, describe_callable, translated, undecided_in
from stator.pytorch.fake.fakes import FakeMode
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.fake.outcome import versions_of
from stator.pytorch.fake.python_kernels import agree, as_numbers, possible_values
from stator.pytorch.fake.quiet import casts_not_kept, warnings_of_torch
from stator.pytorch.fake.views import REPLACED
from stator.pytorch.fake.watcher import OpObservation, Watcher
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch.fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.pytorch.fake.python_kernels import Valued
    from stator.pytorch.types import Args, FakeOperand, Function, Kwargs

__all__ = ["FakeExecutor"]


class FakeExecutor:
    """A fake tensor mode, and the running of operations in it."""

    def __init__(self, shape_env: ShapeEnv | None = None, on_wrapper: Callable[..., None] | None = None) -> None:
        self.shape_env = shape_env
        self.on_wrapper = on_wrapper
        self.mode = FakeMode(shape_env)
        #: what the last operation to fail would have had to know of a number in a tensor, as torch's error says it
        self.undecided: BaseException | None = None
        #: where the sizes of a call are numbers, if there are symbols here
        self._numbers: FakeExecutor | None = None

    def admit(self, shape_env: ShapeEnv | None) -> None:
        """From now on there may be symbols."""
        self.shape_env = shape_env
        self.mode.admit(shape_env)

    def forget_new_symbols(self) -> bool:
        """Whether the last operation has made symbols of numbers it would read from data; they are dropped."""
        pending = None if self.shape_env is None else self.shape_env.pending_fresh_unbacked_symbols
        if not pending:
            return False
        pending.clear()
        return True

    def run(
        self, function: Function, args: Args, kwargs: Kwargs, operands: list[FakeOperand], fill: Function
    ) -> OpObservation:
        """Call a function on fake tensors. Raises Failure for its own errors, Unsupported for what cannot be faked.

        `fill(template, operands)` puts the operands into `args` and `kwargs`.
        """
        call = function, args, kwargs, operands, fill
        self.undecided = None
        by_python = None if self.shape_env is None else self._by_python(*call, hint_of)
        if by_python is not None:
            return by_python
        before = versions_of(operands)
        try:
            return self._observe(function, fill(args, operands), fill(kwargs, operands))
        except (Failure, Unsupported) as e:
            if versions_of(operands) != before:
                raise
            self.undecided = undecided_in(e)
            for value_of in possible_values(operands):
                by_python = self._by_python(*call, value_of)
                if by_python is not None:
                    return by_python
            if self.undecided is None and isinstance(e, Unsupported) and isinstance(e.brk, errors.DataDependentValue):
                observed = self._by_python_only(*call)
                if observed is not None:
                    return observed
            raise

    def _by_python_only(
        self, function: Function, args: Args, kwargs: Kwargs, operands: list[FakeOperand], fill: Function
    ) -> OpObservation | None:
        """The run by torch's kernels in Python, where those in C++ look at an element before they refuse it.

        `istft` checks in C++ that no place is without a window; in Python it computes only sizes. So it may fail when
        the graph runs.
        """
        try:
            observed = self._observe_by_python(function, fill(args, operands), fill(kwargs, operands))
        except (Failure, Unsupported):
            return None
        observed.fallible = True
        return observed

    def run_once(
        self, function: Function, args: Args, kwargs: Kwargs, operands: list[FakeOperand], fill: Function
    ) -> OpObservation:
        """The same for a function that finds other operands, or nothing, where it has been before."""
        self.undecided = None
        observe = self._observe if self.shape_env is None else self._observe_by_python
        return observe(function, fill(args, operands), fill(kwargs, operands))

    def _by_python(
        self,
        function: Function,
        args: Args,
        kwargs: Kwargs,
        operands: list[FakeOperand],
        fill: Function,
        value_of: Valued,
    ) -> OpObservation | None:
        """The run by torch's kernels in Python, if for these values of symbols they do what those in C++ do."""
        if self._numbers is None:
            self._numbers = FakeExecutor()
        numbers = as_numbers(operands, self._numbers.mode, value_of)
        if numbers is None:
            return None
        try:
            expected = self._numbers.run(function, args, kwargs, numbers, fill)
            observed = self._observe_by_python(function, fill(args, operands), fill(kwargs, operands))
        except (Failure, Unsupported) as e:
            self.undecided = undecided_in(e) or self.undecided
            return None
        if not agree(observed, operands, expected, numbers, value_of):
            if observed.written:
                raise Unsupported(errors.UnsupportedMutation(describe_callable(function), "a tensor of symbolic sizes"))
            return None
        observed.fallible |= expected.fallible
        observed.warned = expected.warned
        return observed

    def _observe_by_python(self, function: Function, args: Args, kwargs: Kwargs) -> OpObservation:
        with internals.EnablePythonDispatcher():
            return self._observe(function, args, kwargs)

    def _observe(self, function: Function, args: Args, kwargs: Kwargs) -> OpObservation:
        if any(type(arg) is torch.dtype and arg in _QUANTIZED for arg in (*args, *kwargs.values())):
            name = getattr(function, "__name__", str(function))
            raise Unsupported(errors.UnsupportedTensorOperation(name, "fake tensors cannot be quantised"))
        observed = OpObservation()
        if self.shape_env is not None:
            function = REPLACED.get(function, function)
        try:
            with self.mode, Watcher(observed, self.on_wrapper), casts_not_kept(), warnings_of_torch(observed.warned):
                observed.result = function(*args, **kwargs)
        except Unsupported:
            raise
        except Exception as e:
            raise translated(function, e, observed.warned) from e
        if observed.refused is not None:
            raise Failure(observed.refused, observed.warned)
        if observed.overlap:
            name = describe_callable(function)
            raise Unsupported(errors.UnsupportedMutation(name, "memory that is shared in part"))
        return observed


#: types that fake tensors do not take: what ought to have them has the original's, and is the original
_QUANTIZED = frozenset({torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4})
