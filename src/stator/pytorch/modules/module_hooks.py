"""Hooks on the gradients of a module (`register_full_backward_hook` and the pre-hook), as operations of the graph.

torch calls `setup_input_hook` before the module's `forward` and `setup_output_hook` behind it. The hooks are traced
then, and two nodes of the graph have them in their backward passes (see `module_ends`). Where a hook does more than
compute, or the module does not give one tensor, the trace begins again, and ordinary Python calls the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import torch
import torch.utils.hooks

from stator import errors
from stator.pytorch import internals
from stator.pytorch.autograd.backward_graph import Witness, as_in_backward, gradient_of
from stator.pytorch.autograd.context_value import is_none
from stator.pytorch.autograd.traced_hooks import may_replace
from stator.pytorch.graph.subgraph import Subgraph, record_module
from stator.pytorch.modules.module_ends import ArgumentsEnd, ResultEnd
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.protocol import NONE, register
from stator.space.signals import DoFirst
from stator.space.value import Constant, Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.space.interfaces import Trace, Writer
    from stator.space.space import Space

__all__ = ["are_left_to_python", "install"]

_GLOBALS = internals.module_call.__globals__


def _what(module: Value) -> str:
    """What a trace that begins again knows."""
    name = type(module).__name__ if module.source is None else module.source.expr()
    return f"the hooks on gradients of {name} are not traced"


def are_left_to_python(space: Space, module: Value) -> bool:
    """Whether the hooks are no "full" ones, or the trace has found out that it cannot have them in the graph."""
    full = space.known(space.getattr(module, "_is_full_backward_hook").force())
    names = space.trace.namespaces.globals_of(_GLOBALS)
    of_all = names.get_str(space, "_global_is_full_backward_hook")
    full_of_all = of_all is None or space.known(of_all.force())
    plain = full is False or full_of_all is False or internals.are_transforms_active()
    return plain or _what(module.force()) in space.trace.done_first


class _Call:
    """One call of a module, between the two ends."""

    def __init__(self, space: Space, hook: Value, arguments: list[Value]) -> None:
        self.space = space
        self.recorder: Recorder = space.trace.recorder
        self.hook = hook
        self.module = space.getattr(hook, "module").force()
        self.arguments = arguments
        self.end: ArgumentsEnd | None = None

    def give_up(self) -> NoReturn:
        """Begin the trace again."""
        raise DoFirst(_what(self.module))

    def listed(self, name: str) -> list[Value]:
        return [item.force() for item in self.space.unpack(self.space.getattr(self.hook, name).force())]

    def note(self, name: str, value: object) -> None:
        self.space.setattr(self.hook, name, Constant(value))

    # -- before `forward` -------------------------------------------------------------------------------------------

    def begin(self) -> list[Value]:
        """The arguments for `forward`."""
        tensors = tensors_among(self.arguments)
        self.note("n_inputs", len(self.arguments))
        if any(value.isa(torch.Tensor) and not isinstance(value, TensorValue) for value in self.arguments):
            self.give_up()
        if not any(_wants(tensor) for tensor in tensors):
            if self.listed("user_hooks"):
                self.give_up()  # they are called with the gradients of the result, and a warning
            return self.arguments
        self.end = ArgumentsEnd()
        made = self.space.unpack(record_module(self.recorder, "module_arguments", self.end, tensors))
        new = dict(zip(map(id, tensors), made, strict=True))
        return [new.get(id(value), value) for value in self.arguments]

    # -- behind it --------------------------------------------------------------------------------------------------

    def finish(self, results: list[Value]) -> list[Value]:
        """The results for the caller."""
        self.note("n_outputs", len(results))
        tensors = tensors_among(results)
        if len(tensors) != 1 or any(value.isa(torch.Tensor) and value is not tensors[0] for value in results):
            self.give_up()
        if not _wants(tensors[0]):
            if self.end is not None:
                self.give_up()
            return results
        hooks = [*self.listed("user_pre_hooks"), *self.listed("user_hooks")]
        try:
            with Witness(self.space, self.module, *hooks) as witness:
                made = self.result_end(tensors[0], results)
        except (Raised, Unsupported):
            self.give_up()
        if witness.acts:
            self.give_up()
        return [made if value is tensors[0] else value for value in results]

    def result_end(self, tensor: TensorValue, results: list[Value]) -> Value:
        """Trace the hooks and record the node behind `forward`."""
        place = next(i for i, value in enumerate(results) if value is tensor)
        graph = Subgraph(self.recorder)
        with graph.recording(), as_in_backward(self.recorder):
            packed: list[Value] = [NONE] * len(results)
            packed[place] = gradient_of(graph, tensor)
            (new,) = self.passed("user_pre_hooks", packed, [], [place])
        used = graph.free([new])
        others = [] if self.end is None else self.arguments_end(self.end, tensor, len(results), place)
        end = ResultEnd(self.end, graph.close([new], used), len(used))
        return record_module(self.recorder, "module_result", end, [tensor, *used, *others])

    def arguments_end(self, end: ArgumentsEnd, result: TensorValue, count: int, place: int) -> list[object]:
        """Trace the hooks of the other end; returns what they use of the outside."""
        places = [i for i, value in enumerate(self.arguments) if isinstance(value, TensorValue)]
        graph = Subgraph(self.recorder)
        with graph.recording(), as_in_backward(self.recorder):
            packed: list[Value] = [NONE] * len(self.arguments)
            for i in places:
                packed[i] = gradient_of(graph, self.arguments[i])  # type: ignore[arg-type]
            seen: list[Value] = [NONE] * count
            seen[place] = gradient_of(graph, result)
            new = self.passed("user_hooks", packed, [self.space.new_tuple(seen)], places)
        used = graph.free(new)
        end.hooks = graph.close(new, used)
        return used

    def passed(self, name: str, gradients: list[Value], others: list[Value], places: list[int]) -> list[TensorValue]:
        """What the module's hooks of this name make of gradients, at the places of tensors."""
        space, first = self.space, gradients
        for hook in self.listed(name):
            answer = space.call(hook, [self.module, space.new_tuple(gradients), *others], {}).force()
            if is_none(answer):
                continue
            gradients = [item.force() for item in space.unpack(answer)]
            if len(gradients) != len(first):
                self.give_up()
        if not all(map(_may_go_on, first, gradients)):
            self.give_up()
        return tensors_among(gradients[i] for i in places)


