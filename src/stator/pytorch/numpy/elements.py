"""Tensors made of lists in which tensors without dimensions are, or NumPy's scalars: `torch.tensor([a.max(), 2.0])`.

torch reads each, which no graph can. Here they are stacked instead, in the data type that torch gives the new tensor.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import torch

from stator.pytorch.nesting import is_sequence
from stator.pytorch.numpy.array_value import SCALARS, ArrayValue
from stator.pytorch.state.function_modes import active
from stator.pytorch.tensors.recording import record_function, record_method
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = ["stacked"]

_CLASSES = (torch.Tensor, torch.nn.Parameter)
#: the types of numbers of which torch knows the common one
_DTYPES = frozenset(
    (
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    )
)


def stacked(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """What `torch.tensor` or its like makes of such a list; None of anything else."""
    if len(args) != 1 or not kwargs.keys() <= {"dtype", "device"} or active() or not is_sequence(args[0].force()):
        return None
    shape = _shape(space, args[0].force())
    if shape is None:
        return None
    given_leaves = [*_leaves(space, args[0].force())]
    leaves = [*map(_element, given_leaves)]
    if not any(isinstance(leaf, TensorValue) for leaf in leaves):
        return None
    dtypes = [_dtype(leaf) for leaf in leaves]
    given = space.known(kwargs["dtype"].force()) if "dtype" in kwargs else None
    natural = functools.reduce(_promoted, dtypes)
    dtype = natural if given is None else given
    if dtype not in _DTYPES or not all(own is not None and _fits(own, dtype) for own in dtypes):
        return None
    if dtype is not torch.bool and any(leaf.cls is np.bool_ for leaf in given_leaves):
        return None  # it is no index
    parts = [_converted(space, host, leaf, dtype) for leaf in leaves]
    made = record_function(space, torch.stack, space.new_list(parts))
    if len(shape) > 1:
        made = record_method(space, "reshape", made, space.new_tuple([Constant(size) for size in shape]))
    return record_method(space, "to", made, kwargs["device"]) if "device" in kwargs else made


def _shape(space: Space, value: Value) -> tuple[int, ...] | None:
    """The sizes of a list of lists; None where they differ, or there are none."""
    if not is_sequence(value):
        return ()
    shapes = {_shape(space, item.force()) for item in space.unpack(value)}
    inner = shapes.pop() if len(shapes) == 1 else None
    return None if inner is None else (len(space.unpack(value)), *inner)


def _leaves(space: Space, value: Value) -> Iterator[Value]:
    if is_sequence(value):
        for item in space.unpack(value):
            yield from _leaves(space, item.force())
    else:
        yield value


def _element(leaf: Value) -> Value:
    """The tensor that a scalar of NumPy's is traced as."""
    return leaf.tensor if isinstance(leaf, ArrayValue) and leaf.cls in SCALARS else leaf


def _dtype(leaf: Value) -> torch.dtype | None:
    """The data type that a leaf has to torch; None where it is nothing to read one number of."""
    if isinstance(leaf, TensorValue):
        plain = leaf.meta is not None and leaf.cls in _CLASSES and not len(leaf.shape)
        alone = plain and leaf.device.type == "cpu" and not leaf.requires_grad  # which torch warns about
        return leaf.dtype if alone and leaf.dtype in _DTYPES else None
    if leaf.isa(bool):
        return torch.bool
    return torch.int64 if leaf.isa(int) else torch.get_default_dtype() if leaf.isa(float) else None


def _promoted(a: torch.dtype | None, b: torch.dtype | None) -> torch.dtype | None:
    return None if a is None or b is None else torch.promote_types(a, b)


def _fits(own: torch.dtype, to: torch.dtype) -> bool:
    """Whether every number of the one data type is read into the other: torch refuses one that is too big."""
    return own is to or (torch.promote_types(own, to) is to and not (to is torch.float16 and own is not torch.bool))


def _converted(space: Space, host: Host, leaf: Value, dtype: torch.dtype) -> Value:
    if isinstance(leaf, TensorValue):
        if dtype.is_floating_point and not leaf.dtype.is_floating_point:  # torch reads integers in double precision
            leaf = record_method(space, "to", leaf, Constant(torch.float64))
        return record_method(space, "to", leaf, Constant(dtype))
    return space.call(space.existing(host), [leaf], {"dtype": Constant(dtype)})
