"""Whether the backward pass of an operator can be traced, which AOTAutograd does when it compiles the graph.

    torch.cond(p, lambda a: a @ w, lambda a: a - w.sum(), (a,))

gives a gradient of `w` that is dense in one branch and expanded in the other, and one node cannot give both: that is
found here, where the call can still be left to Python, and not when the backend is called.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.nesting import tensors_in
from stator.pytorch.tensors.lowering import Call, fill
from stator.pytorch.tensors.tensor import TensorValue, tensors_among

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Function

__all__ = ["failure_of_backward"]


#: the operation of autograd's graph that stands where an operator has no backward pass
_NOT_IMPLEMENTED = "Error"


class _Traced(Exception):
    """AOTAutograd has traced all there is, and wants it compiled."""


def failure_of_backward(recorder: Recorder, call: Call) -> str | None:
    """What goes wrong when AOTAutograd traces a call with its backward pass; None if nothing does."""
    if not torch.is_grad_enabled() or not any(tensor.requires_grad for tensor in tensors_among(call.operands)):
        return None

    def forward(*tensors: torch.Tensor) -> list[torch.Tensor]:
        given = iter(tensors)
        operands = [next(given) if isinstance(operand, TensorValue) else operand.fake for operand in call.operands]  # type: ignore[attr-defined]
        made = list(tensors_in(call.function(*fill(call.args, operands), **fill(call.kwargs, operands))))
        if any(type(tensor.grad_fn).__name__ == _NOT_IMPLEMENTED for tensor in made):
            raise NotImplementedError("there is none")  # eager raises in backward; AOTAutograd would give no gradients
        return made

    env = recorder.shapes.env if recorder.shapes.begun else None
    leaves = [tensor.fake.detach().requires_grad_(tensor.requires_grad) for tensor in tensors_among(call.operands)]
    try:
        with nullcontext() if env is None else env.ignore_fresh_unbacked_symbols():
            internals.aot_function(forward, _traced, partition_fn=_traced)(*leaves)
    except _Traced:
        return None
    except Exception as e:  # whatever it is, the backend would meet it
        return str(e).partition("\n")[0][:200]
    return None


def _traced(graph: torch.fx.GraphModule, inputs: object, **options: object) -> Function:
    """Called for the forward pass alone, or for both, which are one graph then, before that is taken apart."""
    raise _Traced
