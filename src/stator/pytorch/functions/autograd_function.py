"""`torch.autograd.Function.apply`: forward and backward are traced, and become one node of the graph.

The node's module applies a Function of Stator's own, which runs the graphs in place of the program's methods: also that
of `jvp` where tangents travel beside the tensors, and that of `vmap` where the call is mapped over a batch.
Where none of this is wanted, `forward` is traced as any other code. Where a method cannot be traced, the call of
`apply` is left to Python.
"""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch.autograd.backward_graph import Witness, as_in_backward, gradient_of, is_inside, takes_tangents
from stator.pytorch.autograd.context_value import ContextValue, is_none
from stator.pytorch.functions.autograd_module import FunctionModule, Plan, apply_function, places_of
from stator.pytorch.functions.call_parts import (
    applied,
    inputs_of,
    is_foreign,
    is_own,
    is_set,
    leave_alone,
    node_class,
    refuse_wrapper,
)
from stator.pytorch.functions.mapping_rules import trace_rules
from stator.pytorch.graph.subgraph import Subgraph, record_module
from stator.pytorch.state import global_state
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.protocol import NONE, TRUE, register
from stator.space.value import Raised, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import GraphValue, Host
    from stator.space.space import Space

_Function: Any = torch.autograd.Function
#: of how many results a backward may take None for the gradient: it is traced for each combination
_MOST_RESULTS = 3
_PURE = "let {} only compute: what it notes elsewhere, note outside of the compiled function"


