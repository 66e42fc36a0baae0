"""Which of NumPy's functions may meet a floating-point error, and what in their operands and results tells of it.

torch computes without a word where NumPy warns. So a graph with functions that NumPy might warn about has a check: a
number that is finite only if no result, and no bound of what is added up on the way to one, is infinite or NaN. The
check may fail where there was no error (for data that were infinite before); it must not pass where there was one.
Functions that stand in none of the tables are left to NumPy.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from stator.pytorch.nesting import leaves_of
from stator.pytorch.numpy.loops import DType, ufunc_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stator.pytorch.tensors.tensor import TensorValue
    from stator.pytorch.types import Host, Kwargs, Nested

__all__ = [
    "BOUND",
    "CAST",
    "DIVISION",
    "MEAN",
    "PRODUCT",
    "QUIET",
    "RESULT",
    "SUM",
    "carried",
    "casts_badly",
    "kind_of",
    "too_big",
]

#: no flag is set
QUIET = "quiet"
#: a flag is set only where an element of the result is not finite
RESULT = "result"
#: also by what is added up on the way, in an order that need not be torch's: the operands' magnitudes bound it
BOUND = "bound"
#: the sum of the operand's magnitudes bounds the result as well; that of a mean if there are elements
SUM = "sum"
MEAN = "mean"
#: the same for what is multiplied up
PRODUCT = "product"
#: integers are divided: a divisor of zero sets a flag, and the smallest number divided by -1
DIVISION = "division"
#: elements are converted to another data type
CAST = "cast"

# -- universal functions ----------------------------------------------------------------------------------------------

#: they choose, round or change the sign (those that compare, or are of integers alone, are known by their loops)
_QUIET_UFUNCS = frozenset(
    (
        *("maximum", "minimum", "fmax", "fmin", "sign", "copysign", "heaviside"),
        *("ceil", "floor", "trunc", "rint", "negative", "positive", "fabs", "conjugate"),
    )
)
_FLOATS = frozenset("efdgFDG")
#: whatever the operands, real or complex, an error leaves infinity or NaN in its place
_PLAIN_UFUNCS = frozenset({"add", "subtract", "multiply", "absolute", "square"})
_REAL_UFUNCS = _PLAIN_UFUNCS | frozenset(
    (
        *("divide", "true_divide", "floor_divide", "remainder", "fmod", "divmod", "power", "float_power", "reciprocal"),
        *("sqrt", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "hypot"),
        *("sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "arctan2"),
        *("arcsinh", "arccosh", "arctanh", "deg2rad", "radians", "rad2deg", "degrees", "nextafter", "ldexp"),
    )
)
#: of integers, with integers as results, they wrap around in silence
_INTEGER_UFUNCS = frozenset({"add", "subtract", "multiply", "absolute", "square", "power"})
_DIVIDING_UFUNCS = frozenset({"floor_divide", "remainder", "fmod", "divmod"})
#: an operand that is not finite makes the result so: number of the first such operands
_CARRYING = {"add": 2, "subtract": 2, "multiply": 2, "square": 1, "absolute": 1, "divide": 1}

# -- other functions and methods --------------------------------------------------------------------------------------

#: views, indices, shapes, comparisons, and copies in the data type of the operand
_QUIET = frozenset(
    (
        *("all", "any", "argmax", "argmin", "argsort", "argwhere", "array_equal", "array_equiv", "array_split"),
        *("ascontiguousarray", "asfortranarray", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays"),
        *("broadcast_shapes", "broadcast_to", "can_cast", "common_type", "copy", "count_nonzero", "diag"),
        *("diag_indices", "diag_indices_from", "diagflat", "diagonal", "dsplit", "empty", "empty_like", "expand_dims"),
        *("eye", "fft.fftshift", "fft.ifftshift", "flatnonzero", "flip", "fliplr", "flipud", "hsplit", "identity"),
        *("imag", "indices", "iscomplex", "iscomplexobj", "isneginf", "isposinf", "isreal", "isrealobj", "meshgrid"),
        *("min_scalar_type", "moveaxis", "ndim", "nonzero", "ones", "ones_like", "ravel", "real", "repeat", "reshape"),
        *("resize", "result_type", "roll", "rollaxis", "rot90", "searchsorted", "shape", "size", "sort", "split"),
        *("squeeze", "swapaxes", "take", "take_along_axis", "tile", "transpose", "tri", "tril", "tril_indices"),
        *("tril_indices_from", "triu", "triu_indices", "triu_indices_from", "unique", "vsplit", "zeros", "zeros_like"),
        *("__getitem__", "__contains__", "T", "conj", "flatten", "view", "real_if_close"),
        # their errors are exceptions, or are suppressed by NumPy itself
        *("linalg.cholesky", "linalg.eig", "linalg.eigh", "linalg.eigvals", "linalg.eigvalsh", "linalg.inv"),
        *("linalg.lstsq", "linalg.qr", "linalg.solve", "linalg.svd", "linalg.tensorinv", "linalg.tensorsolve"),
    )
)
#: of these: what they make has zeros and ones, or what is there, which every data type has
_FILLED = frozenset({"empty", "empty_like", "eye", "identity", "ones", "ones_like", "tri", "zeros", "zeros_like"})
#: they move elements, perhaps to another data type
_MOVING = frozenset(
    (
        *("append", "array", "asarray", "astype", "choose", "clip", "column_stack", "concatenate", "copyto", "dstack"),
        *("fill", "fill_diagonal", "full", "full_like", "hstack", "max", "min", "amax", "amin", "nan_to_num", "pad"),
        *("put", "put_along_axis", "row_stack", "stack", "vstack", "where", "__setitem__"),
    )
)
_MADE = frozenset({"arange", "linspace", "fft.fftfreq", "fft.rfftfreq", "bartlett", "hamming", "hanning", "blackman"})
#: what they add up is at most a product of the sums of the operands' magnitudes
_SUMMING = frozenset(
    (
        *("sum", "mean", "average", "cumsum", "trace", "var", "std", "diff", "ptp", "median", "percentile", "quantile"),
        *("dot", "inner", "outer", "vdot", "kron", "matmul", "__matmul__", "__rmatmul__", "tensordot", "einsum"),
        *("convolve", "correlate", "cross", "cov", "around", "round", "fix", "isclose", "allclose", "sinc"),
        *("fft.fft", "fft.fft2", "fft.fftn", "fft.ifft", "fft.ifft2", "fft.ifftn", "fft.rfft", "fft.rfft2"),
        *("fft.rfftn", "fft.irfft", "fft.irfft2", "fft.irfftn", "fft.hfft", "fft.ihfft", "linalg.multi_dot"),
    )
)
#: they order what they are given
_ORDERING = frozenset({"median", "percentile", "quantile"})
#: they write to their first operand, and give nothing back
_WRITING = frozenset({"copyto", "fill", "fill_diagonal", "put", "put_along_axis", "__setitem__"})


def kind_of(host: Host, name: str, operands: Sequence[DType], result: Nested, options: Kwargs) -> str | None:
    """What tells of floating-point errors of a call: one of the above, or None where nothing does.

    Args:
        host: NumPy's function.
        name: its name, as `array_calls.array_call` knows it.
        operands: the data types of the arrays among the operands.
        result: what the function gives for samples.
        options: the names of the keyword arguments.
    """
    results = [part.dtype for part in leaves_of(result) if isinstance(part, np.ndarray | np.generic)]
    found = ufunc_of(host)
    if found is not None:
        return _of_ufunc(found[0], operands, results, options)
    plain = name.removeprefix("ndarray.")
    if plain in _QUIET:
        minded = {"out"} if plain in _FILLED else {"out", "dtype"}
        return None if minded & set(options) else QUIET
    if plain in _MOVING:
        target = operands[:1] if plain in _WRITING else results
        return CAST if any(casts_badly(own, to) for own in operands for to in target) else QUIET
    if plain in _MADE:
        return RESULT
    if plain in _ORDERING and any(dtype.kind == "c" for dtype in operands):
        return None  # torch compares the real parts, and warns that it drops the others
    if plain == "prod" or plain == "cumprod":
        kind = PRODUCT
    elif plain in ("sum", "cumsum", "trace", "mean") and not {"where", "initial", "out", "dtype"} & set(options):
        kind = MEAN if plain == "mean" else SUM
    elif plain in _SUMMING or (plain == "linalg.norm" and not {"ord"} & set(options)):
        kind = BOUND
    else:
        return RESULT if plain == "linalg.det" else None
    if any(casts_badly(own, to) for own in operands for to in results if to != np.dtype(bool)):
        return None
    return QUIET if all(dtype.kind in "biu" for dtype in (*operands, *results)) else kind


@functools.cache
def _is_quiet(ufunc: np.ufunc) -> bool:
    """Whether a universal function sets no flag, whatever it is given."""
    loops = [loop.split("->") for loop in ufunc.types if "O" not in loop]
    compares = all(answer == "?" for _, answer in loops)
    return compares or ufunc.__name__ in _QUIET_UFUNCS or not any(_FLOATS & set(given) for given, _ in loops)


def _of_ufunc(ufunc: np.ufunc, operands: Sequence[DType], results: Sequence[DType], options: Kwargs) -> str | None:
    name = ufunc.__name__
    if options and (set(options) != {"out"} or len({*operands, *results}) > 1):
        return None
    if _is_quiet(ufunc):
        return QUIET
    if any(dtype.kind == "c" for dtype in (*operands, *results)):
        return RESULT if name in _PLAIN_UFUNCS else None
    if all(dtype.kind in "biu" for dtype in results):
        return QUIET if name in _INTEGER_UFUNCS else DIVISION if name in _DIVIDING_UFUNCS else None
    return RESULT if name in _REAL_UFUNCS else None


def carried(host: Host, operands: Sequence[TensorValue]) -> Sequence[TensorValue]:
    """Those of the operands whose infinities and NaNs are found again in the result."""
    found = ufunc_of(host)
    if found is None:
        return ()
    count = _CARRYING.get(found[0].__name__, 0)
    return operands[::-1][:count] if found[1] == "reflected" else operands[:count]


def casts_badly(own: DType, to: DType) -> bool:
    """Whether the conversion of elements to another data type may set a flag."""
    if to.kind == "b" or own.kind == "b":
        return False
    if own.kind in "iu":
        return bool(to == np.float16 and own.itemsize > 1)
    return bool(to.kind in "iu" or np.finfo(to).max < np.finfo(own).max)


def too_big(args: Nested, dtypes: Sequence[DType]) -> bool:
    """Whether a known number among the arguments is infinite in the data type of an operand."""
    floats = [np.finfo(dtype).max for dtype in dtypes if dtype.kind in "fc"]
    limit = min(map(float, floats), default=math.inf)
    limit = min([limit, *(float(np.iinfo(dtype).max) for dtype in dtypes if dtype.kind in "iu")])
    numbers = [abs(leaf) for leaf in leaves_of(args) if isinstance(leaf, float | complex)]
    return any(limit < number < math.inf for number in numbers)
