"""What a guard expects of a tensor.  Nothing here imports torch: the reader of the facts comes with the spec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Dim", "TensorFacts", "TensorSpec"]

#: a size or stride that is expected, or None for any
Dim = int | None


class TensorFacts(NamedTuple):
    """The metadata of a tensor, without its class."""

    dtype: object
    device: object
    layout: object
    requires_grad: bool
    keys: int  # the raw dispatch key set: conjugate and negative bits, inference, subclass, functorch, …
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None  # None where the layout has none
    extra: tuple[object, ...]  # what else matters for rare kinds (sparse, quantised)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class TensorSpec:
    """The expected class and metadata of a tensor; ``read`` gives a tensor's facts.

    >>> TensorMatch(source, tensor_spec(x, open_sizes={0}))  # from stator.pytorch.tensors.reader
    """

    cls: type
    dtype: object
    device: object
    layout: object
    requires_grad: bool
    keys: int
    sizes: tuple[Dim, ...]
    strides: tuple[Dim, ...] | None
    extra: tuple[object, ...] = ()
    read: Callable[[Any], TensorFacts] | None = field(default=None, compare=False, repr=False)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    def matches(self, tensor: object) -> bool:
        """Is the object a tensor as expected?"""
        return self.difference(tensor) is None

    def difference(self, tensor: object) -> str | None:
        """The first thing in which the object is not as expected, or None."""
        if type(tensor) is not self.cls:
            return f"it is {type(tensor).__qualname__}"
        assert self.read is not None
        facts = self.read(tensor)
        for name in ("dtype", "device", "layout", "requires_grad"):
            actual, expected = getattr(facts, name), getattr(self, name)
            if actual != expected:
                return f"its {name} is {actual}, expected {expected}"
        if facts.keys != self.keys:
            return f"its dispatch keys are {facts.keys:#x}, expected {self.keys:#x}"
        if not _match(facts.sizes, self.sizes):
            return f"its shape is {_dims(facts.sizes)}, expected {_dims(self.sizes)}"
        if self.strides is not None and not _match(facts.strides, self.strides):
            return f"its strides are {facts.strides}, expected {_dims(self.strides)}"
        if facts.extra != self.extra:
            return f"{facts.extra}, expected {self.extra}"
        return None

    def __str__(self) -> str:
        grad = ", requires_grad" if self.requires_grad else ""
        return f"{self.cls.__name__}({self.dtype}, {_dims(self.sizes)}, {self.device}{grad})"


def _match(dims: tuple[int, ...] | None, expected: tuple[Dim, ...]) -> bool:
    if dims is None or len(dims) != len(expected):
        return False
    return all(e is None or n == e for n, e in zip(dims, expected, strict=True))


def _dims(dims: tuple[Dim, ...]) -> str:
    shown = ["?" if d is None else str(d) for d in dims]
    return f"({', '.join(shown)}{',' if len(shown) == 1 else ''})"
