"""Functions on NumPy's arrays as operations of the graph, and what NumPy itself would answer.

torch has NumPy's functions for tensors (`torch._numpy`). One is recorded only if NumPy's own, asked with arrays of the
same metadata, gives a result of the same kind, type, shape and memory.
"""

from __future__ import annotations

import functools
import math
import types
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stator import errors
from stator.guards.raw import owner_of
from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of, is_symbol
from stator.pytorch.nesting import map_leaves, tensors_in
from stator.pytorch.shapes.computed import depends_on_draws
from stator.pytorch.shapes.indices import item_at, set_item_at
from stator.pytorch.tensors.lowering import fill
from stator.space.value import Unsupported
from stator.space.warning_trap import collected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stator.pytorch.types import Args, FakeOperand, Function, Host, Kwargs, Nested, Number
    from stator.space.value import Value

__all__ = [
    "Answer",
    "Kind",
    "array_call",
    "ask",
    "assume_sizes",
    "computed",
    "name_of",
    "refusal",
    "refuse_drawn",
    "same_sizes",
    "strides_of",
]

#: the class of an array or a scalar, and its strides where they are not those of its tensor
Kind = tuple[type, tuple[int, ...] | None]

#: parts of NumPy with functions of their own
_PARTS = ("", "linalg", "fft")
_MOST_BYTES = 1 << 26
#: special methods are looked up on the class of the array, or of the scalar
_METHOD = "ndarray."


@functools.cache
def _names() -> dict[int, str]:
    """NumPy's functions that torch has too: id → name."""
    ours = internals.numpy
    found: dict[int, str] = {}
    for part in _PARTS:
        theirs, mine = (getattr(module, part) if part else module for module in (np, ours))
        for name in dir(mine):
            host = getattr(theirs, name, None)
            if isinstance(host, _KINDS) and callable(getattr(mine, name)) and name not in _LEFT_OUT:
                found[id(host)] = f"{part}.{name}" if part else name
    return found | {id(getattr(np, name)): name for name in _OWN}


#: what NumPy's functions are; classes are none
_KINDS = (np.ufunc, type(np.sum), types.BuiltinFunctionType, types.FunctionType)
#: functions that compute nothing, and what torch._numpy computes otherwise (of negative numbers)
_LEFT_OUT = frozenset({"isscalar", "issubdtype", "from_dlpack", "modf", "cbrt"})


def is_method(host: Host) -> bool:
    """Whether it is a method of arrays or scalars."""
    owner = owner_of(host)
    return owner is not None and issubclass(owner, np.ndarray | np.generic)


def name_of(host: Host) -> str | None:
    """The name by which `array_call` knows a function or method of NumPy's, or None."""
    if owner_of(host) is None:
        return _names().get(id(host))
    if not is_method(host):
        return None
    ours = internals.numpy
    name = host.__name__
    return _METHOD + name if name in vars(ours.ndarray) else None


def refusal(name: str, why: str) -> Unsupported:
    """The break at a call that cannot be an operation of the graph."""
    return Unsupported(errors.UnsupportedTensorOperation(f"numpy.{name}", why))


def refuse_drawn(name: str, args: list[Value]) -> None:
    """Leave a call to NumPy that is given numbers of Python's only, of which a random generator draws one: torch would
    make a constant of it."""
    values: list[Any] = [arg.force() for arg in args]
    if all(value.cls in (int, float) for value in values) and any(v.symbolic and depends_on_draws(v) for v in values):
        raise refusal(name, "a number that is drawn cannot be an argument in a graph")


@functools.cache
def told_as_numpys(name: str) -> Function:
    """`array_call`, which messages about a call call by the name of NumPy's function."""

    def function(*args: object, **kwargs: object) -> Nested:
        return array_call(*args, **kwargs)  # type: ignore[arg-type]

    function.told_as = f"numpy.{name}"  # type: ignore[attr-defined]
    return function


def array_call(name: str, /, *args: object, **kwargs: object) -> Nested:
    """Call one of NumPy's functions on tensors: what graphs contain."""
    if name in _LAID_OUT:  # as NumPy's result lies, which the caller sees to
        kwargs.pop("order", None)
    given, named = map_leaves(_wrapped, (args, kwargs))
    return map_leaves(_unwrapped, _function(name)(*given, **named))


@functools.cache
def _function(name: str) -> Function:
    ours = internals.numpy
    if name in _OWN:
        return _OWN[name]
    if not name.startswith(_METHOD):
        return functools.reduce(getattr, name.split("."), ours)
    if name in _OWN_METHODS:
        return _OWN_METHODS[name]
    found = vars(ours.ndarray)[name.removeprefix(_METHOD)]
    return found.__get__ if isinstance(found, property) else found


