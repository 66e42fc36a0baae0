"""Whether the backward pass of an operator can be traced, which AOTAutograd does when it compiles the graph.

    torch.cond(p, lambda a: a @ w, lambda a: a - w.sum(), (a,))

gives a gradient of `w` that is dense in one branch and expanded in the other, and one node cannot give both: that is
found here, where the call can still be left to Python, and not when the backend is called.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch

from stator.pytorch.nesting import tensors_in
from stator.pytorch.tensors.lowering import Call, fill
from stator.pytorch.tensors.tensor import TensorValue, tensors_among

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import FakeOperand
    from stator.space.value import Value

__all__ = ["failure_of_backward"]


def failure_of_backward(recorder: Recorder, call: Call) -> str | None:
    """What goes wrong in the backward pass of a call on fake tensors; None if nothing does."""
    if not torch.is_grad_enabled() or not any(tensor.requires_grad for tensor in tensors_among(call.operands)):
        return None
    env = recorder.shapes.env if recorder.shapes.begun else None
    mode = recorder.fakes.executor.mode
    try:
        with mode, nullcontext() if env is None else env.ignore_fresh_unbacked_symbols():
            leaves = [_leaf(operand) for operand in call.operands]
            result = call.function(*fill(call.args, leaves), **fill(call.kwargs, leaves))
            made = [tensor for tensor in tensors_in(result) if tensor.requires_grad]
            torch.autograd.backward(made, [torch.empty_like(tensor) for tensor in made])
    except Exception as e:  # whatever it is, the backend would meet it
        return str(e).partition("\n")[0][:200]
    return None


def _leaf(operand: Value) -> FakeOperand:
    """A fake operand that gradients are accumulated in."""
    fake: FakeOperand = operand.fake  # type: ignore[attr-defined]
    return fake.detach().requires_grad_(fake.requires_grad) if isinstance(operand, TensorValue) else fake
