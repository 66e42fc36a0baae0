"""What of the program's operations call: hooks on tensors saved for backward, and overrides of tensor classes."""

from __future__ import annotations

from stator.pytorch import internals
from stator.pytorch.state import saved_hooks

__all__ = ["ProgramHooks"]


class ProgramHooks:
    """None of them is called while tracing, on what the tracer computes."""

    #: whether a hook sees each tensor that the graph saves: it may have raised, and is not to see a second execution
    is_watched = staticmethod(saved_hooks.active)

    def __init__(self) -> None:
        self.hooks_wait = saved_hooks.suspend(True)
        #: whether the overrides are on, to be traced
        self.overrides = internals.torch_function_state()
        if self.overrides == internals.TorchFunctionState.ENABLED:
            internals.set_torch_function_state(internals.TorchFunctionState.SUBCLASSES_DISABLED)

    def restore(self) -> None:
        """The trace has ended: they are called again."""
        internals.set_torch_function_state(self.overrides)
        saved_hooks.suspend(self.hooks_wait)
