"""What is known about torch's callables, by name."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.guards.raw import members
from stator.pytorch import internals

if TYPE_CHECKING:
    from stator.pytorch.types import Function

_ARITHMETIC: tuple[str, ...] = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow")
_ARITHMETIC += ("lshift", "rshift", "and", "or", "xor")
#: those that write their first operand
INPLACE: dict[str, tuple[Callable[..., Any], bool]] = {
    f"__i{name}__": (getattr(operator, f"i{name}"), False) for name in _ARITHMETIC if name != "matmul"
}
#: special methods recorded as Python's operators: name → (operator, arguments exchanged)
BINARY: dict[str, tuple[Function, bool]] = {
    **{f"__{name}__": (getattr(operator, f"__{name}__"), False) for name in _ARITHMETIC},
    **{f"__r{name}__": (getattr(operator, f"__{name}__"), True) for name in _ARITHMETIC},
    **INPLACE,
    **{f"__{name}__": (getattr(operator, name), False) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"__{name}__": (getattr(operator, name), False) for name in ("neg", "pos", "abs")},
    "__invert__": (operator.invert, False),
    "__getitem__": (operator.getitem, False),
    "__setitem__": (operator.setitem, False),
    "__rdiv__": (operator.truediv, True),
}

#: methods written in Python that are one operation
PYTHON_METHODS = frozenset(
    {"norm", "split", "unique", "unique_consecutive", "unflatten", "stft", "istft", "lu", "resize", "to_sparse_coo"}
)

#: methods whose result, though no tensor, follows from the metadata alone
METADATA = frozenset(
    {
        *("size", "stride", "dim", "ndimension", "numel", "nelement", "element_size", "storage_offset", "get_device"),
        *("is_contiguous", "is_floating_point", "is_complex", "is_signed", "is_conj", "is_neg", "is_inference", "type"),
        *("is_same_size", "is_distributed", "is_coalesced", "sparse_dim", "dense_dim", "qscheme", "dim_order"),
        *("is_non_overlapping_and_dense", "is_strides_like"),
    }
)


def _value(name: str) -> Any:
    return errors.DataDependentValue(name)


def _autograd(name: str) -> Any:
    return errors.AutogradCall(name)


def _text(name: str) -> Any:
    return errors.PrintOfTensor(name)


def _memory(name: str) -> Any:
    return errors.UnsupportedTensorOperation(name, "it depends on where the data lies")


def _itself(name: str) -> Any:
    return errors.UnsupportedTensorOperation(name, "it may give the tensor itself, which fake tensors do not show")


def _kind(name: str) -> Any:
    return errors.UnsupportedTensorOperation(name, "it changes what kind of tensor an existing object is")


#: methods that break the graph, and why
REFUSED: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("numpy", "__array__", "__array_wrap__", "__dlpack__", "__complex__"), _value),
    **dict.fromkeys(("backward", "reinforce"), _autograd),
    **dict.fromkeys(("__repr__", "__format__", "__str__"), _text),
    "dequantize": _itself,
    **dict.fromkeys(
        (
            *("data_ptr", "storage", "untyped_storage", "_typed_storage", "is_pinned", "is_shared", "share_memory_"),
            *("is_set_to", "__hash__", "__reduce_ex__", "_reduce_ex_internal", "__setstate__"),
            *("__dlpack_device__", "const_data_ptr", "mutable_data_ptr", "_storage", "_use_count", "_is_view"),
            *("_clear_non_serializable_cached_data", "module_load", "_fix_weakref", "map_", "map2_", "apply_"),
            *("storage_type", "record_stream", "_view_func"),
        ),
        _memory,
    ),
    **dict.fromkeys(("set_data", "as_subclass", "_set_data"), _kind),
}

#: modules whose public functions are one operation each
OPERATION_MODULES = frozenset({"torch.nn.functional", "torch.functional", "torch._lowrank", "torch.sparse"})

#: functions of those modules that are traced into all the same
TRACED = frozenset(
    {
        *("assert_int_or_pair", "handle_torch_function", "broadcast_shapes", "boolean_dispatch", "compile"),
        *("ctc_loss", "gaussian_nll_loss"),  # they ask, or call what asks, for data
    }
)


@functools.cache
def operator_ids() -> set[int]:
    """The ids of all C functions that are tensor operations."""
    found: set[int] = set()
    for space in internals.operator_spaces():
        for name in dir(space):
            host = getattr(space, name)
            if isinstance(host, types.BuiltinFunctionType) and name not in NO_OPERATIONS:
                found.add(id(host))
                _kept.append(host)
    variables = frozenset(dir(internals.VariableFunctions)) - NO_OPERATIONS
    return found | {id(f) for name, f in members(torch, types.BuiltinFunctionType).items() if name in variables}


_kept: list[Any] = []

#: members of torch's name spaces of operators that are none
NO_OPERATIONS = frozenset(
    {
        *("from_file", "frombuffer", "from_numpy", "_to_functional_tensor", "_from_functional_tensor", "_sync"),
        *("_enable_functionalization", "_disable_functionalization", "_freeze_functional_tensor", "set_flush_denormal"),
        *("_mirror_autograd_meta_to", "_use_cudnn_ctc_loss"),
        *("_cufft_set_plan_cache_max_size", "_cufft_clear_plan_cache"),
        *("_is_functional_tensor", "_functionalize_replace", "_functionalize_commit_update", "_functionalize_sync"),
        *("get_device", "__new__", "__init__"),
    }
)


@functools.cache
def tensor_functions() -> dict[Any, str]:
    """Python functions found under names of Tensor though their own names say otherwise (wrapped ones)."""
    return {f: name for name, f in members(torch.Tensor, types.FunctionType).items()}
