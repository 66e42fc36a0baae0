"""Seeing values and gradients of a compiled program without a graph break: what they print is printed in eager too."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from stator.api.leaf import leaf_function

__all__ = ["DebugPrints", "debug_grad_log", "install_debug_prints", "print"]


def print(fmt: str, /, *args: Any, **kwargs: Any) -> None:
    """Print `fmt.format(*args, **kwargs)`, where tensors are shown without their place in autograd's graph.

    In compiled code the text is made of the values of this moment, and printed after the graph, in order with what else
    the program prints.

    Example:
        >>> stator.print("loss {:.3f} of {}", loss, x.shape)
    """
    shown = [_value(arg) for arg in args]
    builtins.print(fmt.format(*shown, **{name: _value(arg) for name, arg in kwargs.items()}))


def _value(arg: Any) -> Any:
    """A tensor without what the text of one names of autograd: a compiled graph has other functions."""
    return arg.detach() if hasattr(arg, "requires_grad") else arg


def debug_grad_log(*tensors: Any) -> None:
    """Print the norm of each tensor's gradient when a backward pass has computed it.

    In compiled code this is a part of the graph. Backends that trace the backward pass (all but `eager`) know gradients
    of a graph's results together: where a result is not made from the tensor the graph breaks (SB0205). So it does with
    `inductor`, which takes no leaf functions (SB0208).

    Example:
        >>> stator.debug_grad_log(hidden, logits)
        >>> loss.backward()
        [backward] t1_grad_norm=1.2910
        [backward] t0_grad_norm=0.5000
    """
    for index, tensor in enumerate(tensors):
        _log_gradient(f"t{index}", tensor)


def _log_gradient(name: str, tensor: Any) -> None:
    if tensor.requires_grad:
        tensor.register_hook(lambda gradient: _print_norm(name, gradient))


@leaf_function
def _print_norm(name: str, gradient: Any) -> None:
    builtins.print(f"[backward] {name}_grad_norm={gradient.norm().item():.4f}")


_print_norm.register_fake(lambda name, gradient: None)


class DebugPrints:
    """The hooks of `install_debug_prints`; `remove()` takes them out, and it may be a context manager."""

    def __init__(self, handles: list[Any]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Print no more."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> DebugPrints:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def install_debug_prints(module: Any, *, gradients: bool = False) -> DebugPrints:
    """Print what each part of a module gives, by forward hooks.

    Args:
        module: an `nn.Module`; its parts are named as in `named_modules()`.
        gradients: print the norms of the gradients too; see `debug_grad_log`.

    Returns:
        What takes the hooks out again.

    Example:
        >>> with stator.install_debug_prints(model):
        ...     compiled(x)
    """
    parts = ((name or type(part).__name__, part) for name, part in module.named_modules())
    return DebugPrints([part.register_forward_hook(_printing(name, gradients)) for name, part in parts])


def _printing(name: str, gradients: bool) -> Callable[[Any, Any, Any], None]:
    def hook(module: Any, args: Any, output: Any) -> None:
        for tensor in output if isinstance(output, tuple | list) else [output]:
            if hasattr(tensor, "requires_grad"):
                print("{}: {}", name, tensor)
                if gradients:
                    _log_gradient(name, tensor)

    return hook