def _pad(array: Host, pad_width: Host, mode: str = "constant", constant_values: Host = 0) -> Host:
    """`numpy.pad`, for which torch._numpy makes a tensor of the widths."""
    if mode != "constant" or not isinstance(constant_values, int | float | complex):
        raise NotImplementedError
    tensor = internals.numpy.asarray(array).tensor
    widths = np.broadcast_to(pad_width, (tensor.ndim, 2)).tolist()
    flat = [width for pair in reversed(widths) for width in pair]
    return internals.numpy.ndarray(torch.nn.functional.pad(tensor, flat, value=constant_values))


def _array(items: Host, dtype: Host = None, **options: Host) -> Host:
    """`numpy.array`, for which torch._numpy takes no list that arrays are in."""
    ours = internals.numpy
    if not isinstance(items, list | tuple) or options:
        return ours.array(items, dtype, **options)
    parts = [_array(item, dtype) for item in items]
    return ours.stack(parts) if parts else ours.array(items, dtype)


def _in_columns(array: Host, dtype: Host = None) -> Host:
    """`numpy.asfortranarray`, of an array that lies otherwise."""
    return internals.numpy.array(array, dtype)


def _remainder(dividend: Host, divisor: Host, **options: Host) -> Host:
    """`numpy.remainder`, of which a zero has the sign of the divisor, and of torch's that of the dividend."""
    found = internals.numpy.remainder(dividend, divisor, **options)
    return internals.numpy.ndarray(_signed_as(divisor, found.tensor))


def _divmod(dividend: Host, divisor: Host, **options: Host) -> Host:
    quotient, remainder = internals.numpy.divmod(dividend, divisor, **options)
    return quotient, internals.numpy.ndarray(_signed_as(divisor, remainder.tensor))


def _inplace_remainder(array: Host, divisor: Host) -> Host:
    array.tensor.copy_(_remainder(array, divisor).tensor)
    return array


def _signed_as(divisor: Host, remainder: torch.Tensor) -> torch.Tensor:
    if not remainder.dtype.is_floating_point:
        return remainder
    sign = getattr(divisor, "tensor", divisor)
    return torch.where(remainder == 0, torch.copysign(remainder, sign).to(remainder.dtype), remainder)


def _item(array: Host, index: Host) -> Host:
    """`array[index]`, in which symbols stay what they are: one graph for all numbers."""
    if not _is_by_symbols(index):
        return internals.numpy.ndarray.__getitem__(array, index)
    return internals.numpy.ndarray(item_at(array.tensor, index))


def _set_item(array: Host, index: Host, value: Host) -> None:
    """`array[index] = value`, likewise."""
    if not _is_by_symbols(index):
        internals.numpy.ndarray.__setitem__(array, index, value)
        return
    if not isinstance(value, bool | int | float | complex):
        value = internals.numpy.asarray(value).tensor.to(array.tensor.dtype)
    set_item_at(array.tensor, index, value)


def _is_by_symbols(index: Host) -> bool:
    """Whether there are symbols among the parts of an index, beside which are numbers and slices only."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(map(is_symbol, parts)) and all(
        is_symbol(part) or part is None or part is ... or type(part) is int or _is_forward(part) for part in parts
    )


def _is_forward(part: Host) -> bool:
    return isinstance(part, slice) and (part.step is None or (type(part.step) is int and part.step > 0))


_OWN: dict[str, Function] = {
    "pad": _pad,
    "array": _array,
    "asarray": _array,
    "asfortranarray": _in_columns,
    "mod": _remainder,
    "remainder": _remainder,
    "divmod": _divmod,
}
_OWN_METHODS: dict[str, Function] = {
    "ndarray.__getitem__": _item,
    "ndarray.__setitem__": _set_item,
    "ndarray.__mod__": _remainder,
    "ndarray.__rmod__": lambda divisor, dividend: _remainder(dividend, divisor),
    "ndarray.__imod__": _inplace_remainder,
    "ndarray.__divmod__": _divmod,
    "ndarray.__rdivmod__": lambda divisor, dividend: _divmod(dividend, divisor),
}
#: functions whose `order` says no more than how the result lies in memory
_LAID_OUT = frozenset(
    (
        *("array", "asarray", "copy", "full", "full_like", "ndarray.astype", "ndarray.copy", "ones", "ones_like"),
        *("zeros", "zeros_like"),
    )
)


def _wrapped(leaf: Nested) -> Nested:
    return internals.numpy.ndarray(leaf) if isinstance(leaf, torch.Tensor) else leaf


def _unwrapped(leaf: Nested) -> Nested:
    return leaf.tensor if isinstance(leaf, internals.numpy.ndarray) else leaf


# -- what NumPy does --------------------------------------------------------------------------------------------------


class Answer:
    """NumPy's answer on samples: the result and the samples, or the error."""

    def __init__(self, result: Nested, samples: list[Host], error: Exception | None) -> None:
        self.result = result
        self.samples = samples
        self.error = error

    def given(self, part: object) -> int | None:
        """Which of the arguments a part of the result is."""
        if isinstance(part, np.bool_):
            return None  # there are but two
        return next((i for i, array in enumerate(self.samples) if array is part), None)

    def computes(self) -> bool:
        """Whether the result is no view of an argument."""
        return (
            not isinstance(self.result, np.ndarray)
            or self.given(self.result) is not None
            or not self.shares(self.result)
        )

    def shares(self, part: object) -> set[int]:
        """In the memory of which arguments a part of the result lies."""
        return {i for i, array in enumerate(self.samples) if _owner(array) is _owner(part)}


