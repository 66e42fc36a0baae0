"""Selective checkpoints: a function of the program's says of each operator whether its result is kept.

    checkpoint(layer, x, use_reentrant=False, context_fn=partial(create_selective_checkpoint_contexts, policy))

In eager execution the policy is asked while the operators run. Here it is traced, once for each operator beneath the
operations of the graph, which are found by running these on fake tensors; what it says is left on the nodes, where
AOTAutograd's partitioner looks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch.fx
import torch.utils.checkpoint as library

from stator import errors
from stator.models.classes.instance import InstanceValue
from stator.pytorch import internals
from stator.pytorch.fake.modes import Listing
from stator.pytorch.tensors.lowering import fill
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import FALSE, register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Operation
    from stator.pytorch.types import Args, Kwargs, Nested, Operator
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["Policies", "policies_of"]

_Policy: Any = library.CheckpointPolicy
#: the policies, the one that counts of several operators beneath one operation first
_STRONGEST = tuple(_Policy[name] for name in ("MUST_SAVE", "PREFER_SAVE", "MUST_RECOMPUTE", "PREFER_RECOMPUTE"))


class PolicyContext(InstanceValue):
    """One of the two contexts of a selective checkpoint, which only a checkpoint enters."""

    __slots__ = ("policy",)

    def __init__(self, policy: Value) -> None:
        super().__init__(internals.CachingMode)
        self.policy = policy

    def reconstruct(self, writer: Writer) -> str:
        raise Unsupported(errors.NotReconstructible("the context of a selective checkpoint"))


def _contexts(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`create_selective_checkpoint_contexts(policy_fn_or_list)`."""
    if len(args) != 1 or kwargs:
        return None
    context = PolicyContext(args[0].force())
    return space.new_tuple([context, context])


def policies_of(space: Space, context_fn: Value) -> Policies | None:
    """What decides within a checkpoint with this `context_fn`; None where that is something else than a policy."""
    made = space.call(context_fn, [], {}).force()
    contexts = [item.force() for item in space.unpack(made)] if issubclass(made.cls, tuple) else []
    if len(contexts) != 2 or contexts[0] is not contexts[1] or not isinstance(contexts[0], PolicyContext):
        return None
    return Policies(space, contexts[0].policy)


class Policies:
    """What the policy of one checkpoint says."""

    def __init__(self, space: Space, policy: Value) -> None:
        self.space = space
        self.policy = policy
        self.recorder: Recorder = space.trace.recorder

    def of(self, operation: Operation) -> object:
        """What is to become of the results of an operation."""
        said = {self._asked(*call) for call in _operators_beneath(operation)}
        return next((policy for policy in _STRONGEST if policy in said), _Policy.PREFER_RECOMPUTE)

    def _asked(self, operator: Operator, args: Args, kwargs: Kwargs) -> object:
        space = self.space
        if issubclass(self.policy.cls, list):
            listed = [space.known(item.force()) for item in space.unpack(self.policy)]
            return _Policy.MUST_SAVE if operator in listed else _Policy.PREFER_RECOMPUTE
        context = space.call(space.existing(library.SelectiveCheckpointContext), [], {"is_recompute": FALSE})
        given = [self._value(arg) for arg in args]
        named = {name: self._value(arg) for name, arg in kwargs.items()}
        answer = space.call(self.policy, [context, space.existing(operator), *given], named).force()
        for said, policy in ((True, _Policy.MUST_SAVE), (False, _Policy.PREFER_RECOMPUTE)):
            if space.known(answer) is said:
                return policy
        return next((policy for policy in _Policy if space.is_(answer, space.existing(policy))), None)

    def _value(self, arg: Nested) -> Value:
        """An argument of an operator: of a tensor there is its metadata, and nothing that a graph could use."""
        if isinstance(arg, torch.Tensor):
            value = TensorValue(self.recorder, torch.Tensor, self.recorder.fakes.describe(arg))
            value._fake = arg
            value._node = torch.fx.Graph().placeholder("stranger")
            return value
        if isinstance(arg, list | tuple):
            items = [self._value(item) for item in arg]
            return self.space.new_list(items) if isinstance(arg, list) else self.space.new_tuple(items)
        return Constant(arg)


def _operators_beneath(operation: Operation) -> Iterable[tuple[Operator, Args, Kwargs]]:
    metas = [_meta(value) for value in operation.operands]
    memo = operation.recorder.fakes.memo(any(meta.symbolic for meta in metas))
    operands = [memo.make(meta) for meta in metas]
    listing = Listing()
    with memo.fake_executor.mode, listing:
        operation.function(*fill(operation.args, operands), **fill(operation.kwargs, operands))
    return [call for call in listing.found if call[0] not in internals.sac_ignored_ops]


def _meta(value: Value) -> Any:
    meta = getattr(value, "meta", None)
    if meta is None:
        raise Unsupported(errors.UnsupportedTensorOperation("a selective checkpoint", "it is given other tensors"))
    return meta


def install() -> None:
    """Register the model."""
    register(library.create_selective_checkpoint_contexts, _contexts)
