"""Storages that the program gives another size: `tensor.untyped_storage().resize_(n)`.

Code that shards parameters frees the memory of tensors so, and gives it back before they are used again:

    p.untyped_storage().resize_(p.numel() * p.itemsize)
    p.copy_(gathered)
    y = x @ p
    p.untyped_storage().resize_(0)

No backend that rewrites graphs keeps these in their places, and none could be taken back if the graph failed later on.
So what comes before all uses of the tensor is done before the graph runs, and what comes after all of them when it has
run; where it comes between two, the graph ends before it. A graph that fails leaves the storages as they were. Until
the trace is over each has a node, so that what fake tensors say of the storage is so.

A tensor whose storage has become too small is not read or written: eager execution crashes there, and it is
what does so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.outcome import ArgumentResult, TensorResult
from stator.pytorch.tensors.latent import told_by_guard
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.signals import Restart
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch.fx

    from stator.pytorch.fake.outcome import Outcome
    from stator.pytorch.tensors.lowering import Call
    from stator.pytorch.traced import TracedTensor, TracedValue
    from stator.pytorch.types import Function, Nested
    from stator.space.interfaces import Trace
    from stator.space.value import Value

__all__ = ["Resizes", "bytes_needed", "is_short"]

#: a size that is a symbol: that of the tensor's elements
_OF_ELEMENTS = -1


class Resizes:
    """The storages that one trace gives other sizes, by the tensors that they are of."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.nodes: dict[TracedTensor, list[torch.fx.Node]] = {}
        #: how large each is now
        self.sizes: dict[TracedTensor, Value] = {}
        #: those that are too small for their tensors now, and those that were so before the graph
        self.short: set[TracedTensor] = set()
        self.short_before: set[TracedTensor] = set()
        #: what is done before the graph runs, and what after it
        self.first: dict[TracedTensor, int] = {}
        self.last: dict[TracedTensor, int] = {}

    def __bool__(self) -> bool:
        return bool(self.sizes)

    def note(self, tensor: TracedTensor, size: Value, short: bool) -> None:
        """The last node of the graph has given the storage this size."""
        self.nodes.setdefault(tensor, []).append(next(reversed(self.trace.recorder.nodes.operations)))
        self.sizes[tensor] = size
        (self.short.add if short else self.short.discard)(tensor)

    def refuse_short(self, call: Call, outcome: Outcome) -> None:
        """No operation reads or writes where there is no memory; one that makes a view does neither."""
        if call.function is internals.resize_storage or _is_view(outcome) or told_by_guard(call.function):
            return
        if any(tensor.root in self.short for tensor in tensors_among(call.operands)):
            name = getattr(call.function, "__name__", str(call.function))
            raise Unsupported(errors.UnsupportedTensorOperation(name, "the storage of an operand has been freed"))

    def plan(self, outputs: list[Value]) -> None:
        """The trace is over: find the place of what is done to each storage."""
        if not self:
            return
        recorder = self.trace.recorder
        order = {node: place for place, node in enumerate(recorder.nodes.graph.nodes)}
        uses = self._uses(order)
        leaving = {tensor.root for tensor in tensors_among(outputs)}
        for tensor, nodes in list(self.nodes.items()):
            if tensor.source is None and tensor not in leaving:
                self._drop(tensor)  # nobody sees that it has other memory, or none any more
                continue
            places = uses.get(tensor, [])
            after = [node for node in nodes if not places or order[node] > places[-1]]
            before = [node for node in nodes if places and order[node] < places[0]]
            if len(before) + len(after) < len(nodes):
                between = next(node for node in nodes if node not in before and node not in after)
                raise Restart(recorder.nodes.operations[between].step, _between())
            for done, table in ((before, self.first), (after, self.last)):
                if done:
                    size: object = done[-1].args[1]
                    table[tensor] = size if type(size) is int else _OF_ELEMENTS

    def _uses(self, order: dict[torch.fx.Node, int]) -> dict[TracedTensor, list[int]]:
        """Where in the graph the elements of the tensors with resized storages, or of views of them, are used."""
        found: dict[TracedTensor, list[int]] = {}
        for node, place in order.items():
            operation = self.trace.recorder.nodes.operations.get(node)
            if operation is None or operation.function is internals.resize_storage or told_by_guard(operation.function):
                continue
            made = operation.made_values
            if made and all(value.root is not value for value in made) and not operation.effectful:
                continue  # views
            roots = {tensor.root for tensor in tensors_among((*operation.operands, *made))}
            for root in self.nodes.keys() & roots:
                found.setdefault(root, []).append(place)
        return found

    def take_out(self, gm: torch.fx.GraphModule) -> None:
        """The inputs of the graph are known: its nodes for what is done before and after it go."""
        if not self.nodes:
            return
        for tensor in list(self.nodes):
            self._drop(tensor)
        gm.recompile()

    def _drop(self, tensor: TracedTensor) -> None:
        for node in self.nodes.pop(tensor):
            node.graph.erase_node(node)
            self.trace.recorder.effects.drop(node)

    def around(self, compiled: Function, inputs: list[TracedValue], outputs: list[Value]) -> Function:
        """The compiled graph, and what is done to storages before and after it."""
        if not self.first and not self.last:
            return compiled
        first = [(inputs.index(tensor), size) for tensor, size in self.first.items() if tensor.source is not None]
        last = [(inputs.index(tensor), size) for tensor, size in self.last.items() if tensor.source is not None]
        roots = [getattr(value, "root", None) for value in outputs]
        made = [(roots.index(tensor), size) for tensor, size in self.last.items() if tensor.source is None]

        def run(*args: torch.Tensor) -> Nested:
            sizes = [(place, args[place].untyped_storage().nbytes()) for place, _ in first]
            # Tensors made in inference mode count no writes.
            counted = tuple([args[place] for place, _ in first if not args[place].is_inference()])
            versions = tuple([internals.version(tensor) for tensor in counted])
            _resize(args, first)
            try:
                results = compiled(*args)
            except BaseException:
                _resize(args, sizes)
                internals.set_versions(counted, versions)
                raise
            _resize(args, last)
            _resize(results, made)
            return results

        return run


def _between() -> errors.Break:
    why = "it comes between operations on the tensor"
    return errors.UnsupportedTensorOperation("UntypedStorage.resize_", why)


def _is_view(outcome: Outcome) -> bool:
    result = outcome.result
    shared = isinstance(result, ArgumentResult) or (isinstance(result, TensorResult) and result.alias is not None)
    return shared and not outcome.written


def is_short(tensor: torch.Tensor) -> bool:
    """Whether the storage of an existing tensor ends before its elements do."""
    with internals.DisableTorchFunctionSubclass():
        return bytes_needed(tensor) > tensor.untyped_storage().nbytes()


def bytes_needed(tensor: torch.Tensor) -> Any:
    """How large the storage of a tensor must be."""
    if any(n == 0 for n in tensor.shape):
        return 0
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return (tensor.storage_offset() + span) * tensor.dtype.itemsize


def _resize(tensors: Sequence[torch.Tensor], sizes: list[tuple[int, int]]) -> None:
    for place, size in sizes:
        tensor = tensors[place]
        wanted = tensor.numel() * tensor.element_size() if size == _OF_ELEMENTS else size
        tensor.untyped_storage().resize_(wanted)
