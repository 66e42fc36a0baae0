"""What a guard expects of a tensor.  Nothing here imports torch: the reader of the facts comes with the spec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .base import short_name, show, with_article
from .naming import is_expression, quoted

__all__ = ["KEY_WORDS", "Dim", "TensorFacts", "TensorSpec", "marked_dims"]

#: a size or stride that is expected, or None for any
Dim = int | None
#: the mark that says which sizes of a tensor vary
_MARK = "_dynamo_dynamic_indices"
#: what helps where a parameter has been frozen, or a tensor in an object requires gradients in some calls only
_FROZEN = "freeze parameters before the first call: {} has a graph with gradients, and one without"
#: what helps where a size is, or was, 0 or 1
_SMALL = (
    "a size of 0 or 1 has a graph of its own, as operations treat it otherwise; where several sizes may be so, pad "
    "to 2 at least, or keep what is so small out with stator.disable"
)
#: bits of dispatch keys → what a tensor is that has them, and one that has not
KEY_WORDS: dict[int, tuple[str, str]] = {}


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
    #: the dimensions that were marked as dynamic, and are constants all the same
    fixed: frozenset[int] = frozenset()
    read: Callable[[Any], TensorFacts] | None = field(default=None, compare=False, repr=False)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    def matches(self, tensor: object) -> bool:
        """Is the object a tensor as expected?"""
        return self.difference(tensor) is None

    def difference(
        self, tensor: object, name: str = "it", *, within: bool = False, given: bool = True
    ) -> tuple[str, ...] | None:
        """The first thing in which the object is not as expected, and what to do about it, with the two values where
        there are two; None if there is no difference: the fields of a `Change`.

        Args:
            tensor: the object.
            name: what the program calls it.
            within: no call of the program's is given the tensor, but the rest of one.
            given: it is an argument, or in one that is a list, a tuple or a dict.
        """
        told = quoted(name)
        if type(tensor) is not self.cls:
            was, now = with_article(short_name(self.cls.__qualname__)), show(tensor)
            return f"{told} was {was}, is {now}", "", was, now
        assert self.read is not None
        facts = self.read(tensor)
        for what in ("dtype", "device", "layout"):
            now, was = getattr(facts, what), getattr(self, what)
            if now != was:
                return (
                    f"the {what} of {told} was {was}, is {now}",
                    f"convert {told} before the call to share one graph",
                    str(was),
                    str(now),
                )
        if facts.requires_grad != self.requires_grad:
            text = f"{told} {'requires' if facts.requires_grad else 'no longer requires'} gradients"
            if facts.requires_grad and (given or not tensor.is_leaf):  # type: ignore[attr-defined]
                return text, f"detach {told} where no gradients are wanted"
            if given:
                return text, "both have a graph: one with gradients, and one without"
            return text, _FROZEN.format(told)
        if facts.keys != self.keys:
            return f"{told} was {_kind(self.keys, facts.keys)}, is {_kind(facts.keys, self.keys)}", ""
        if not _match(facts.sizes, self.sizes):
            return _size_change(name, self.sizes, facts.sizes, within)
        marked = {dim for dim in marked_dims(tensor) if self.sizes[dim] is not None} - self.fixed
        if marked:
            text = " and ".join(f"size {dim} of {told}" for dim in sorted(marked))
            return f"{text} is marked as dynamic", f"mark {told} before the first call"
        if self.strides is not None and not _match(facts.strides, self.strides):
            return (
                f"the strides of {told} were {_dims(self.strides)}, are {facts.strides}",
                f"pass `{name}.contiguous()` to share one graph" if is_expression(name) else "",
                _dims(self.strides),
                str(facts.strides),
            )
        if facts.extra != self.extra:
            return f"{told} was {_words(self.extra)}, is {_words(facts.extra)}", ""
        return None

    def __str__(self) -> str:
        grad = ", requires_grad" if self.requires_grad else ""
        return f"{self.cls.__name__}({self.dtype}, {_dims(self.sizes)}, {self.device}{grad})"


def marked_dims(tensor: Any) -> set[int]:
    """The dimensions of a tensor that are marked as dynamic."""
    marked = vars(tensor).get(_MARK) or ()
    return {dim % len(tensor.shape) for dim in marked} if marked and len(tensor.shape) else set()


def _match(dims: tuple[int, ...] | None, expected: tuple[Dim, ...]) -> bool:
    if dims is None or len(dims) != len(expected):
        return False
    return all(e is None or n == e for n, e in zip(dims, expected, strict=True))


def _size_change(name: str, was: tuple[Dim, ...], now: tuple[int, ...], within: bool) -> tuple[str, ...]:
    shapes = (_dims(was), str(now))
    if len(was) != len(now):
        return f"the number of dimensions of {quoted(name)} was {len(was)}, is {len(now)}", "", *shapes
    dims = [dim for dim, size in enumerate(was) if size not in (None, now[dim])]
    changes = [f"size {dim} of {quoted(name)} was {was[dim]}, is {now[dim]}" for dim in dims]
    given = dims[0] if len(dims) == 1 else dims
    if all(was[dim] in (0, 1) or now[dim] in (0, 1) for dim in dims):
        return "; ".join(changes), _SMALL, *shapes
    return (
        "; ".join(changes),
        f"{_mark(name, given, within)} makes one graph for all sizes, unless a line needs the number, or more varies",
        *shapes,
    )


def _mark(name: str, dims: int | list[int], within: bool) -> str:
    """What says of a tensor that these sizes vary. The rest of a call is given what a line before it has made: a mark
    there holds with `dynamic_shapes` too, which excludes `dynamic`."""
    if is_expression(name) and not within:
        return f"stator.maybe_mark_dynamic({name}, {dims}) before the first call"
    marked = name if name.isidentifier() else "t"
    return f"stator.maybe_mark_dynamic({marked}, {dims}) where it is made, or compiling with dynamic=True,"


def _kind(keys: int, other: int) -> str:
    """What a tensor with these dispatch keys is, in which one with the others is not."""
    words = (told[not keys & bit] for bit, told in KEY_WORDS.items() if (keys ^ other) & bit)
    return next(words, "a tensor of another kind")


def _words(extra: tuple[object, ...]) -> str:
    return " ".join(map(str, extra)) or "a plain tensor"


def _dims(dims: tuple[Dim, ...]) -> str:
    shown = ["any" if d is None else str(d) for d in dims]
    return f"({', '.join(shown)}{',' if len(shown) == 1 else ''})"