def _owner(array: Host) -> Host:
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


def ask(
    host: Host, args: Args, kwargs: Kwargs, tensors: list[FakeOperand], kinds: list[Kind], warned: set[type]
) -> Answer | None:
    """NumPy's answer to a call with arrays (or scalars, by their classes) like these fake tensors.

    An error must not depend on the contents. None where that cannot be told, or would take too long. The categories of
    what NumPy warns about, but for floating-point errors, are put into `warned`.
    """
    if sum(_size(tensor) * tensor.element_size() for tensor in tensors_in(tensors)) > _MOST_BYTES:
        return None
    failures = []
    for filling in (0, 1, 2):
        operands = [_sample(t, kind, filling) for t, kind in zip(tensors, kinds, strict=True)]
        try:
            with collected(warned), np.errstate(all="ignore"):
                result = host(*fill(args, operands), **fill(kwargs, operands))
            return Answer(result, operands, None)
        except Exception as e:
            failures.append(e.with_traceback(None))
    if len({(type(e), str(e)) for e in failures}) > 1 or isinstance(failures[0], np.linalg.LinAlgError):
        return None  # of a matrix that is singular, say
    return Answer(None, [], failures[0])


def assume_sizes(name: str, fakes: list[FakeOperand]) -> None:
    """NumPy has refused operands of the sizes that symbols have now: no operation of torch tells which it takes."""
    for fake in fakes:
        for number in (*fake.shape, *fake.stride()) if isinstance(fake, torch.Tensor) else (fake,):
            if hint_of(number) is None:
                raise refusal(name, "NumPy's error depends on a size that is known when the graph runs")
            int(number)  # a symbol is guarded to be what it is


def computed(host: Host, args: Args, kwargs: Kwargs, warned: set[type]) -> Answer:
    """What NumPy gives for known operands; the categories of what it warns about are put into `warned`."""
    try:
        with collected(warned):
            return Answer(host(*args, **kwargs), [], None)
    except Exception as e:
        return Answer(None, [], e.with_traceback(None))


#: what stands for a number that is known when the graph runs
_SOME = 3


def _number(size: Number) -> int:
    found = hint_of(size)
    return _SOME if found is None else found


def _size(tensor: torch.Tensor) -> int:
    return math.prod(_number(n) for n in tensor.shape)


def _sample(tensor: FakeOperand, kind: Kind, filling: int) -> Host:
    if not isinstance(tensor, torch.Tensor):
        return _number(tensor)
    cls, found = kind
    shape, strides = [_number(n) for n in tensor.shape], found or [_number(n) for n in tensor.stride()]
    begin = sum((n - 1) * -s for n, s in zip(shape, strides, strict=True) if s < 0) if 0 not in shape else 0
    span = 1 + sum((n - 1) * abs(s) for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 0
    memory = np.empty(span, dtype=numpy_dtype(tensor.dtype))
    # The last one may be inverted, and sorted.
    memory[:] = filling if filling < 2 else np.arange(1, span + 1) % 7
    array = np.lib.stride_tricks.as_strided(memory[begin:], shape, [s * memory.itemsize for s in strides])
    return cls(array) if issubclass(cls, np.generic) else array


@functools.cache
def numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """NumPy's data type for torch's."""
    return torch.empty(0, dtype=dtype).numpy().dtype


def tensor_of(array: np.ndarray | np.generic) -> torch.Tensor:
    """The tensor in the memory of an existing array, or that of a scalar. Fails where torch has none like it."""
    if isinstance(array, np.ndarray):
        if not array.flags.writeable:
            raise TypeError("a read-only array")
        return torch.from_numpy(array)
    return torch.as_tensor(array)


def is_function(host: Host) -> bool:
    """Whether a Python function is one of NumPy's."""
    return str(host.__module__).partition(".")[0] == "numpy" and id(host) in _names()


def strides_of(array: np.ndarray) -> tuple[int, ...]:
    """The strides of an array, counted in elements."""
    return tuple(stride // array.itemsize for stride in array.strides)


def same_sizes(ours: Sequence[Number], theirs: tuple[int, ...], sizes: tuple[int, ...] | None = None) -> bool:
    """Whether sizes, or the strides of those dimensions that have more than one element, agree; unknown ones do."""
    if len(ours) != len(theirs):
        return False
    if sizes is not None and 0 in sizes:
        return True
    pairs = [(hint_of(n), m) for i, (n, m) in enumerate(zip(ours, theirs, strict=True)) if not sizes or sizes[i] > 1]
    return all(n is None or n == m for n, m in pairs)
