"""What a graph has become, and what is put around the callable that the backend has made of it."""

from __future__ import annotations

import sys
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.forward_ad import exit_dual_level

from stator._core import calls_begun
from stator.pytorch import internals
from stator.pytorch.autograd import sent_again
from stator.pytorch.graph.undo import Recovery, recovery
from stator.pytorch.objects.resizing import Resizes
from stator.pytorch.state import global_state, saved_on_cpu
from stator.pytorch.tensors.classes import is_traceable, overrides_functions
from stator.pytorch.tensors.tensor import tensors_among

if TYPE_CHECKING:
    import torch.fx

    from stator.guards.source import Source
    from stator.pytorch.graph.located import Located
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedValue
    from stator.pytorch.types import Function, Host, Nested
    from stator.space.interfaces import Writer
    from stator.space.value import Value

__all__ = [
    "CompiledGraph",
    "beginning_steps",
    "leaving_state_alone",
    "lending",
    "outline_checkpoints",
    "resizing",
    "take_out_resizes",
    "with_zeros",
    "without_last",
    "without_overrides",
]

#: torch's CUDA graphs, which a backend imports when it first makes one
_CUDA_GRAPHS = "torch._inductor.cudagraph_trees"


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


def take_out_resizes(recorder: Recorder, gm: torch.fx.GraphModule) -> None:
    """Leave to `resizing` what the graph does to storages."""
    recorder.trace.extension(Resizes).take_out(gm)


def resizing(compiled: Function, recorder: Recorder, inputs: list[TracedValue], outputs: list[Value]) -> Function:
    """The compiled graph, and what is done to storages before and after it."""
    return recorder.trace.extension(Resizes).around(compiled, inputs, outputs)


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


def with_zeros(compiled: Function, outputs: list[Value]) -> Function:
    """The compiled graph, some of whose results are wrappers that autograd may never ask a gradient of.

    AOTAutograd takes the backward pass of all results together. For those that nobody has asked of autograd gives its
    node zeros that are plain tensors: then it raises that they are no wrappers.
    """
    followed = [value for value in tensors_among(outputs) if value.requires_grad]
    places = [outputs.index(value) for value in followed if is_traceable(value.cls)]
    if not places or len(followed) < 2:
        return compiled

    def run(*args: object) -> Nested:
        results = compiled(*args)
        zeros: dict[Host, dict[int, Function]] = {}
        for result in [results[place] for place in places]:
            if isinstance(result.grad_fn, internals.FunctionBase):
                zeros.setdefault(result.grad_fn, {})[result.output_nr] = _zeros(result)
        for node, makers in zeros.items():
            for name in _CALLED.intersection(dir(node)):
                setattr(node, name, partial(_apply_wrapped, getattr(type(node), name), weakref.ref(node), makers))
        return results

    return run


#: what autograd calls of a Function's node: with the gradients, or with one list of them
_CALLED = frozenset({"apply", "apply_boxed"})


def _apply_wrapped(apply: Function, node: Function, zeros: dict[int, Function], *gradients: Nested) -> Nested:
    """Call it, with zeros that are wrappers in the places of those that are not."""
    boxed = type(gradients[0]) is list
    given = gradients[0] if boxed else list(gradients)
    for place, make in zeros.items():
        if type(given[place]) is torch.Tensor:
            given[place] = make()
    return apply(node(), given) if boxed else apply(node(), *given)


def _zeros(tensor: Host) -> Function:
    """What makes zeros like a tensor, without holding it; what else a wrapper holds, as offsets, is as it is."""
    if not isinstance(tensor, torch.Tensor) or not (tensor.is_floating_point() or tensor.is_complex()):
        return lambda: tensor
    size, stride = tensor.size(), tensor.stride()
    if not is_traceable(type(tensor)):
        dtype, device = tensor.dtype, tensor.device
        return lambda: torch.empty_strided(size, stride, dtype=dtype, device=device).zero_()
    names, context = tensor.__tensor_flatten__()
    parts = {name: _zeros(getattr(tensor, name)) for name in names}
    unflatten = type(tensor).__tensor_unflatten__
    return lambda: unflatten({name: zeros() for name, zeros in parts.items()}, context, size, stride)


def outline_checkpoints(recorder: Recorder) -> None:
    """Give the checkpoints in the graph what they run again."""
    recorder.trace.extension(sent_again.Checkpoints).outline()


def leaving_state_alone(compiled: Function, recorder: Recorder) -> Function:
    """An exception must not leave the global state as the middle of the graph has made it."""
    if not recorder.effects.state_nodes and not recorder.trace.extension(sent_again.Checkpoints):
        return compiled

    def run(*args: object) -> Nested:
        before, level, nesting = global_state.snapshot(), internals.forward_level(), global_state.autocast_nesting()
        hooks, checkpoints = saved_on_cpu.count(), sent_again.running()
        try:
            return compiled(*args)
        except BaseException:
            sent_again.end_beyond(checkpoints)
            saved_on_cpu.end_beyond(hooks)
            global_state.apply(before)
            global_state.leave_autocast(nesting)
            while internals.forward_level() > level:
                exit_dual_level()
            raise

    return run


class _Steps:
    """How many calls of compiled functions had begun when the last step did."""

    begun = 0


def beginning_steps(compiled: Function) -> Function:
    """The compiled graph, which begins a step of CUDA graphs if it is the first that runs in its call.

    With `mode="reduce-overhead"` Inductor records the kernels of a graph once and replays them, in the same memory each
    time. What an earlier step has given may be overwritten in the next; within one, results of other graphs are kept.
    Where a step begins it learns from a number of torch's tracer, the generation, which grows with each call of a
    compiled function. If it stayed, all calls would be one step, in which nothing is replayed.
    """
    trees: Any = sys.modules.get(_CUDA_GRAPHS)
    return compiled if trees is None else partial(_in_step, compiled, trees.GenerationTracker)


def _in_step(compiled: Function, tracker: Host, /, *inputs: object) -> object:
    begun = calls_begun()
    if begun != _Steps.begun:
        _Steps.begun = begun
        tracker.generation += 1
    return compiled(*inputs)
