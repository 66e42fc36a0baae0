"""What a graph has become, and what is put around the callable that the backend has made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.autograd.forward_ad import exit_dual_level

from stator.pytorch import internals
from stator.pytorch.graph.undo import Recovery, recovery
from stator.pytorch.state import global_state
from stator.pytorch.tensors.classes import overrides_functions
from stator.pytorch.tensors.tensor import tensors_among

if TYPE_CHECKING:
    import torch
    import torch.fx

    from stator.guards.source import Source
    from stator.pytorch.graph.located import Located
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedValue
    from stator.pytorch.types import Function, Nested
    from stator.space.interfaces import Writer

__all__ = ["CompiledGraph", "leaving_state_alone", "lending", "without_last", "without_overrides"]


class CompiledGraph:
    """What a graph has become: `callable(*inputs) -> tuple`, the sources of the inputs, the module, its size.

    `located` tells where in the program an error of the module has come up, if the module itself is run; else None.
    """

    __slots__ = ("callable", "gm", "inputs", "located", "ops")

    def __init__(
        self,
        function: Function,
        inputs: list[Source | tuple[Source, ...]],
        gm: torch.fx.GraphModule,
        ops: int,
        located: Located | None,
    ) -> None:
        self.callable = function
        self.inputs = inputs
        self.gm = gm
        self.ops = ops
        self.located = located

    def recovery(self, recorder: Recorder, writer: Writer, *, checked: bool) -> Recovery | None:
        """What generated code does about a failure of the graph, or of checks of its results."""
        return recovery(recorder, self.located, writer, checked=checked)


def without_overrides(function: Function, inputs: list[TracedValue]) -> Function:
    """The compiled graph, whose operations have been through `__torch_function__` of its inputs already."""
    if not any(overrides_functions(tensor.cls) for tensor in tensors_among(inputs)):
        return function

    def run(*args: object) -> Nested:
        with internals.DisableTorchFunctionSubclass():
            return function(*args)

    return run


def without_last(compiled: Function, count: int) -> Function:
    """The compiled graph without its last results, which nobody has asked for."""

    def run(*args: object) -> Nested:
        return compiled(*args)[:-count]

    return run


def lending(compiled: Function, leaves: list[int], plain: list[int]) -> Function:
    """The compiled graph, for which tensors among its inputs become leaves that gradients go to.

    What they were until then is the input at the same place of `plain`, which does not require gradients.
    """

    def run(*args: torch.Tensor) -> Nested:
        given = list(args)
        for place, before in zip(leaves, plain, strict=True):
            if before >= 0:
                given[before] = args[place].detach()
            args[place].requires_grad_()
        try:
            return compiled(*given)
        except BaseException:
            for place in leaves:
                args[place].requires_grad_(False)
            raise

    return run


def leaving_state_alone(compiled: Function) -> Function:
    """An exception must not leave the global state as the middle of the graph has made it."""

    def run(*args: object) -> Nested:
        before, level, nesting = global_state.snapshot(), internals.forward_level(), global_state.autocast_nesting()
        try:
            return compiled(*args)
        except BaseException:
            global_state.apply(before)
            global_state.leave_autocast(nesting)
            while internals.forward_level() > level:
                exit_dual_level()
            raise

    return run
