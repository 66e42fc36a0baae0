"""How often inputs count as written after a graph: as often as the program writes them.

A backend that gathers the writes to a tensor performs one or two for them, so that `x._version` would differ from what
it is without Stator: `x.add_(1); x.mul_(2)` makes it greater by 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch import internals
from stator.pytorch.tensors.tensor import tensors_among

if TYPE_CHECKING:
    import torch

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Function, GraphValue, Nested
    from stator.space.value import Value

__all__ = ["counting_writes"]


def counting_writes(compiled: Function, recorder: Recorder, inputs: list[GraphValue], outputs: list[Value]) -> Function:
    """The compiled graph, after which the inputs it writes have the versions the program gives them.

    A graph with a backward pass is left as it is: Inductor keeps a written input itself for that pass (the mean of a
    BatchNorm), and autograd refuses one whose version is not the one it had then.
    """
    written = [index for index, value in enumerate(inputs) if value in recorder.effects.written]
    roots = [inputs[index] for index in written]
    differentiated = any(tensor.requires_grad for tensor in tensors_among((*outputs, *roots)))
    # Tensors made in inference mode count no writes.
    if not written or differentiated or any(root.host.is_inference() for root in roots):
        return compiled
    writes = [sum(counts.get(root, 0) for counts in recorder.effects.writes.values()) for root in roots]

    def run(*args: torch.Tensor) -> Nested:
        tensors = tuple([args[index] for index in written])
        before = [internals.version(tensor) for tensor in tensors]
        results = compiled(*args)
        internals.set_versions(tensors, tuple([first + count for first, count in zip(before, writes)]))
        return results

    return run
