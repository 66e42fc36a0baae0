"""Wrappers that existed before the trace: what is assumed of what they hold, beside their own metadata.

Fake wrappers are made by `__tensor_unflatten__` from what `__tensor_flatten__` gives, and so are those that AOTAutograd
computes with. So these are what a trace depends on: which tensors are inside, what they are like, and the context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.guards.guard import Predicate, TensorMatch
from stator.guards.source import GetAttrSource
from stator.pytorch import internals
from stator.pytorch.tensors.classes import PLAIN_CLASSES, WRAPPER_METHODS, inner_tensors, is_traceable
from stator.pytorch.tensors.reader import tensor_spec
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stator.guards.base import Guard
    from stator.guards.source import Source
    from stator.pytorch.traced import TracedTensor
    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = ["guard_class", "sharing_guard", "wrapper_guards"]


def guard_class(space: Space, cls: type) -> None:
    """The class does what it did when the trace began."""
    for name in WRAPPER_METHODS:
        space.host_lookup(cls, name)


def wrapper_guards(tensor: Host, source: Source) -> Iterator[Guard]:
    """What is assumed of an existing wrapper, and of the wrappers in it."""
    yield Predicate((source,), _Holds(tensor), f"{source.expr()} holds what it did")
    for name, inner in inner_tensors(tensor).items():
        inner_source = GetAttrSource(source, name)
        if is_traceable(type(inner)):
            yield from wrapper_guards(inner, inner_source)
        elif type(inner) not in PLAIN_CLASSES:
            raise Unsupported(
                errors.UnsupportedTensorSubclass(type(tensor).__qualname__, f"it holds a {type(inner).__qualname__}")
            )
        yield TensorMatch(inner_source, tensor_spec(inner))


def sharing_guard(wrappers: list[TracedTensor]) -> Guard | None:
    """Existing wrappers share what they hold as they do now: jagged tensors are alike if they have the same offsets."""
    known = [(value.host, value.source) for value in wrappers if value.source is not None]
    if len(known) < 2:
        return None
    sources = tuple(source for _, source in known)
    text = f"{', '.join(source.expr() for source in sources)} share what they did"
    return Predicate(sources, _Shares([host for host, _ in known]), text)


class _Shares:
    """Whether wrappers have the tensors in them in common with one another as they had."""

    def __init__(self, wrappers: list[Host]) -> None:
        self.expected = self._pattern(wrappers)

    @staticmethod
    def _pattern(wrappers: Iterable[Host]) -> list[int]:
        inner = [id(tensor) for wrapper in wrappers for tensor in inner_tensors(wrapper).values()]
        return [inner.index(number) for number in inner]

    def __call__(self, *wrappers: Host) -> bool:
        return self._pattern(wrappers) == self.expected


class _Holds:
    """Whether a wrapper holds tensors of these names, which begin where they did, in the same context."""

    def __init__(self, tensor: Host) -> None:
        self.expected = self._read(tensor)

    @staticmethod
    def _read(tensor: Host) -> tuple[object, ...]:
        with internals.DisableTorchFunctionSubclass():
            names, context = tensor.__tensor_flatten__()
            inner = [getattr(tensor, name) for name in names]
            return list(names), [t.storage_offset() for t in inner if t.layout is torch.strided], context

    def __call__(self, tensor: Host) -> bool:
        try:
            *found, context = self._read(tensor)
            *expected, wanted = self.expected
            if found != expected:
                return False
            compare = getattr(type(tensor), "__metadata_guard__", None)
            return bool(context == wanted if compare is None else compare(wanted, context))
        except Exception:  # the program's own code: the wrapper is not as it was
            return False
