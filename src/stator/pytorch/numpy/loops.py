"""In which data types NumPy's universal functions compute, and the casts that make torch compute in them.

`np.sqrt` of 8-bit integers computes in half precision, `int64_array > 2.5` compares in double precision: torch would
take its default type. So the operands get the types of the loop that NumPy chooses.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from stator.pytorch.types import Host

#: a data type of NumPy's; or a class of numbers of Python's, which is less than any
DType: TypeAlias = Any

__all__ = ["refused", "types_of", "ufunc_of"]

_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "divmod": "divmod",
    "pow": "power",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
_COMPARING = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}


@functools.cache
def _slots() -> dict[str, tuple[np.ufunc, str]]:
    plain = {f"__{name}__": (getattr(np, function), "") for name, function in (_BINARY | _COMPARING | _UNARY).items()}
    reflected = {f"__r{name}__": (getattr(np, function), "reflected") for name, function in _BINARY.items()}
    inplace = {f"__i{name}__": (getattr(np, function), "inplace") for name, function in _BINARY.items()}
    return plain | reflected | inplace


def ufunc_of(host: Host) -> tuple[np.ufunc, str] | None:
    """The universal function that a function or special method of NumPy's is, and which kind of operator."""
    if isinstance(host, np.ufunc):
        return (host, "") if host.signature is None else None
    return _slots().get(host.__name__) if getattr(host, "__objclass__", None) is not None else None


def types_of(ufunc: np.ufunc, kind: str, operands: list[DType]) -> list[DType] | None:
    """The data types to compute in, for those of the operands (Python's types for its numbers), or None."""
    if len(operands) != ufunc.nin:
        return None
    given = operands[::-1] if kind == "reflected" else operands
    try:
        found = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout))
    except (TypeError, ValueError):
        return None
    inputs, result = list(found[: ufunc.nin]), found[-1]
    if result.kind in "fc" and all(dtype.kind in "biu" for dtype in inputs):
        inputs = [result] * ufunc.nin  # true division
    return inputs[::-1] if kind == "reflected" else inputs


def refused(ufunc: np.ufunc, kind: str, types: list[DType], known: list[bool]) -> str | None:
    """Why torch's function of this name does not give NumPy's results, or None; `known` tells operands that are."""
    exponent = 0 if kind == "reflected" else -1
    if ufunc is np.power and types[-1].kind == "i" and not known[exponent]:
        return "an integer that is raised to a negative power is an error"
    return None
