"""Operators that AOTAutograd cannot functionalise, as operators of Stator's own that run them.

    torch._fused_adamw_(params, grads, exp_avgs, exp_avg_sqs, [], steps, lr=…, beta1=momentum)

An empty list to write to it takes for tensors that are not its own, an operator without a kernel that runs without
data it cannot trace, and no operator takes a symbol for what its schema calls a float. An operator that only writes to
what it is given may stand behind another of the same schema without the empty lists, and with such a number in a
tensor: that one is a custom operator, which every backend takes.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.own_operators import define
from stator.pytorch.tensors.lowering import Operand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stator.pytorch.tensors.lowering import Call
    from stator.pytorch.types import Operator

__all__ = ["make_opaque"]


def make_opaque(call: Call, boxed: tuple[str, ...] = ()) -> bool:
    """Let the call be one of an operator of ours; False where it does not call an operator that only writes.

    The operator is given tensors for the numbers that have these names.
    """
    found = next((operator for operator in _overloads(call) if _fits(operator, call, boxed)), None)
    if found is None:
        return False
    empty = tuple(i for i, arg in enumerate(call.args) if isinstance(arg, list | tuple) and not arg)
    call.function = call.target = _operator(found, empty, boxed)
    call.kind, call.args = "call_function", tuple(arg for i, arg in enumerate(call.args) if i not in empty)
    return True


def _overloads(call: Call) -> Iterator[Operator]:
    """The operators that a C function of this name may call."""
    packet = getattr(torch.ops.aten, getattr(call.function, "__name__", ""), None)
    for name in () if packet is None else packet.overloads():
        yield getattr(packet, name)


def _fits(operator: Operator, call: Call, boxed: tuple[str, ...]) -> bool:
    """Whether the operator gives nothing, and is the one for these arguments."""
    schema = internals.schema(operator)
    named = {argument.name: argument for argument in schema.arguments if argument.kwarg_only}
    positional = len(schema.arguments) - len(named)
    if schema.returns or call.swap or len(call.args) != positional or not named.keys() >= call.kwargs.keys():
        return False
    return all(
        item is None or isinstance(item, Operand) == (("float" if name in boxed else "Tensor") in str(named[name].type))
        for name, item in call.kwargs.items()
    )


@functools.cache
def _operator(operator: Operator, empty: tuple[int, ...], boxed: tuple[str, ...]) -> Operator:
    """The operator that runs another, with empty lists for the arguments at these places, and with numbers for these
    names, which it is given in tensors."""
    schema = internals.schema(operator)
    base = schema.name.rpartition("::")[2] + (f"_{schema.overload_name}" if schema.overload_name else "")
    name = "_without_".join([base, *[schema.arguments[i].name for i in empty]])
    name = "_with_".join([name, *boxed])
    parts = str(schema).partition("(")[2].rpartition(") ->")[0].split(", ")
    kept = [_typed(part, boxed) for i, part in enumerate(parts) if i not in empty]

    def run(*args: Any, **kwargs: Any) -> None:
        given = list(args)
        for place in empty:
            given.insert(place, [])
        operator(*given, **{**kwargs, **{each: kwargs[each].item() for each in boxed}})

    return define(name, f"({', '.join(kept)}) -> ()", run, lambda *args, **kwargs: None)


def _typed(part: str, boxed: tuple[str, ...]) -> str:
    """A parameter of a schema (`float beta1`, `float? eps=None`), which may be one for a tensor."""
    name = part.rpartition(" ")[2].partition("=")[0]
    return f"Tensor {name}" if name in boxed else part
