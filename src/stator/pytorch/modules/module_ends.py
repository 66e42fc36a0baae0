"""The two ends of a call of a module that has hooks on its gradients, as the graph runs them.

    module.register_full_backward_hook(lambda module, grad_input, grad_output: ...)

torch puts an identity before the module's `forward` and one behind it, each with a hook on its node. Here the
identities compute what the hooks would: the graphs of the program's hooks are parts of their backward passes.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    import torch.fx

__all__ = ["ArgumentsEnd", "ResultEnd"]

Gradients = tuple[torch.Tensor | None, ...]


#: the gradient of the result, as the module's pre-hooks have left it, and what the hooks of the other end use
Passed = tuple[torch.Tensor | None, tuple[Any, ...]]
_NOTHING: Passed = (None, ())


class Link:
    """What the end behind a call hands to the end before it, in a backward pass."""

    def __init__(self) -> None:
        self.passed = _NOTHING


class ArgumentsEnd(torch.nn.Module):
    """Called with the tensors among the arguments; gives those that `forward` is called with.

    `hooks`, set when the other end is known, takes the gradients of the arguments, that of the result, and what it uses
    of the outside; it gives the gradients that go on.
    """

    hooks: torch.fx.GraphModule

    def __init__(self) -> None:
        super().__init__()
        #: of the last call, by thread
        self.links: dict[int, Link] = {}

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        link = self.links[threading.get_ident()] = Link()
        return _BEFORE.apply(self, link, *tensors)  # type: ignore[no-any-return]


class ResultEnd(torch.nn.Module):
    """Called with the module's result, and what the hooks use of the outside; gives what the caller gets.

    Args:
        begin: the other end, if there is one.
        pre_hooks: takes the gradient of the result and what it uses, gives the one that goes on.
        count: how many of the values are used by `pre_hooks`, before those that the hooks of the other end use.
    """

    def __init__(self, begin: ArgumentsEnd | None, pre_hooks: torch.fx.GraphModule, count: int) -> None:
        super().__init__()
        self.begin = begin
        self.pre_hooks = pre_hooks
        self.count = count

    def forward(self, tensor: torch.Tensor, *used: Any) -> torch.Tensor:
        link = None if self.begin is None else self.begin.links.get(threading.get_ident())
        return _BEHIND.apply(self, link, tensor, *used)  # type: ignore[no-any-return]


class _Before(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, end: ArgumentsEnd, link: Link, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.end, ctx.link = end, link
        ctx.mark_non_differentiable(*[tensor for tensor in tensors if not tensor.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Gradients:
        (gradient, used), ctx.link.passed = ctx.link.passed, _NOTHING
        if gradient is None:  # they have not come through the module's result
            return None, None, *gradients
        return None, None, *ctx.end.hooks(*gradients, gradient, *used)


class _Behind(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, end: ResultEnd, link: Link | None, tensor: torch.Tensor, *used: Any) -> torch.Tensor:
        ctx.end, ctx.link = end, link
        ctx.set_materialize_grads(False)
        ctx.tensors = [isinstance(value, torch.Tensor) for value in used]
        ctx.save_for_backward(*[value for value in used if isinstance(value, torch.Tensor)])
        ctx.others = [value for value in used if not isinstance(value, torch.Tensor)]
        return tensor

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor | None) -> Gradients:
        nothing = [None] * len(ctx.tensors)
        if gradient is None:
            return None, None, None, *nothing
        saved, others = iter(ctx.saved_tensors), iter(ctx.others)
        used = [next(saved) if is_tensor else next(others) for is_tensor in ctx.tensors]
        (new,) = ctx.end.pre_hooks(gradient, *used[: ctx.end.count])
        if ctx.link is not None:
            ctx.link.passed = new, tuple(used[ctx.end.count :])
        return None, None, new, *nothing


#: the `grad_fn` of what they give bears the name that torch's function gives it
_BEFORE: Any = type("BackwardHookFunction", (_Before,), {})
_BEHIND: Any = type("BackwardHookFunction", (_Behind,), {})
