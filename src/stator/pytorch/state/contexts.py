"""Context managers written in C whose state a break must carry over: inference mode, disabled overrides.

An open one is entered for real while tracing where that matters, left at the end of the graph, and entered again by
generated code after the graph, on the object that the continuation will leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.state.last_steps import only_returns
from stator.pytorch.tensors.subclass import FunctionState
from stator.space.protocol import FALSE, NONE, models, register
from stator.space.signals import Restart
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch.fx

    from stator.guards.source import Source
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.state.switches import Calls
    from stator.pytorch.traced import TracedTensor
    from stator.pytorch.types import Host
    from stator.space.interfaces import Trace, Writer
    from stator.space.space import Space

__all__ = ["InferenceContext", "OpenContext", "install"]


class OpenContext(Value):
    """A context manager object that the traced program has made."""

    __slots__ = ()

    def made(self, writer: Writer) -> str:
        """The expression that makes the object, not yet entered."""
        return f"{writer.const(self.cls)}()"

    def reconstruct(self, writer: Writer) -> str:
        return writer.assign("context", self.made(writer))

    def enter(self, space: Space) -> None:
        """The program enters it."""
        space.trace.mutation_count += 1
        space.trace.recorder.state.open.append(self)

    def leave(self, space: Space) -> None:
        """The program leaves it."""
        space.trace.mutation_count += 1
        space.trace.recorder.state.open.remove(self)

    def leave_for_real(self) -> None:
        """Undo what entering it did to the tracing process."""

    def leaving(self) -> Calls:
        """The call that leaves it inside the graph."""
        return []


@models(internals.DisableTorchFunctionSubclass)
class OverridesDisabled(OpenContext):
    """`torch._C.DisableTorchFunctionSubclass()`."""

    __slots__ = ("before",)
    of: ClassVar[type] = internals.DisableTorchFunctionSubclass

    def __init__(self) -> None:
        self.cls = self.of
        self.source = None
        self.before = True

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        # Leaving one that was entered before the trace is for the real object to do.
        raise Unsupported(errors.OpaqueResult(f"torch._C.{cls.of.__name__}"))

    @staticmethod
    def tp_new(space: Space, cls: Value) -> Value:
        return OverridesDisabled()

    def tp_enter(self, space: Space) -> Value:
        self.enter(space)
        state = space.trace.extension(FunctionState)
        self.before, state.enabled = state.enabled, False
        return NONE

    def tp_exit(self, space: Space, *exc: Value) -> Value:
        self.leave(space)
        space.trace.extension(FunctionState).enabled = self.before
        return FALSE


@models(internals.DisableTorchFunction)
class AllDisabled(OverridesDisabled):
    """`torch._C.DisableTorchFunction()`: modes are not asked either."""

    __slots__ = ("modes_before",)
    of = internals.DisableTorchFunction

    def __init__(self) -> None:
        super().__init__()
        self.modes_before = False

    @staticmethod
    def tp_new(space: Space, cls: Value) -> Value:
        return AllDisabled()

    def tp_enter(self, space: Space) -> Value:
        modes = space.trace.recorder.state.modes
        self.modes_before, modes.off = modes.off, True
        return super().tp_enter(space)

    def tp_exit(self, space: Space, *exc: Value) -> Value:
        space.trace.recorder.state.modes.off = self.modes_before
        return super().tp_exit(space, *exc)


class InferenceContext(OpenContext):
    """The C object inside `torch.inference_mode`, entered."""

    __slots__ = ("mode", "node", "real")

    def __init__(self, mode: bool, real: Host, node: torch.fx.Node) -> None:
        self.cls = internals.InferenceMode
        self.source = None
        self.mode = mode
        self.real = real
        self.node = node

    def made(self, writer: Writer) -> str:
        return f"{writer.const(self.cls)}({self.mode})"

    def leave_for_real(self) -> None:
        self.real.__exit__(None, None, None)

    def leaving(self) -> Calls:
        return [(internals.exit_inference_mode, (self.node,))]


class ViewsInInference:
    """Views that are made in inference mode of what was made outside of it: AOTAutograd takes no graph of both.

    The mode begins in front of the graph then; where there may be but one graph, it runs in the program's order.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        #: the instruction that first enters inference mode
        self.step = trace.steps
        trace.recorder.checks.append(self)

    def confirm(self) -> None:
        """The trace is over: make it again if there is such a view."""
        recorder: Recorder = self.trace.recorder
        if recorder.keeps_order or not any(map(_is_from_outside, _made_in_inference(recorder))):
            return
        if self.trace.compile_region.fullgraph:
            recorder.tracked.in_order = True
            return
        why = "AOTAutograd makes no views in it of tensors from outside"
        raise Restart(self.step, errors.UnsupportedTensorOperation("torch.inference_mode", why))

    def expressions(self, writer: Writer) -> list[str]:
        """The results of the graph have nothing to do with it."""
        return []


