"""Leaf functions: one node of the graph, which torch's operator `invoke_leaf_function` performs below any backend."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.marks.functions import Leaf
from stator.pytorch import internals
from stator.pytorch.fake.failure import Failure
from stator.pytorch.graph.subgraph import record_module
from stator.pytorch.nesting import tensors_in, value_of
from stator.pytorch.tensors.lowering import Call, Lowering, Operand, fill
from stator.space import facts
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Args, Function, Host, Kwargs, Nested
    from stator.space.space import Space

__all__ = ["handler_of", "watch"]

_pytree: Any = internals.pytree


def handler_of(host: Host) -> Callable[..., Value] | None:
    """How a function marked as a leaf, by Stator or by torch._dynamo, is handled."""
    marks = host.__dict__
    leaf = marks.get("_stator_leaf")
    if leaf is None and "_torchdynamo_leaf_real_fn" in marks:
        names = ("real_fn", "mutates_args", "fake_fn", "hook_fn")
        leaf = Leaf(*(marks[f"_torchdynamo_leaf_{name}"] for name in names))
    return None if leaf is None else functools.partial(_call, leaf)


def watch(hook: Function, args: Args, kwargs: Kwargs) -> None:
    """Call the hook when the gradients of the tensors among the arguments have been computed."""
    tensors = [x for x in tensors_in(_pytree.tree_leaves((args, kwargs))) if x.requires_grad]
    if tensors:
        torch.autograd.graph.register_multi_grad_hook(tensors, lambda grads: hook(*grads))


def _call(leaf: Leaf, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if leaf.fake is None:
        raise space.error(ValueError, leaf.missing_fake())
    name = getattr(leaf.function, "__name__", "leaf")
    lowering = _LeafLowering(space, Call(leaf.function, "call_module", name))
    lowering.call.args = tuple([lowering.value(arg)[0] for arg in args])
    lowering.call.kwargs = {key: lowering.value(arg)[0] for key, arg in kwargs.items()}
    module = LeafModule(leaf, lowering)
    operands = lowering.call.operands
    try:
        made = record_module(space.trace.recorder, name, module, operands, observed=module.observed, acts=True)
    except Failure as failure:
        raise Unsupported(errors.UnsupportedTensorOperation(name, str(failure.error).partition("\n")[0])) from None
    parts = space.unpack(made)
    return value_of(space, module.result, lambda part: parts[part.index] if isinstance(part, Operand) else None)


class _LeafLowering(Lowering):
    """A module is an argument by its tensors."""

    def __init__(self, space: Space, call: Call) -> None:
        super().__init__(space, call)
        self.modules: list[tuple[torch.nn.Module, dict[str, Operand]]] = []

    def value(self, value: Value) -> tuple[Nested, object]:
        value = value.force()
        if not value.isa(torch.nn.Module):
            return super().value(value)
        module = value.host
        if module is None:
            raise self.refuse("a module that was made in the compiled function")
        self.space.guard_identity(value)
        names = facts.answer(self.space, value, _tensor_names, "the names of its tensors")
        self.modules.append((module, {name: self.value(self.member(value, name))[0] for name in names}))
        return module, None

    def member(self, value: Value, path: str) -> Value:
        return functools.reduce(self.space.getattr, path.split("."), value)


def _tensor_names(module: torch.nn.Module) -> tuple[str, ...]:
    return tuple(name for name, _ in (*module.named_parameters(), *module.named_buffers()))


class LeafModule(torch.nn.Module):
    """Performs a leaf function on the tensors among its arguments; gives the tensors of its result."""

    def __init__(self, leaf: Leaf, lowering: _LeafLowering) -> None:
        super().__init__()
        call = lowering.call
        self.args, self.kwargs, self.replaced = call.args, call.kwargs, lowering.modules
        self.written = _written(leaf, call)
        self.spec = _pytree.tree_structure((tuple(call.operands), {}))
        self.structure: tuple[Host, int] | None = None
        #: what the function gives, with the places of its tensors
        self.result: Nested = None
        self.real = internals.LeafCallable(functools.partial(self.run, leaf.function))
        assert leaf.fake is not None
        self.fake = internals.LeafCallable(functools.partial(self.run, leaf.fake))
        if leaf.hook is not None:
            internals.hook_leaf(self.real, leaf.hook, _nothing)

    def run(self, function: Function, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The tensors that the function gives; the first call, which is of the fake one, says how they are arranged."""
        given = list(tensors)
        with contextlib.ExitStack() as stack:
            for module, members in self.replaced:
                stack.enter_context(internals.reparametrized(module, fill(members, given)))
            result = function(*fill(self.args, given), **fill(self.kwargs, given))
        leaves, spec = _pytree.tree_flatten(result)
        made = [*tensors_in(leaves)]
        if self.structure is None:
            places = iter(range(len(made)))
            shown = [Operand(next(places)) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            self.structure, self.result = (spec, len(made)), _pytree.tree_unflatten(shown, spec)
        elif self.structure != (spec, len(made)):
            raise AssertionError(
                f"leaf_function output structure mismatch: expected {self.structure[0]}, got {spec}. The real and the "
                "fake function must return the same structure."
            )
        return tuple(made)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return internals.leaf_operator(self.real, self.fake, self.spec, self.written, *tensors)

    def observed(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The same on fake tensors, which are written as the function will write the real ones."""
        made = self(*tensors)
        with torch.no_grad():
            for index in map(int, filter(None, self.written.split(","))):
                tensors[index].zero_()
        return made


def _nothing(*args: object) -> None:
    """The hook on fake tensors."""


def _written(leaf: Leaf, call: Call) -> str:
    """The operands that the function changes, as the operator wants them: their positions, separated by commas."""
    if not leaf.mutates:
        return ""
    bound = inspect.signature(leaf.function).bind(*call.args, **call.kwargs)
    scope: dict[str, object] = {"__builtins__": {}}
    found = [eval(expression, scope, dict(bound.arguments)) for expression in leaf.mutates]
    places = {leaf.index for leaf in _pytree.tree_leaves(found) if isinstance(leaf, Operand)}
    return ",".join(map(str, sorted(places)))
