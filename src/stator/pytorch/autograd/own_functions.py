"""torch's own autograd Functions that no trace follows: applied in the graph as they are, as one node.

    dtensor.to_local()      # _ToTorchTensor.apply(dtensor, None), which makes what only C++ can make

Its forward pass takes wrappers apart and puts them together, which fake wrappers let it do; its backward pass is run by
the engine, or taken apart by the backend. What it is given besides tensors is part of the node: constants, and objects
known by identity. It is torch's word that such a Function computes and does nothing else; one that is given a callable
is none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch.fake.failure import Failure
from stator.pytorch.graph.subgraph import record_module
from stator.pytorch.tensors.classes import holds_opaque
from stator.pytorch.tensors.lowering import OPAQUE, Call, Lowering, fill
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Args, Host, Nested
    from stator.space.space import Space

__all__ = ["apply_whole", "takes_whole"]


def takes_whole(cls: type, inputs: list[Value]) -> bool:
    """Whether it is such a Function: torch's, and given wrappers or what only C++ looks into."""
    kinds = {value.cls for value in inputs}
    return cls.__module__.partition(".")[0] == "torch" and any(k in OPAQUE or holds_opaque(k) for k in kinds)


def apply_whole(space: Space, cls: Host, inputs: list[Value]) -> Value:
    """Record `cls.apply(*inputs)`. Raises Unsupported where the inputs cannot be part of a node."""
    lowering = _WithOpaque(space, Call(cls.apply, "call_module", cls.__name__))
    arguments = tuple([lowering.value(value)[0] for value in inputs])
    module = Applied(cls, arguments)
    recorder = space.trace.recorder
    try:
        made = record_module(recorder, cls.__name__, module, lowering.call.operands)
    except Failure as failure:
        why = str(failure.error).partition("\n")[0][:200]
        raise Unsupported(errors.UnsupportedTensorOperation(f"{cls.__qualname__}.apply", why)) from None
    for value in tensors_among([made.force()]):
        if value.root is not value and value.operation is not None:
            recorder.tracked.own_gradients[value] = value.operation  # not those of a view
    return made


class Applied(torch.nn.Module):
    """Applies a Function: the arguments have places for the module's operands."""

    def __init__(self, cls: Host, arguments: Args) -> None:
        super().__init__()
        self.cls = cls
        self.arguments = arguments

    def forward(self, *operands: torch.Tensor) -> Nested:
        return self.cls.apply(*fill(self.arguments, operands))


class _WithOpaque(Lowering):
    """Objects of opaque classes are arguments, too: those that exist outside are known by identity."""

    def value(self, value: Value) -> tuple[Nested, object]:
        value = value.force()
        if value.cls in OPAQUE and value.source is not None and not value.constant:
            self.space.guard_identity(value)
            return value.identity(self.space), None
        return super().value(value)

    def host(self, host: Host) -> tuple[Nested, object]:
        return (host, None) if type(host) in OPAQUE else super().host(host)
