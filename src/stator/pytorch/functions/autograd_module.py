"""What runs in place of a traced `torch.autograd.Function`: a Function made of two graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from stator.guards.raw import type_lookup
from stator.pytorch import internals
from stator.pytorch.state import global_state

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.functions.mapping_rules import MappingRule
    from stator.pytorch.types import Function, GraphValue


__all__ = ["FunctionModule", "Plan", "apply_function", "places_of"]

Operands = tuple[torch.Tensor, ...]
#: of a value: among which values it is, at which position, and whether it is saved as such
Place = tuple[str, int, bool]


class Plan:
    """How the parts fit together.

    The module is called with operands: first the `tensors` that were arguments of `apply`, then whatever else the
    graphs use. The forward graph gives the results, then what backward needs of its insides.
    """

    def __init__(self) -> None:
        self.tensors = 0
        self.outputs = 0
        #: whether transforms of torch.func may be applied to it: the program's Function allows that, and backward needs
        #: no insides of the forward graph
        self.transformable = False
        #: the operands that the forward graph is called with
        self.forward_inputs: list[int] = []
        #: what the backward graphs are called with, after the gradients
        self.uses: list[Place] = []
        #: for each backward graph, of which results it is given gradients
        self.patterns: list[tuple[bool, ...]] = []
        #: for each of them and each tensor argument, the position of its gradient in what the graph gives, or None
        self.gradients: list[list[int | None]] = []
        self.dirty: list[int] = []
        self.non_differentiable: list[int] = []
        #: whether backward is given each gradient as it is: a tensor, or None
        self.takes_none = False
        #: for each result, whether backward takes its gradient to be contiguous
        self.contiguous: list[bool] = []

        #: for the graphs of `jvp`: which tensors have tangents, where those of the results are, what else they use
        self.tangent_patterns: list[tuple[bool, ...]] = []
        self.tangents: list[list[int | None]] = []
        self.pushes: list[Place] = []
        #: what `vmap` does, by which tensors are mapped over; None for a Function that is mapped and does not allow it
        self.mapped: dict[tuple[bool, ...], MappingRule] | None = {}

    @property
    def rules(self) -> list[MappingRule]:
        """What `vmap` does in each case."""
        return [*(self.mapped or {}).values()]


def places_of(
    values: Sequence[GraphValue], saved: Sequence[GraphValue], places: Sequence[tuple[str, Sequence[GraphValue]]]
) -> list[Place]:
    """Where each value that a graph uses will be found."""
    found: list[Place] = []
    for value in values:
        where, place = next((where, i) for where, those in places for i, other in enumerate(those) if other is value)
        found.append((where, place, any(value is s for s in saved)))
    return found


class FunctionModule(torch.nn.Module):
    """A traced Function; calling it applies the Function.

    Args:
        name: the Function's name.
        generates_rule: whether torch.func makes its `vmap` of its other methods.
    """

    def __init__(
        self,
        forward_graph: torch.fx.GraphModule,
        backward_graphs: list[torch.fx.GraphModule],
        tangent_graphs: list[torch.fx.GraphModule],
        plan: Plan,
        name: str,
        generates_rule: bool,
    ) -> None:
        super().__init__()
        self.forward_graph = forward_graph
        self.backward_graphs = torch.nn.ModuleList(backward_graphs)
        self.tangent_graphs = torch.nn.ModuleList(tangent_graphs)
        self.mapped_graphs = torch.nn.ModuleList([rule.graph for rule in plan.rules])
        self.plan = plan
        #: classes of its own: their name is that of the results' `grad_fn`
        own: dict[str, Any] = {"jvp": staticmethod(_tangents)} if tangent_graphs else {}
        self.function = type(name, (_Applied,), own)
        if generates_rule:
            own = own | {"generate_vmap_rule": True}
        elif plan.mapped is not None:  # where only `vjp` is mapped, it runs forward again, of no batch
            own = own | {"vmap": staticmethod(_mapped)}
        self.transformed = type(name, (_Transformed,), own) if plan.transformable else self.function
        graphs = [forward_graph, *backward_graphs, *tangent_graphs, *self.mapped_graphs]
        self.keeps_state = not any(_changes_state(graph) for graph in graphs)

    def forward(self, *operands: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        function = self.transformed if internals.are_transforms_active() else self.function
        return function.apply(self, *operands)  # type: ignore[attr-defined]

    def extra_repr(self) -> str:
        return self.function.__name__

    def run(self, graph: torch.fx.GraphModule, args: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Run one of the graphs; what it does to the global state ends with it."""
        if self.keeps_state:
            return graph(*args)
        before = global_state.snapshot()
        try:
            return graph(*args)
        finally:
            global_state.apply(before)


def _changes_state(graph: torch.fx.GraphModule) -> bool:
    return any(id(node.target) in global_state.SETTERS for node in graph.graph.nodes)


def _note_flags(ctx: torch.autograd.function.FunctionCtx, plan: Plan, operands: Operands, outputs: Operands) -> None:
    ctx.set_materialize_grads(not plan.takes_none)
    if plan.dirty:
        ctx.mark_dirty(*[operands[i] for i in plan.dirty])
    if plan.non_differentiable:
        ctx.mark_non_differentiable(*[outputs[i] for i in plan.non_differentiable])


