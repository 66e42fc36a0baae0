"""What leaves a graph that the backend rewrites, so that autograd knows of it what it knows in eager.

Such a backend gives results of one function of the inputs: a leaf made inside comes out as a result, and of two results
of which one is made from the other autograd does not know that. Where this would show, the trace is done again, and
the graph ends before the leaf, or the first of the two results, is made. Ordinary Python makes it, and the next graph
takes it as an input.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, TypeAlias

import torch
import torch.autograd

from stator import errors
from stator.interp.policy import worth_tracing
from stator.marks.functions import leaf_of
from stator.pytorch.autograd.spent import refuse_written
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.objects.hidden_copies import Copies
from stator.pytorch.objects.resizing import Resizes
from stator.pytorch.tensors.latent import is_known_leaf
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.signals import Restart
from stator.space.value import Value

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Operation, TracedTensor
    from stator.pytorch.types import Function
    from stator.space.interfaces import Frame

#: variables of a function by their names
Scope: TypeAlias = dict[str, object]

__all__ = ["check_outputs", "registers_hooks"]


def check_outputs(recorder: Recorder, outputs: list[Value]) -> None:
    """Trace again up to an earlier end, if autograd would not know of these outputs what it is asked for.

    Or if the graph does what no graph can.
    """
    refuse_written(recorder)
    recorder.trace.extension(Copies).check(outputs)
    recorder.trace.extension(Resizes).plan(outputs)
    if recorder.keeps_order:
        return
    tensors: list[TracedTensor] = [
        tensor for tensor in tensors_among(outputs) if tensor.operation is not None and tensor.requires_grad
    ]
    for value in tensors:
        if is_known_leaf(value) and not _is_made_again(recorder, value):  # a view made without gradients
            operation = value.operation
            assert operation is not None
            raise Restart(operation.step, errors.NewLeaf(describe_callable(operation.function)))
    _refuse_views(recorder, tensors)
    _refuse_hooks(recorder, tensors)
    _suit_hooks(recorder, tensors)
    asked = [(value, value.operation) for value in tensors if value.operation is not None]
    written, rewritten = recorder.effects.written, recorder.effects.rewritten
    asked += [(value, rewritten[value]) for value in written if value.requires_grad and not _was_leaf(value)]
    if len(asked) > 1 and _asked(recorder):
        _cut(recorder, asked, _Hooking(recorder.resumed).found)


def _is_made_again(recorder: Recorder, view: TracedTensor) -> bool:
    """Whether the backend makes the view as eager execution does: a view of an input is made from that input when the
    graph has run, in the grad mode that the graph was called in (in inference mode, AOTAutograd copies it)."""
    without = recorder.state.entry[0] is False and not torch.is_inference_mode_enabled()
    return without and view.root.host is not None


def _refuse_views(recorder: Recorder, tensors: list[TracedTensor]) -> None:
    """A backend gives outputs that share new memory as plain views of each other: a Function's backward is lost."""
    for made, operation in recorder.tracked.own_gradients.items():
        reached = _reached(made.node, set()) | {made.node}
        alike = {value.node in reached for value in tensors if value.root is made.root}
        if made.root.host is None and len(alike) == 2:
            why = "its result leaves the graph together with what it shares memory with"
            name = f"{operation.node.target.rpartition('_')[0]}.apply"
            raise Restart(operation.step, errors.UnsupportedTensorOperation(name, why))


def _refuse_hooks(recorder: Recorder, tensors: list[TracedTensor]) -> None:
    """A backend calls a hook with zeros where only other results have gradients, and makes views without it."""
    writing = recorder.effects.keep - recorder.effects.acting
    for hook in recorder.tracked.engine.traced_hooks:
        hooked = hook.tensor
        reached = _reached(hooked.node, writing) | {hooked.node}
        alike = [value for value in tensors if value.root is hooked.root]
        if any(value.node not in reached for value in tensors):
            raise hook.refused("a backend would call the hook for other results of the graph too")
        if len(alike) > 1 or (alike and hooked.root.host is not None):
            raise hook.refused("the tensor shares memory with another")
        if hook.joint and len(tensors) == len(alike) == 1:
            raise hook.refused("torch does not count the end of a graph among what gradients reach")
    for value in recorder.tracked.engine.retaining:
        if len(tensors) > 1 and any(value is other for other in tensors):
            assert value.operation is not None
            why = "two results of a graph are not linked there"
            raise Restart(value.operation.step, errors.AutogradCall(describe_callable(torch.Tensor.retain_grad), why))


def _suit_hooks(recorder: Recorder, tensors: list[TracedTensor]) -> None:
    """A backend gives an argument zeros for results that are not made from it: its hooks would be called with them."""
    writing = recorder.effects.keep - recorder.effects.acting
    for hooked in recorder.tracked.hooked:
        if hooked.source is not None and hooked._node is not None:
            reached = _reached(hooked.node, writing) | {hooked.node}
            recorder.tracked.in_order |= any(value.node not in reached for value in tensors)


