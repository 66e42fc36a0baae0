"""Leaf functions: one node of the graph, which torch's operator `invoke_leaf_function` performs below any backend."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.marks.functions import Leaf, leaf_of
from stator.pytorch import internals
from stator.pytorch.autograd.handles import TracedHook
from stator.pytorch.autograd.hooks import check_hookable, is_new
from stator.pytorch.fake.failure import Failure, first_line
from stator.pytorch.graph.linked import registers_hooks
from stator.pytorch.graph.subgraph import record_module
from stator.pytorch.nesting import tensors_in, value_of
from stator.pytorch.tensors.lowering import Call, Lowering, Operand, fill
from stator.pytorch.tensors.tensor import TensorValue
from stator.space import facts
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host, Nested
    from stator.space.space import Space

__all__ = ["handler_of", "watch"]

_pytree: Any = internals.pytree


def handler_of(host: Host) -> Callable[..., Value] | None:
    """How a function marked as a leaf is handled."""
    return None if leaf_of(host) is None else functools.partial(_call, host)


def watch(hook: Function, *arguments: Nested) -> None:
    """Call the hook when the gradients of the tensors among the arguments have been computed."""
    tensors = [x for x in tensors_in(_pytree.tree_leaves(arguments)) if x.requires_grad]
    if len(tensors) == 1:  # torch waits for none where a graph ends, and fails at a leaf whose gradient is asked for
        tensors[0].register_hook(functools.partial(_call_alone, hook))
    elif tensors:
        torch.autograd.graph.register_multi_grad_hook(tensors, lambda grads: hook(*grads))


def _registered(host: Host) -> tuple[int, int]:
    """Which fake implementation and which hook the function has: what is made of a call keeps both."""
    leaf = leaf_of(host)
    assert leaf is not None
    return id(leaf.fake), id(leaf.hook)


def _call(host: Host, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    leaf = leaf_of(host)
    assert leaf is not None
    facts.answer(space, space.existing(host), _registered, "what was registered of")
    if leaf.fake is None:
        raise space.error(ValueError, leaf.missing_fake())
    name = getattr(leaf.function, "__name__", "leaf")
    lowering = _LeafLowering(space, Call(leaf.function, "call_module", name))
    lowering.call.args = tuple([lowering.value(arg)[0] for arg in args])
    lowering.call.kwargs = {key: lowering.value(arg)[0] for key, arg in kwargs.items()}
    operands = lowering.call.operands
    module = LeafModule(leaf, lowering)
    _hook_up(space, leaf, module, [operands[place] for place in module.watched])  # type: ignore[misc]
    try:
        made = record_module(space.trace.recorder, name, module, operands, observed=module.observed, acts=True)
    except Failure as failure:
        why = f"its fake implementation fails: {type(failure.error).__name__}: {first_line(failure.error)}"
        brk = errors.UnsupportedTensorOperation(f"the leaf function {name}", why)
        raise Unsupported(brk.advising(f"mend what is given to {name}.register_fake")) from None
    parts = space.unpack(made)
    return value_of(space, module.result, lambda part: parts[part.index] if isinstance(part, Operand) else None)


def _call_alone(hook: Function, gradient: torch.Tensor) -> None:
    hook(gradient)  # what it gives does not take the gradient's place


def _hook_up(space: Space, leaf: Leaf, module: LeafModule, tensors: list[TensorValue]) -> None:
    """Have the gradients of these arguments seen by the hook of the leaf: in the graph, or when it has run.

    What the function itself registers it would register on the copies that a graph calls it with.
    """
    recorder, name = space.trace.recorder, getattr(leaf.function, "__name__", "leaf")
    refusal: errors.Break | None = None
    if not getattr(space.trace.compile_region.backend, "takes_leaf_functions", True):
        refusal = errors.HigherOrderOperatorCall(f"the leaf function {name}", "the backend fails on it")
    inside = bool(tensors) and not leaf.isolated and registers_hooks(leaf.function)
    if inside:
        refusal = errors.AutogradCall(name, "it registers hooks on tensors, and a graph calls it with copies of them")
    hooked = tensors if inside or leaf.hook is not None else []
    if refusal is None and all(map(is_new, hooked)):
        module.watched = [place for place in module.watched if hooked]
        hooks = [TracedHook(tensor, space.trace.steps, joint=len(hooked) > 1) for tensor in hooked]
        recorder.tracked.engine.traced_hooks += hooks
        return
    for tensor in hooked:
        check_hookable(space, tensor, refusal or errors.AutogradCall(name, "its hook sees old and new tensors"))
    if refusal is not None:
        raise Unsupported(refusal)
    module.watched = []
    recorder.tracked.hooked.update(tensor.root for tensor in hooked)
    space.trace.defer(watch, [space.existing(leaf.hook), *hooked])


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
        self.real = internals.LeafCallable(
            functools.partial(self.run if leaf.isolated else self.run_real, leaf.function)
        )
        assert leaf.fake is not None
        self.fake = internals.LeafCallable(functools.partial(self.run, leaf.fake))
        #: the places of the operands whose gradients the hook is called with
        self.watched = [
            place.index
            for place in _pytree.tree_leaves((self.args, self.kwargs))
            if isinstance(place, Operand) and getattr(call.operands[place.index], "requires_grad", False)
        ]
        self.hook, self.fake_hook = (
            internals.LeafCallable(functools.partial(_call_hook, hook)) for hook in (leaf.hook, None)
        )

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

    def run_real(self, function: Function, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The same, of what is not to register hooks on these tensors, which are copies."""
        made = self.run(function, *tensors)
        if any(internals.gradient_hooks(tensor) or internals.accumulation_hooks(tensor) for tensor in tensors):
            name = getattr(function, "__name__", "leaf")
            raise RuntimeError(
                f"leaf_function '{name}' has registered a hook on an argument, which is a copy in a compiled graph: "
                "nothing would call it. Register it where the function is called, or by its register_multi_grad_hook."
            )
        return made

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        watch(self._see, [tensors[place] for place in self.watched])
        return internals.leaf_operator(self.real, self.fake, self.spec, self.written, *tensors)

    def _see(self, *gradients: torch.Tensor | None) -> None:
        """Call the hook, as an operation of the backward pass."""
        spec = _pytree.tree_structure((gradients, {}))
        internals.leaf_operator(self.hook, self.fake_hook, spec, "", *gradients)

    def observed(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The same on fake tensors, which are written as the function will write the real ones."""
        made = self(*tensors)
        with torch.no_grad():
            for index in map(int, filter(None, self.written.split(","))):
                tensors[index].zero_()
        return made


def _call_hook(hook: Function | None, *gradients: torch.Tensor | None) -> tuple[()]:
    """What the hook gives is not used. There is none on fake tensors."""
    if hook is not None:
        hook(*gradients)
    return ()


def _written(leaf: Leaf, call: Call) -> str:
    """The operands that the function changes, as the operator wants them: their positions, separated by commas."""
    if not leaf.mutates:
        return ""
    bound = inspect.signature(leaf.function).bind(*call.args, **call.kwargs)
    scope: dict[str, object] = {"__builtins__": {}}
    found = [eval(expression, scope, dict(bound.arguments)) for expression in leaf.mutates]
    places = {leaf.index for leaf in _pytree.tree_leaves(found) if isinstance(leaf, Operand)}
    return ",".join(map(str, sorted(places)))
