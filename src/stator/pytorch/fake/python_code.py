"""Whether a graph runs code of the program's: an operator that it has registered, a function that was left whole."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

from stator.pytorch import internals
from stator.pytorch.tensors.classes import is_plain_class
from stator.pytorch.tensors.tensor import tensors_among

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Operation
    from stator.pytorch.types import Function

__all__ = ["runs_no_python"]

_WRITTEN_IN_C = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


def runs_no_python(recorder: Recorder) -> bool:
    """Whether every operation is certainly one of torch's own, on plain tensors."""
    return all(map(_is_native, recorder.nodes.operations.values()))


def _is_native(operation: Operation) -> bool:
    tensors = tensors_among(operation.operands)
    return _is_torchs(operation.function) and all(is_plain_class(tensor.cls) for tensor in tensors)


def _is_torchs(function: Function) -> bool:
    if isinstance(function, internals.OpOverload):
        return function.name().partition("::")[0] in ("aten", "prims")
    if isinstance(function, types.FunctionType):
        return function.__module__.partition(".")[0] == "torch"
    return isinstance(function, _WRITTEN_IN_C)
