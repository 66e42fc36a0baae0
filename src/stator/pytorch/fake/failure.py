"""How operations fail on fake tensors, and how messages name operations."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch import internals
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from stator.pytorch.types import Fake

__all__ = ["Failure", "describe_callable", "first_line", "made_fake", "translated", "undecided_in"]

#: what helps where an operator of the program's own has no kernel that runs without data
_REGISTER = "register a fake implementation of the operator (torch.library.register_fake)"
#: what helps where an operation decides by a number that nobody knows
_STATE = "where you know the number, state it before the call, as the page shows; else make the call outside"


class Failure(Exception):
    """The operation raised `error` on fake tensors: the program's own fault, as far as can be seen."""

    def __init__(self, error: Exception, warned: set[type]) -> None:
        super().__init__(str(error))
        self.error = error
        #: the categories of what it warned about before
        self.warned = warned


def translated(function: object, error: Exception, warned: set[type]) -> Exception:
    """What a failure on fake tensors means: a break of a known kind, or the program's own error."""
    fake_tensor = internals.fake_tensor
    undecided = _undecided()
    name = describe_callable(function)
    for cause in causes_of(error):
        if isinstance(cause, fake_tensor.DynamicOutputShapeException):
            return Unsupported(errors.DynamicOutputShape(name))
        if isinstance(cause, fake_tensor.DataDependentOutputException):
            return Unsupported(errors.DataDependentValue(name))
        if isinstance(cause, undecided):
            brk = errors.DataDependentValue(name, "needs a number that depends on the value of a tensor")
            return Unsupported(brk.advising(_STATE))
        if isinstance(cause, fake_tensor.UnsupportedFakeTensorException | fake_tensor.UnsupportedOperatorException):
            return Unsupported(_without_fake(name, cause))
    if _is_about_fakes(error):
        return Unsupported(_without_fake(name, error))
    return Failure(error, warned)


def _without_fake(name: str, error: BaseException) -> errors.Break:
    """The break at an operation that torch has no kernel for that runs without data."""
    brk = errors.UnsupportedTensorOperation(name, first_line(error))
    own = name.startswith("torch.ops.") and not name.startswith(("torch.ops.aten.", "torch.ops.prims."))
    return brk.advising(_REGISTER) if own else brk


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from or while handling, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _undecided() -> tuple[type[BaseException], ...]:
    """The class of the error about a symbol that nobody can decide on, if there may be any."""
    symbols = sys.modules.get("torch.fx.experimental.symbolic_shapes")
    return () if symbols is None else (symbols.GuardOnDataDependentSymNode,)


def undecided_in(error: BaseException) -> BaseException | None:
    """The error about a symbol that nobody can decide on, among the causes of another."""
    return next((cause for cause in causes_of(error) if isinstance(cause, _undecided())), None)


def _is_about_fakes(error: Exception) -> bool:
    text = str(error)
    return ("FakeTensor" in text and "invalid combination" not in text) or "meta tensor" in text or "Meta" in text


def made_fake(make: Callable[[], Fake]) -> Fake:
    """What `make` makes, a fake tensor for a real one: of some kinds of tensors torch can make none."""
    refusals = internals.fake_tensor.UnsupportedFakeTensorException, internals.fake_tensor.UnsupportedOperatorException
    try:
        return make()
    except (RuntimeError, *refusals) as e:
        what = "what is done to a tensor of such a kind"
        raise Unsupported(errors.UnsupportedTensorOperation(what, first_line(e))) from e


def first_line(error: BaseException) -> str:
    """The first line of what an error says."""
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__


def describe_callable(function: object) -> str:
    """How messages name an operation."""
    if isinstance(function, torch.nn.Module):
        return str(getattr(function, "told_as", type(function).__name__))
    if isinstance(function, types.FunctionType) and "told_as" in function.__dict__:
        return str(function.__dict__["told_as"])
    if isinstance(function, internals.OpOverload):
        return f"torch.ops.{internals.schema(function).name.replace('::', '.')}"
    if id(function) in _public_names():
        return _public_names()[id(function)]
    owner = getattr(function, "__objclass__", None)
    name = getattr(function, "__name__", None) or str(function)
    if name in _CONVERSIONS:
        return _CONVERSIONS[name]
    if owner is not None or getattr(function, "__qualname__", "").startswith("Tensor."):
        return f"Tensor.{name}"
    module = getattr(function, "__module__", None) or "torch"
    return f"{module}.{name}".replace("torch._C.", "torch.").replace("torch._ops.", "torch.ops.")


#: methods that make a number of a tensor → how programs call them
_CONVERSIONS = {"__bool__": "bool(tensor)", "__int__": "int(tensor)", "__float__": "float(tensor)"}


@functools.cache
def _public_names() -> dict[int, str]:
    """What torch's modules call the functions that C code has under other names; id → name."""
    modules = (torch.nn.functional, torch.special, torch.fft, torch.linalg, torch.sparse, torch)
    return {
        id(thing): f"{module.__name__}.{name}"
        for module in modules
        for name, thing in vars(module).items()
        if isinstance(thing, types.BuiltinFunctionType) and not name.startswith("_")
    }