def _apply(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`Function.apply`, the class method."""
    cls = applied(space, args)
    if cls is None:
        return None
    application = _Application(space, cls, args[0].force())
    if not application.bind(args[1:], kwargs):
        return None
    try:
        for value in application.inputs:
            refuse_wrapper(space, value)
        return application.run()
    except Unsupported:
        leave_alone(space, args[0])  # what the methods do in Python cannot be traced either
        raise


class _Application:
    """One call of `apply`."""

    def __init__(self, space: Space, cls: Host, cls_value: Value) -> None:
        self.space = space
        self.recorder: Recorder = space.trace.recorder
        self.cls = cls
        self.cls_value = cls_value
        self.inputs: list[Value] = []
        self.split = is_own(space, cls, "setup_context")
        self.plan = Plan()

    def bind(self, args: list[Value], kwargs: dict[str, Value]) -> bool:
        """Find the arguments of `forward`; False where that is for Python to do."""
        if not self.split:
            self.inputs = [arg.force() for arg in args]
            return not kwargs
        inputs = inputs_of(self.space, self.cls, args, kwargs)
        self.inputs = inputs or []
        return inputs is not None

    def run(self) -> Value:
        self.context = ContextValue(
            node_class(self.space, self.cls_value), [self.wants_gradient(v) for v in self.inputs]
        )
        if any(self.context.needs) or self.seen_by_transforms():
            return self.as_node()
        return self.without_gradient()

    def wants_gradient(self, value: Value) -> bool:
        """Whether it has a gradient; one that torch.func differentiates forwards may have one outside of that."""
        if not isinstance(value, TensorValue) or not torch.is_grad_enabled():
            return False
        return value.requires_grad or (is_inside(self.space, "forward mode") and is_differentiable(value.dtype))

    def seen_by_transforms(self) -> bool:
        """Whether a transform asks more of it than to compute: its `jvp`, its `vmap`, or to be of the newer form."""
        space = self.space
        if is_inside(space, "vmap") and not is_set(space, self.cls, "generate_vmap_rule"):
            return True
        return takes_tangents(space) or (not self.split and is_inside(space, "transform"))

    # -- forward ----------------------------------------------------------------------------------------------------

    def forward(self) -> Value:
        """Trace `forward`, and what sets up the context after it."""
        space, context = self.space, self.context
        function = space.getattr(self.cls_value, "forward")
        if not self.split:
            return space.call(function, [context, *self.inputs], {}).force()
        result = space.call(function, list(self.inputs), {}).force()
        set_up = space.getattr(self.cls_value, "setup_context")
        space.call(set_up, [context, space.new_tuple(self.inputs), result], {})
        return result

    def without_gradient(self) -> Value:
        """`forward` without the recording of gradients; an input among the results is given as another tensor."""
        space = self.space
        with global_state.grad_mode(self.recorder.state.change, False):
            result = self.forward()
            dirty = self.context.listed(space, "dirty_tensors")
            parts = [self.plain_output(part, dirty) for part in self.results(result)]
        return self.arranged(result, parts)

    def results(self, result: Value) -> list[Value]:
        return [r.force() for r in self.space.unpack(result)] if result.isa(tuple) else [result]

    def arranged(self, result: Value, parts: list[Value]) -> Value:
        """These parts in the place of those of a result."""
        return self.space.new_tuple(parts) if result.isa(tuple) else parts[0]

    def plain_output(self, part: Value, dirty: list[Value]) -> Value:
        if not isinstance(part, TensorValue):
            if is_foreign(part):
                raise self.refusal("its result is a tensor of another kind")
            return part
        if any(part is value for value in dirty):
            return part
        if any(part is value for value in self.inputs):
            other = ("detach", part) if part.requires_grad else ("view_as", part, part)
            return record_method(self.space, *other)
        if part.requires_grad:
            raise self.refusal("its result requires a gradient though no argument does")
        return part

    # -- forward and backward ---------------------------------------------------------------------------------------

    def as_node(self) -> Value:
        """Trace the methods, each into a graph of its own, and record the node that applies them."""
        space, recorder, plan = self.space, self.recorder, self.plan
        forward = Subgraph(recorder)
        with forward.recording(), global_state.grad_mode(recorder.state.switch, False):
            result = self.forward()
        parts = self.results(result)
        outputs, tensors = tensors_among(parts), tensors_among(self.inputs)
        if not outputs or len({id(o) for o in outputs}) < len(outputs):
            raise self.refusal("it gives no tensor, or one twice")
        plan.takes_none = space.known(self.context.fields.get("materialize_grads", TRUE)) is not True
        plan.mapped = trace_rules(space, self.cls_value, self.inputs, parts)
        if takes_tangents(space) and is_own(space, self.cls, "jvp"):
            plan.tangent_patterns = self.patterns(tensors, [t for t in tensors if is_differentiable(t.dtype)])
        tangents = [self.tangents(parts, pattern) for pattern in plan.tangent_patterns]
        if any(self.context.needs):
            plan.patterns = self.patterns(outputs, self.differentiable(outputs))
        backward = [self.backward(parts, pattern) for pattern in plan.patterns]
        pushed, pulled = [_union(graph.free(tensors_among(g)) for graph, g in found) for found in (tangents, backward)]
        used = _union([pushed, pulled])
        if any(graph.holds(value) for graph, _ in [*tangents, *backward] for value in used):
            raise self.refusal("its backward keeps what it has computed")
        kept = [value for value in used if forward.holds(value) and not any(value is o for o in outputs)]
        inside = [*outputs, *kept]
        needed = forward.free(inside)
        operands: list[GraphValue] = [*tensors]
        mapped = _union(rule.free for rule in plan.rules)
        for value in [*needed, *mapped, *(v for v in used if not forward.holds(v))]:
            if not any(value is o for o in operands):
                operands.append(value)
        plan.forward_inputs = [_index(value, operands) for value in needed]
        plan.gradients = [self.numbered(found) for _, found in backward]
        plan.tangents = [self.numbered(found) for _, found in tangents]
        for rule in plan.rules:
            rule.close(operands)
        self.note_flags(outputs, operands, tensors)
        plan.transformable = self.split and not kept
        places = ("kept", kept), ("output", outputs), ("operand", operands)
        plan.uses = places_of(pulled, self.context.listed(space, "to_save"), places)
        plan.pushes = places_of(pushed, [], places)
        name = space.class_name(self.cls)
        module = FunctionModule(
            forward.close(inside, needed),
            [graph.close(tensors_among(gradients), pulled) for graph, gradients in backward],
            [graph.close(tensors_among(found), pushed) for graph, found in tangents],
            plan,
            name,
            is_set(space, self.cls, "generate_vmap_rule"),
        )
        made = record_module(self.recorder, name, module, operands)
        self.note_views(space.unpack(made))
        return self.answer(result, parts, outputs, space.unpack(made))

    def patterns(self, tensors: list[TensorValue], wanted: list[TensorValue]) -> list[tuple[bool, ...]]:
        """For which tensors a method may be given something, as far as it is told: it is traced for each pattern.

        Args:
            wanted: those for which there can be something.
        """
        if not self.plan.takes_none:
            return [(True,) * len(tensors)]
        if not 1 <= len(wanted) <= _MOST_RESULTS:
            raise self.refusal("it takes gradients of many results, some of which may be None")
        can = [(False, True) if any(o is w for w in wanted) else (False,) for o in tensors]
        return [pattern for pattern in itertools.product(*can) if any(pattern)]

    def differentiable(self, outputs: list[TensorValue]) -> list[TensorValue]:
        """The results that gradients may come from."""
        marked = self.context.listed(self.space, "non_differentiable")
        return [o for o in outputs if is_differentiable(o.dtype) and not any(o is other for other in marked)]

    def note_views(self, made: list[Value]) -> None:
        """A result that shares its argument's memory has another gradient than a view of it."""
        for value in tensors_among(map(Value.force, made)):
            if value.root is not value and value.operation is not None:
                self.recorder.tracked.own_gradients[value] = value.operation

    @staticmethod
    def numbered(found: list[Value | None]) -> list[int | None]:
        """The positions of values among those that are not None."""
        counts = [sum(g is not None for g in found[:i]) for i in range(len(found))]
        return [None if value is None else i for i, value in zip(counts, found, strict=True)]

    def note_flags(self, outputs: list[TensorValue], operands: list[GraphValue], tensors: list[TensorValue]) -> None:
        space, context, plan = self.space, self.context, self.plan
        plan.outputs = len(outputs)
        plan.tensors = len(tensors)
        plan.dirty = [_index(value, tensors) for value in context.listed(space, "dirty_tensors")]
        plan.non_differentiable = [_index(v, outputs) for v in context.listed(space, "non_differentiable")]
        plan.contiguous = [bool(output.fake.is_contiguous()) for output in outputs]
        if None in (*plan.dirty, *plan.non_differentiable):
            raise self.refusal("it marks tensors that are neither arguments nor results")

    def backward(self, parts: list[Value], pattern: tuple[bool, ...]) -> tuple[Subgraph, list[Value | None]]:
        """Trace `backward`: its graph, and the gradient of each argument that is a tensor."""
        state = as_in_backward(self.recorder)
        return self.called_back(self.user_backward(), "backward", parts, pattern, self.inputs, state)

    def tangents(self, parts: list[Value], pattern: tuple[bool, ...]) -> tuple[Subgraph, list[Value | None]]:
        """Trace `jvp`: its graph, and the tangent of each result that is a tensor."""
        function = self.space.getattr(self.cls_value, "jvp")
        with self.context.saved_for_forward():
            return self.called_back(function, "jvp", self.inputs, pattern, parts, nullcontext())

    def called_back(
        self,
        function: Value,
        name: str,
        given: list[Value],
        pattern: tuple[bool, ...],
        wanted: list[Value],
        state: AbstractContextManager[None],
    ) -> tuple[Subgraph, list[Value | None]]:
        """Trace a method that autograd calls: its graph, and what it gives for each of `wanted` that is a tensor.

        Args:
            given: it gets something for each of these that is a tensor, in this pattern.
        """
        space, graph = self.space, Subgraph(self.recorder)
        likes = [gradient_of(graph, part) if isinstance(part, TensorValue) else NONE for part in given]
        present = iter(pattern)
        args = [like if like is not NONE and next(present) else NONE for like in likes]
        try:
            with graph.recording(), state, Witness(space, function) as witness:
                result = space.call(function, [self.context, *args], {}).force()
        except Raised as e:
            raise self.refusal(f"its {name} raises {e.value.cls.__name__}") from None
        if witness.acts:
            raise self.refusal(f"its {name} acts on objects outside of it", _PURE.format(name))
        found = self.results(result)
        if len(found) < len(wanted) or not all(map(is_none, found[len(wanted) :])):
            raise self.refusal(f"its {name} gives another number of tensors")
        made: list[Value | None] = []
        for value, like in zip(wanted, found, strict=False):
            if isinstance(value, TensorValue) and (is_none(like) or isinstance(like, TensorValue)):
                made.append(None if is_none(like) else like)
            elif not is_none(like):
                raise self.refusal(f"its {name} gives something else than tensors")
        return graph, made

    def user_backward(self) -> Value:
        space, cls = self.space, self.cls
        own = [name for name in ("backward", "vjp") if is_own(space, cls, name)]
        if len(own) != 1 or is_set(space, cls, "boxed_grads_call"):
            raise self.refusal("it has no single backward")
        return space.getattr(self.cls_value, own[0])

    # -- the node ---------------------------------------------------------------------------------------------------

    def answer(self, result: Value, parts: list[Value], outputs: list[TensorValue], made: list[Value]) -> Value:
        """The result of `apply`: the results of `forward`, the tensors among them as the node gives them."""
        new = dict(zip(map(id, outputs), made, strict=True))
        final = [new.get(id(part), part) for part in parts]
        return self.arranged(result, final)

    def refusal(self, why: str, hint: str = "") -> Unsupported:
        brk = errors.UnsupportedTensorOperation(f"{self.cls.__qualname__}.apply", why)
        return Unsupported(brk.advising(hint))


def _union(lists: Iterable[list[GraphValue]]) -> list[GraphValue]:
    """What is in any of them, once."""
    return list(dict.fromkeys(itertools.chain.from_iterable(lists)))


def is_differentiable(dtype: torch.dtype) -> bool:
    """Whether tensors of the type can have gradients."""
    return dtype.is_floating_point or dtype.is_complex


def _index(value: GraphValue, values: Sequence[GraphValue]) -> Any:
    return next((i for i, other in enumerate(values) if other is value), None)


def install() -> None:
    """Register the model."""
    register(apply_function(), _apply)