def _was_leaf(value: TracedTensor) -> bool:
    """Whether an existing tensor that is written to stays what it is: gradients are not recorded for a leaf."""
    return bool(value.meta.is_leaf if value.meta is not None else value.fake.is_leaf)


def _cut(recorder: Recorder, made: list[tuple[TracedTensor, Operation]], hooked: bool) -> None:
    """End the graph before the first operation on whose result, or on what it writes to, another output depends.

    Ordinary Python performs it: then the tensor has a place of its own in autograd's graph. If it is to be `hooked`, no
    other output may be of the same graph: the hook would be called, with None, when only that one has a gradient.
    """
    for value, operation in sorted(made, key=lambda pair: pair[1].step):
        reached = _reached(value.node, recorder.effects.keep)
        if hooked or any(other.node in reached for other, _ in made if other.node is not value.node):
            about = f"what may be asked about the gradient of a result of {describe_callable(operation.function)}"
            raise Restart(operation.step, errors.AutogradCall(about, "two results of a graph are not linked there"))


def _reached(start: torch.fx.Node, effectful: set[torch.fx.Node]) -> set[torch.fx.Node]:
    """The nodes whose results are made from that of `start`; what an effectful one is given it may have written to."""
    found: set[torch.fx.Node] = set()
    waiting = list(start.users)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.users
            if node in effectful:
                written = [n for n in node.all_input_nodes if n is not start and n not in found]
                found.update(written)
                waiting += [user for n in written for user in n.users]
    return found


# -- whether anybody asks ---------------------------------------------------------------------------------------------

#: methods and attributes by which a program asks for, or changes, the gradients of intermediate tensors
_ASKING = frozenset({"retain_grad", "register_hook", "register_multi_grad_hook", "register_prehook", "next_functions"})
_HOOKING = frozenset(
    {
        *("register_hook", "register_multi_grad_hook", "register_post_accumulate_grad_hook", "register_prehook"),
        "retain_grad",
    }
)
_MOST_CODES = 100


def _asked(recorder: Recorder) -> bool:
    """Whether autograd may be asked about an output: by the code that is resumed after this graph, if by any."""
    return recorder.trace.config.link_outputs or _Asking(recorder.resumed).found


class _Asking:
    """Whether functions, or functions that they name, ask autograd about intermediate tensors, as far as names tell."""

    def __init__(self, frames: list[Frame]) -> None:
        self.seen: set[types.CodeType] = set()
        self.found = any(self.asks(frame.code, _variables(frame.function.host)) for frame in frames)

    def asks(self, code: types.CodeType, variables: list[Scope]) -> bool:
        if code in self.seen or len(self.seen) > _MOST_CODES:
            return False
        self.seen.add(code)
        if self.is_asking(code):
            return True
        if any(self.asks(const, variables) for const in code.co_consts if isinstance(const, types.CodeType)):
            return True
        return any(self.asked_by(_find(variables, name)) for name in (*code.co_names, *code.co_freevars))

    def is_asking(self, code: types.CodeType) -> bool:
        """Whether this code, by itself, does."""
        names = frozenset(code.co_names)
        if names & _ASKING or (  # `autograd.grad(…)`, `backward(…, inputs=…)`
            "grad" in names and "autograd" in names
        ):
            return True
        return "backward" in names and any("inputs" in const for const in code.co_consts if type(const) is tuple)

    def asked_by(self, function: object) -> bool:
        """The same of what a global, or a variable of the function around, is."""
        if function is torch.autograd.grad:
            return True
        if type(function) is not types.FunctionType:
            return False
        leaf = leaf_of(function)
        if leaf is not None:
            return leaf.hook is not None or self.asked_by(leaf.function)
        if not worth_tracing(function.__code__):
            return False
        return self.asks(function.__code__, _variables(function))


class _Hooking(_Asking):
    """Whether they put hooks on tensors, whose gradients they may compute themselves as well."""

    def is_asking(self, code: types.CodeType) -> bool:
        return not _HOOKING.isdisjoint(code.co_names)

    def asked_by(self, function: object) -> bool:
        return function is not torch.autograd.grad and super().asked_by(function)


def registers_hooks(function: object) -> bool:
    """Whether a function, or one that it names, puts hooks on tensors, as far as names tell."""
    return _Hooking([]).asked_by(function)


def _variables(function: Function) -> list[Scope]:
    """Where a function finds what it names: the variables of the functions around it, and its globals."""
    if type(function) is not types.FunctionType:
        return []
    cells = zip(function.__code__.co_freevars, map(_contents, function.__closure__ or ()), strict=True)
    return [dict(cells), function.__globals__]


def _contents(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _find(variables: list[Scope], name: str) -> object:
    return next((scope[name] for scope in variables if name in scope), None)
