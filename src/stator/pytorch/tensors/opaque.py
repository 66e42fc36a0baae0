"""Operators that AOTAutograd cannot functionalise, as operators of Stator's own that run them.

    torch._fused_adamw_(params, grads, exp_avgs, exp_avg_sqs, [], steps, lr=…)

An empty list to write to it takes for tensors that are not its own, and an operator without a kernel that runs without
data it cannot trace. An operator that only writes to what it is given may stand behind another of the same schema
without the empty lists: that one is a custom operator, which every backend takes.
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


def make_opaque(call: Call) -> bool:
    """Let the call be one of an operator of ours; False where it does not call an operator that only writes."""
    found = next((operator for operator in _overloads(call) if _fits(operator, call)), None)
    if found is None:
        return False
    empty = tuple(i for i, arg in enumerate(call.args) if isinstance(arg, list | tuple) and not arg)
    call.function = call.target = _operator(found, empty)
    call.kind, call.args = "call_function", tuple(arg for i, arg in enumerate(call.args) if i not in empty)
    return True


def _overloads(call: Call) -> Iterator[Operator]:
    """The operators that a C function of this name may call."""
    packet = getattr(torch.ops.aten, getattr(call.function, "__name__", ""), None)
    for name in () if packet is None else packet.overloads():
        yield getattr(packet, name)


def _fits(operator: Operator, call: Call) -> bool:
    """Whether the operator gives nothing, and is the one for these arguments."""
    schema = internals.schema(operator)
    named = {argument.name: argument for argument in schema.arguments if argument.kwarg_only}
    positional = len(schema.arguments) - len(named)
    if schema.returns or call.swap or len(call.args) != positional or not named.keys() >= call.kwargs.keys():
        return False
    return all(
        item is None or isinstance(item, Operand) == ("Tensor" in str(named[name].type))
        for name, item in call.kwargs.items()
    )


@functools.cache
def _operator(operator: Operator, empty: tuple[int, ...]) -> Operator:
    """The operator that runs another, with empty lists for the arguments at these places."""
    schema = internals.schema(operator)
    base = schema.name.rpartition("::")[2] + (f"_{schema.overload_name}" if schema.overload_name else "")
    name = "_without_".join([base, *[schema.arguments[i].name for i in empty]])
    parts = str(schema).partition("(")[2].rpartition(") ->")[0].split(", ")
    kept = [part for i, part in enumerate(parts) if i not in empty]

    def run(*args: Any, **kwargs: Any) -> None:
        given = list(args)
        for place in empty:
            given.insert(place, [])
        operator(*given, **kwargs)

    return define(name, f"({', '.join(kept)}) -> ()", run, lambda *args, **kwargs: None)
