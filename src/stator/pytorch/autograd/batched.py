"""`torch.autograd.grad(…, is_grads_batched=True)` at sizes that vary.

torch runs the engine inside of its first vmap, whose rules in C++ take sizes as numbers. The vmap of torch.func takes
symbols as well, so that in graphs with symbols the engine is run inside of that one.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch
import torch.autograd

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["batched_grad"]

_SIGNATURE = inspect.signature(torch.autograd.grad)


def batched_grad(*args: Any, **kwargs: Any) -> Any:
    """What `torch.autograd.grad` gives for these arguments, with `is_grads_batched=True` among them."""
    asked = _SIGNATURE.bind(*args, **kwargs).arguments
    given = asked.pop("grad_outputs")
    grads = [given] if isinstance(given, torch.Tensor) else list(given)
    there: list[bool] = []

    def one(*each: torch.Tensor) -> Sequence[torch.Tensor]:
        some = iter(each)
        asked["grad_outputs"] = [None if grad is None else next(some) for grad in grads]
        found = torch.autograd.grad(**{**asked, "is_grads_batched": False})
        there[:] = [grad is not None for grad in found]
        return tuple(grad for grad in found if grad is not None)

    some = iter(torch.func.vmap(one)(*[grad for grad in grads if grad is not None]))
    return tuple(next(some) if is_there else None for is_there in there)
