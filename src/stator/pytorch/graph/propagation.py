"""Fake tensors for what is recorded: most nodes never get any, as their metadata is remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.fake.fake_executor import FakeExecutor
from stator.pytorch.fake.fakes import let_go
from stator.pytorch.fake.memo import MEMO, Memo
from stator.pytorch.fake.metadata import TensorMeta, meta_of
from stator.pytorch.tensors.classes import is_wrapper

if TYPE_CHECKING:
    import torch.fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.pytorch.state.global_state import State
    from stator.pytorch.traced import Shapes, TracedTensor
    from stator.pytorch.types import Descriptions, Fake, FakeOperand

__all__ = ["FakePropagation"]


class FakePropagation:
    """The fake tensors of one trace, which keep aliases and symbols.

    What was recorded with remembered metadata is pending (see `State`): should a fake tensor be asked for, all is run.
    """

    def __init__(self, shapes: Shapes, state: State) -> None:
        self.shapes = shapes
        self.state = state
        self._executor: FakeExecutor | None = None
        self._memo: Memo | None = None

    @property
    def executor(self) -> FakeExecutor:
        """Where operations are run."""
        if self._executor is None:
            self._executor = FakeExecutor(self.shapes.used_env, self.shapes.recorder.examine)
        return self._executor

    def let_go(self) -> None:
        """The trace has ended: no existing tensor is watched any more."""
        if self._executor is not None:
            let_go(self._executor.mode)

    def admit_symbols(self, env: ShapeEnv) -> None:
        """The trace has symbols from now on."""
        if self._executor is not None:
            self._executor.admit(env)

    def memo(self, symbolic: bool) -> Memo:
        """The memory of outcomes for operands of which some, or none, are symbolic."""
        if not symbolic:
            return MEMO
        if self._memo is None:
            self._memo = Memo(self.executor)
        return self._memo

    @property
    def symbolic(self) -> Descriptions:
        """The descriptions that hold symbols of this trace."""
        return self.memo(True).symbolic

    def describe(self, tensor: torch.Tensor) -> TensorMeta | None:
        """The description of a real or fake tensor of this trace."""
        with internals.DisableTorchFunctionSubclass():
            return meta_of(tensor, self.symbolic if internals.has_symbolic_sizes(tensor) else None)

    @staticmethod
    def class_of(fake: torch.Tensor) -> type:
        """The class of what an operation makes: that of a wrapper, or else Tensor."""
        return type(fake) if is_wrapper(type(fake)) else torch.Tensor

    @staticmethod
    def outline(wrapper: torch.Tensor) -> tuple[object, ...]:
        """A wrapper's own metadata."""
        with internals.DisableTorchFunctionSubclass():
            if wrapper.is_nested:
                return ()
            sizes = (*wrapper.shape, *wrapper.stride(), wrapper.storage_offset())
            return wrapper.dim(), *map(str, sizes), wrapper.dtype, wrapper.device, wrapper.requires_grad

    def example(self, value: TracedTensor) -> FakeOperand:
        """A fake tensor to show for a value."""
        meta = getattr(value, "meta", None)
        if value._fake is not None or meta is None:
            return value.fake
        return self.memo(meta.symbolic).example(meta)

    def materialise(self, value: TracedTensor) -> Fake:
        """Make the fake tensor of a value."""
        if value.operation is None:
            value._fake = self.shapes.fakify(value)
        else:
            self.replay()
        return value._fake

    def replay(self) -> None:
        """Run everything recorded so far that has no fake tensors yet."""
        if self.state.pending:
            self.state.replay(self.executor)
