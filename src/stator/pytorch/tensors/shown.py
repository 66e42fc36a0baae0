"""Text of tensors: it waits for the graph, which keeps the contents of this moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.models.numbers.number_text import shows_any
from stator.pytorch import internals
from stator.pytorch.autograd.nodes import node_name
from stator.pytorch.tensors.latent import is_known_leaf
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.deferred import DeferredStr
from stator.space.protocol import register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.space import Space

__all__ = ["install"]


def _text(function: Function, name: str) -> Any:
    """A method that shows a tensor."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tensor: torch.Tensor = args[0].force()
        options = [arg.force() for arg in args[1:]]
        plain = isinstance(tensor, TensorValue) and tensor.cls is torch.Tensor
        shape = tensor.shape if isinstance(tensor, TensorValue) else ()
        if not plain or kwargs or (any(space.known(o) not in (None, "") for o in options) and len(shape)):
            raise Unsupported(errors.PrintOfTensor(name))
        if _is_shown_otherwise(space):
            raise Unsupported(errors.PrintOfTensor(name))
        options = options if function is format else []
        if not shape and not shows_any(space, function, torch.ones((), dtype=tensor.dtype), options):
            raise Unsupported(errors.PrintOfTensor(name))
        shows = function
        if tensor.requires_grad:
            if function is repr or len(shape):  # the text of a number alone says nothing of autograd
                shows, options = _with_history, [Constant(_history(tensor, name))]
            tensor = record_method(space, "detach", tensor)
        kept = record_method(space, "clone", tensor)
        return DeferredStr([(shows, [kept, *options])])

    return handler


def _is_shown_otherwise(space: Space) -> bool:
    """Whether the program has changed how tensors are shown: text is made after the graph, and before such effects."""
    kept: list[Host] = [internals.print_options, vars(internals.print_options)]
    changed = any(host is each for host in space.trace.effects.changed_hosts() for each in kept)
    return changed or space.trace.recorder.state.differs("default dtype")


def _history(tensor: TensorValue, name: str) -> str:
    """The name of the function that made a tensor, as eager execution shows it; "" for a leaf."""
    if is_known_leaf(tensor):
        return ""
    made_by = node_name(tensor)
    if made_by is None:
        raise Unsupported(errors.PrintOfTensor(name))
    return made_by


class _Shown(torch.Tensor):
    """Detached, it looks as if autograd knew it: a compiled graph has other functions than the program."""

    made_by: str

    @property
    def grad_fn(self) -> object:
        """What only its class is read of."""
        return type(self.made_by, (), {})() if self.made_by else None

    @property
    def requires_grad(self) -> bool:
        """It did."""
        return True


#: what stands before the contents
_Shown.__name__ = "tensor"


def _with_history(tensor: torch.Tensor, made_by: str) -> str:
    """`repr()` of the tensor, had this function made it; "" for a leaf."""
    with internals.DisableTorchFunctionSubclass():
        shown = tensor.as_subclass(_Shown)
        shown.made_by = made_by
        return repr(shown)


def install() -> None:
    """Register the models."""
    register(torch.Tensor.__format__, _text(format, "Tensor.__format__"))
    register(torch.Tensor.__repr__, _text(repr, "Tensor.__repr__"))
