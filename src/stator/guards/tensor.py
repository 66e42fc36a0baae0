"""What a guard expects of a tensor.  Nothing here imports torch: the reader of the facts comes with the spec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["ANY", "KEY_WORDS", "Dim", "TensorFacts", "TensorSpec", "packed"]

#: a size or stride is a number, ANY, or a negative number made by ``packed``
Dim = int | None
ANY: Dim = None


#: bits of dispatch keys → what a tensor is that has them, and one that has not
KEY_WORDS: dict[int, tuple[str, str]] = {}


def packed(dim: int) -> int:
    """The expectation of a stride that is ``size[dim] * stride[dim]``, whatever these are."""
    return -1 - dim


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

    >>> TensorMatch(source, tensor_spec(x, dynamic_dims={0}))  # from stator.pytorch.tensors.reader
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

    def difference(self, tensor: object, name: str = "it") -> tuple[str, str] | None:
        """The first thing in which the object is not as expected, and what to do about it; None if there is none."""
        if type(tensor) is not self.cls:
            now = repr(tensor) if tensor is None else f"a {type(tensor).__qualname__}"
            return f"`{name}` was a {self.cls.__qualname__}, is {now}", ""
        assert self.read is not None
        facts = self.read(tensor)
        for what in ("dtype", "device", "layout"):
            now, was = getattr(facts, what), getattr(self, what)
            if now != was:
                return (
                    f"the {what} of `{name}` was {was}, is {now}",
                    f"convert `{name}` before the call to share one graph",
                )
        if facts.requires_grad != self.requires_grad:
            text = f"`{name}` {'requires' if facts.requires_grad else 'no longer requires'} gradients"
            return text, f"detach `{name}` where no gradients are wanted"
        if facts.keys != self.keys:
            return f"`{name}` was {_kind(self.keys, facts.keys)}, is {_kind(facts.keys, self.keys)}", ""
        if not _sizes_match(facts.sizes, self.sizes):
            return _size_change(name, self.sizes, facts.sizes)
        if self.strides is not None and not _strides_match(facts, self.strides):
            was = _dims(_strides_wanted(facts, self.strides))
            return (
                f"the strides of `{name}` were {was}, are {facts.strides}",
                f"pass `{name}.contiguous()` to share one graph",
            )
        if facts.extra != self.extra:
            return f"`{name}` was {_words(self.extra)}, is {_words(facts.extra)}", ""
        return None

    def __str__(self) -> str:
        grad = ", requires_grad" if self.requires_grad else ""
        return f"{self.cls.__name__}({self.dtype}, {_dims(self.sizes)}, {self.device}{grad})"


def _sizes_match(sizes: tuple[int, ...], expected: tuple[Dim, ...]) -> bool:
    return len(sizes) == len(expected) and all(e is None or s == e for s, e in zip(sizes, expected, strict=True))


def _strides_match(facts: TensorFacts, expected: tuple[Dim, ...]) -> bool:
    if facts.strides is None or len(facts.strides) != len(expected):
        return False
    return _sizes_match(facts.strides, _strides_wanted(facts, expected))


def _strides_wanted(facts: TensorFacts, expected: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The strides that are expected of a tensor of these sizes."""
    sizes, strides = facts.sizes, facts.strides or ()
    return tuple(d if d is None or d >= 0 else sizes[-1 - d] * strides[-1 - d] for d in expected)


def _size_change(name: str, was: tuple[Dim, ...], now: tuple[int, ...]) -> tuple[str, str]:
    if len(was) != len(now):
        return f"`{name}` had {len(was)} dimensions, has {len(now)}", ""
    dims = [dim for dim, size in enumerate(was) if size not in (None, now[dim])]
    changes = [f"size {dim} of `{name}` was {was[dim]}, is {now[dim]}" for dim in dims]
    given = dims[0] if len(dims) == 1 else dims
    return "; ".join(
        changes
    ), f"stator.mark_dynamic({name}, {given}) before the first call makes one graph for all sizes"


def _kind(keys: int, other: int) -> str:
    """What a tensor with these dispatch keys is, in which one with the others is not."""
    words = (told[not keys & bit] for bit, told in KEY_WORDS.items() if (keys ^ other) & bit)
    return next(words, "a tensor of another kind")


def _words(extra: tuple[object, ...]) -> str:
    return " ".join(map(str, extra)) or "a plain tensor"


def _dims(dims: tuple[Dim, ...]) -> str:
    shown = ["any" if d is None else f"size({-1 - d}) * stride({-1 - d})" if d < 0 else str(d) for d in dims]
    return f"({', '.join(shown)}{',' if len(shown) == 1 else ''})"