def _keep_for_tangents(
    ctx: torch.autograd.function.FunctionCtx, plan: Plan, found: dict[str, Any], others: Sequence[Any] = ()
) -> list[torch.Tensor]:
    """Save what `jvp` uses, behind the tensors among others: all that is saved."""
    values = [found[where][i] for where, i, _ in plan.pushes]
    tensors = [value for value in [*others, *values] if isinstance(value, torch.Tensor)]
    ctx.pushes = [None if isinstance(value, torch.Tensor) else value for value in values]
    if tensors and plan.tangents:
        ctx.save_for_forward(*tensors)
    return tensors


def _tangents(ctx: torch.autograd.function.FunctionCtx, *tangents: torch.Tensor) -> Any:
    """The `jvp` of a Function that has one."""
    module = ctx.module
    plan = module.plan
    given = tangents[1 : plan.tensors + 1]
    number = plan.tangent_patterns.index(tuple(t is not None for t in given)) if plan.takes_none else 0
    saved = iter(ctx.saved_tensors[len(ctx.saved_tensors) - ctx.pushes.count(None) :])
    used = [next(saved) if value is None else value for value in ctx.pushes]
    found = module.run(module.tangent_graphs[number], [*given, *used])
    return tuple(None if i is None else found[i] for i in plan.tangents[number])


def _mapped(info: Any, in_dims: tuple[Any, ...], module: FunctionModule, *operands: torch.Tensor) -> Any:
    """The `vmap` of a Function that has one: the first dimensions are mapped."""
    dims, plan = in_dims[1:], module.plan
    rule = (plan.mapped or {}).get(tuple(dim is not None for dim in dims[: plan.tensors]))
    if rule is None or any(dims[i] is not None for i in rule.places):
        raise RuntimeError(f"{module.extra_repr()}.vmap could not be traced for what it is mapped over here")
    pairs = zip(operands, dims[: plan.tensors], strict=False)
    given = [tensor.movedim(dim, 0) for tensor, dim in pairs if dim is not None]
    return tuple(module.run(rule.graph, [*given, *(operands[i] for i in rule.places)])), rule.out_dims


class _Applied(torch.autograd.Function):
    """The program's Function, as it was traced."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, module: FunctionModule, *operands: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        plan = module.plan
        results = module.run(module.forward_graph, [operands[i] for i in plan.forward_inputs])
        outputs, kept = results[: plan.outputs], results[plan.outputs :]
        found = {"operand": operands, "output": outputs, "kept": kept}
        ctx.module = module
        ctx.count = len(operands)
        ctx.save_for_backward(*[found[where][i] for where, i, saved in plan.uses if saved])
        ctx.others = [found[where][i] for where, i, saved in plan.uses if not saved]
        ctx.is_saved = [saved for _, _, saved in plan.uses]
        _keep_for_tangents(ctx, plan, found)
        _note_flags(ctx, plan, operands, outputs)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        module = ctx.module
        plan = module.plan
        if plan.takes_none and all(g is None for g in grads):  # no gradient leads to none
            return (None,) * (ctx.count + 1)
        saved, others = iter(ctx.saved_tensors), iter(ctx.others)
        used = [next(saved) if is_saved else next(others) for is_saved in ctx.is_saved]
        given = [
            g.contiguous() if dense and g is not None else g for g, dense in zip(grads, plan.contiguous, strict=True)
        ]
        number = plan.patterns.index(tuple(g is not None for g in grads)) if plan.takes_none else 0
        found = module.run(module.backward_graphs[number], [*given, *used])
        parts = [None if i is None else found[i] for i in plan.gradients[number]]
        return (None, *parts, *[None] * (ctx.count - plan.tensors))


class _Transformed(_Applied):
    """The same in the form that transforms of torch.func want: all tensors that backward uses are saved as such."""

    @staticmethod
    def forward(module: FunctionModule, *operands: torch.Tensor) -> Operands:  # type: ignore[override]
        return tuple(module.run(module.forward_graph, [operands[i] for i in module.plan.forward_inputs]))

    @staticmethod
    def setup_context(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[Any, ...], output: Operands) -> None:
        module, *operands = inputs
        found = {"operand": operands, "output": output}
        used = [found[where][i] for where, i, _ in module.plan.uses]
        ctx.module = module
        ctx.count = len(operands)
        ctx.is_saved = [isinstance(value, torch.Tensor) for value in used]
        # torch.func wants the same to be saved for both.
        ctx.save_for_backward(*_keep_for_tangents(ctx, module.plan, found, used))
        ctx.others = [value for value in used if not isinstance(value, torch.Tensor)]
        _note_flags(ctx, module.plan, tuple(operands), output)


def apply_function() -> Function:
    """What a call of `Function.apply` runs: a Python class method up to torch 2.13, a C one in 2.15."""
    found = type_lookup(torch.autograd.Function, "apply")
    return found.__func__ if isinstance(found, classmethod) else found