def _made_in_inference(recorder: Recorder) -> Iterator[TracedTensor]:
    for operation in recorder.nodes.operations.values():
        if recorder.state.infers(operation.state):
            yield from operation.made_values


def _is_from_outside(value: TracedTensor) -> bool:
    """Whether it is a view of what was made outside of inference mode."""
    root = value.root
    if root is value:
        return False
    if root.operation is not None:
        return not value.recorder.state.infers(root.operation.state)
    return root.host is None or not root.host.is_inference()


def _enter_inference(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`torch.inference_mode.__enter__`."""
    mode = space.known(space.getattr(args[0], "mode").force())
    if not isinstance(mode, bool):
        return None
    recorder = space.trace.recorder
    if mode:
        space.trace.extension(ViewsInInference)
    recorder.fakes.replay()
    real = internals.InferenceMode(mode)
    real.__enter__()
    context = InferenceContext(mode, real, recorder.state.add_node(internals.enter_inference_mode, (mode,)))
    context.enter(space)
    recorder.state.note()
    space.setattr(args[0], "_inference_mode_context", context)
    return NONE


def _leave_inference(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`torch.inference_mode.__exit__`."""
    context = space.getattr(args[0], "_inference_mode_context").force()
    if not isinstance(context, InferenceContext):
        return _leave_at_last(space, context, args[1:])
    recorder = space.trace.recorder
    recorder.fakes.replay()
    context.leave(space)
    context.leave_for_real()
    recorder.state.add_node(internals.exit_inference_mode, (context.node,))
    recorder.state.note()
    return NONE


def _leave_at_last(space: Space, context: Value, exc: list[Value]) -> Value | None:
    """The end of inference mode that was entered before the trace, where nothing is computed after it."""
    if context.cls is not internals.InferenceMode or context.source is None:
        return None
    if not only_returns(space.trace):
        why = "a graph break in the block has entered the mode before this graph"
        brk = errors.UnsupportedTensorOperation("the end of torch.inference_mode", why)
        raise Unsupported(brk.advising("take what breaks the graph out of the block"))
    space.trace.defer(_leave, [context, *exc])
    return NONE


def _leave(context: Host, *exc: object) -> None:
    context.__exit__(*exc)


def install() -> None:
    """Register the models."""
    register(torch.inference_mode.__enter__, _enter_inference)
    register(torch.inference_mode.__exit__, _leave_inference)
    register(internals.group_by_device_and_dtype, _group_tensors)


def _group_tensors(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """Lists of tensors, split up by the device and dtype of those of the first list, in order of first appearance."""
    values = [*args, *kwargs.values()]
    lists = [space.unpack(item) for item in space.unpack(values[0])]
    indexed = len(values) == 2 and space.truth(values[1])
    groups: dict[tuple[object, object], list[list[Value]]] = {}
    for i, first in enumerate(lists[0]):
        tensor: torch.Tensor = first.force()
        key = (tensor.device, tensor.dtype)
        group = groups.setdefault(key, [[] for _ in range(len(lists) + 1)])
        for part, items in zip(group, lists):
            if items:
                part.append(items[i])
        group[-1].append(Constant(i))
    pairs = []
    for (device, dtype), group in groups.items():
        parts = space.new_list([space.new_list(part) for part in group[:-1]])
        indices = space.new_list(group[-1] if indexed else [])
        pairs.append((space.new_tuple([space.fresh(device), space.fresh(dtype)]), space.new_tuple([parts, indices])))
    return space.new_dict(pairs)
