"""Functions of the program's that C code of NumPy's calls with one element after the other: `numpy.vectorize(f)(a)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stator import errors
from stator.interp import policy
from stator.space.protocol import register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.space.space import Space

__all__ = ["install"]


def _vectorized(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The call is left to Python as a whole."""
    raise Unsupported(errors.LibraryCall("call of numpy.vectorize"))


def install() -> None:
    """Register the model, and tell the policy of the frame hook."""
    policy.LEFT.keep(np.vectorize.__call__.__code__, True)
    register(np.vectorize.__call__, _vectorized)