def _may_go_on(gradient: Value, made: Value) -> bool:
    """Whether a hook may give this for a gradient."""
    return made is gradient or (
        isinstance(gradient, TensorValue) and isinstance(made, TensorValue) and may_replace(gradient, made)
    )


def _wants(tensor: TensorValue) -> bool:
    return torch.is_grad_enabled() and tensor.requires_grad


class _Calls:
    """The calls of modules with hooks, in one trace, by their `BackwardHook`."""

    def __init__(self, trace: Trace) -> None:
        self.open: dict[Value, _Call] = {}


class _Open(Value):
    """Stands in the hook object while the module is called: what goes on after a break would find nothing hooked."""

    __slots__ = ("call",)

    def __init__(self, call: _Call) -> None:
        self.cls = type(None)
        self.source = None
        self.call = call

    def reconstruct(self, writer: Writer) -> str:
        self.call.give_up()


def _setup_input(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    hook, given = (arg.force() for arg in args)
    if hook.source is not None:
        raise _refusal()
    call = _Call(space, hook, [item.force() for item in space.unpack(given)])
    arguments = call.begin()
    space.trace.extension(_Calls).open[hook] = call
    space.setattr(hook, "grad_outputs", _Open(call))
    return space.new_tuple(arguments)


def _setup_output(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    hook, result = (arg.force() for arg in args)
    call = space.trace.extension(_Calls).open.pop(hook, None)
    if call is None:
        raise _refusal()
    space.setattr(hook, "grad_outputs", NONE)
    if result.isa(tuple):
        if result.cls is not tuple:
            call.give_up()
        return space.new_tuple(call.finish([item.force() for item in space.unpack(result)]))
    return call.finish([result])[0]


def _refusal() -> Unsupported:
    return Unsupported(errors.AutogradCall("a module", "it has hooks on its gradients"))


def install() -> None:
    """Register the models."""
    hooks = torch.utils.hooks.BackwardHook
    register(hooks.setup_input_hook, _setup_input)
    register(hooks.setup_output_hook, _setup_output)
