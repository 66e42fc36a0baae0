"""torch's own autograd Functions that no trace follows: applied in the graph as they are, as one node.

    dtensor.to_local()      # _ToTorchTensor.apply(dtensor, None), which makes what only C++ can make

Its forward pass takes wrappers apart and puts them together, which fake wrappers let it do; its backward pass is run by
the engine, or taken apart by the backend. What it is given besides tensors is part of the node: constants, and objects
known by identity. It is torch's word that such a Function computes and does nothing else; one that is given a callable
is none of them.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.failure import Failure
from stator.pytorch.functions.autograd_module import apply_function
from stator.pytorch.graph.subgraph import record_module
from stator.pytorch.tensors.classes import holds_opaque
from stator.pytorch.tensors.lowering import OPAQUE, Call, Lowering, fill
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.protocol import amend
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Args, Host, Nested
    from stator.space.interfaces import Trace
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = ["install"]


def _whole_first(otherwise: Handler) -> Handler:
    """The model of `Function.apply`, which sees to all others."""

    def apply(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        cls = space.known(args[0].force()) if args and not kwargs else None
        if isinstance(cls, type) and _takes_whole(cls, args[1:]) and not internals.are_transforms_active():
            with contextlib.suppress(Unsupported):
                return _apply_whole(space, cls, args[1:])
        return otherwise(space, args, kwargs)

    return apply


def _takes_whole(cls: type, inputs: list[Value]) -> bool:
    """Whether it is such a Function: torch's, and given wrappers or what only C++ looks into."""
    if cls.__module__.partition(".")[0] != "torch" or internals.forward_level() >= 0:
        return False
    return any(kind in OPAQUE or holds_opaque(kind) for kind in {value.force().cls for value in inputs})


def _apply_whole(space: Space, cls: Host, inputs: list[Value]) -> Value:
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
            inputs = self.space.trace.extension(_Inputs).made
            return self.operand(inputs.setdefault(value, _Input(self.space, value)))
        return super().value(value)

    def host(self, host: Host) -> tuple[Nested, object]:
        return (host, None) if type(host) in OPAQUE else super().host(host)


class _Inputs:
    """The opaque objects that the graph of a trace is given."""

    def __init__(self, trace: Trace) -> None:
        self.made: dict[Value, _Input] = {}


class _Input:
    """An opaque object as an input of the graph: a backend must know of each in a result which one it is."""

    meta = _fake = operation = None
    symbolic = False

    def __init__(self, space: Space, value: Value) -> None:
        self.recorder = space.trace.recorder
        self.cls = value.cls
        self.source = value.source
        self.host = self.fake = value.identity(space)
        self._node: torch.fx.Node | None = None

    @property
    def node(self) -> torch.fx.Node:
        if self._node is None:
            self._node = self.recorder.nodes.of(self)
        return self._node


def install() -> None:
    """Have them looked for first."""
    amend(apply_function(), _whole_first)
