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
from stator.pytorch.fake.metadata import expression_of, symbolic_dims
from stator.pytorch.fake.storage import storages_of
from stator.pytorch.subclasses import own_sizes
from stator.pytorch.tensors.classes import PLAIN_CLASSES, WRAPPER_METHODS, inner_tensors, is_traceable, is_wrapper
from stator.pytorch.tensors.reader import tensor_spec
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stator.guards.base import Guard
    from stator.guards.source import Source
    from stator.pytorch.traced import TracedTensor
    from stator.pytorch.types import Host
    from stator.space.interfaces import Trace

__all__ = ["has_open_rows", "open_wrapper", "refuse_hidden", "sharing_guard"]


def open_wrapper(trace: Trace, wrapper: TracedTensor, seen: Host) -> None:
    """The trace depends on what an existing wrapper holds and on what its class does, and finds the tensors in it.

    Args:
        seen: the wrapper, or, if there are symbols in its sizes or in those of what it holds, its fake.
    """
    for name in WRAPPER_METHODS:
        trace.space.host_lookup(wrapper.cls, name)
    if wrapper.source is not None:
        for guard in _guards(wrapper.host, seen, wrapper.source):
            trace.guard(guard)
    for name, inner in inner_tensors(wrapper.host).items():
        trace.recorder.nodes.inner.setdefault(id(inner), (wrapper, name))


def refuse_hidden(
    trace: Trace, existing: Iterable[TracedTensor], operands: Iterable[TracedTensor], written: set[int]
) -> None:
    """Writing these operands has written other tensors that exist outside, and that wrappers among them hold."""
    roots, inner = {operand.root for operand in operands}, trace.recorder.nodes.inner
    for value in existing:
        holder = inner.get(id(value.host), (value,))[0]
        if value._fake is not None and holder not in roots and storages_of(value._fake) & written:
            raise Unsupported(errors.UnsupportedMutation("an in-place operation", "what holds existing tensors"))


def has_open_rows(nested: Host) -> bool:
    """Whether what the rows of a nested tensor have is a symbol."""
    numbers = [size for size in nested.shape if type(size) is not int] if nested.layout is torch.jagged else []
    return bool(numbers) and all(expression_of(number) is not None for number in numbers)


def _guards(tensor: Host, seen: Host, source: Source) -> Iterator[Guard]:
    """What is assumed of an existing wrapper, and of the wrappers in it."""
    yield Predicate((source,), _Holds(tensor, seen), f"{source.expr()} holds what it did")
    for name, inner in inner_tensors(tensor).items():
        inner_source, inner_seen = GetAttrSource(source, name), getattr(seen, name)
        if is_traceable(type(inner)):
            yield from _guards(inner, inner_seen, inner_source)
        elif type(inner) not in PLAIN_CLASSES:
            raise Unsupported(
                errors.UnsupportedTensorSubclass(type(tensor).__qualname__, f"it holds a {type(inner).__qualname__}")
            )
        yield TensorMatch(inner_source, tensor_spec(inner, *symbolic_dims(inner_seen)))


def sharing_guard(values: list[TracedTensor]) -> Guard | None:
    """Existing wrappers share what they hold as they do now, with other tensors too: jagged tensors are alike if they
    have the same offsets.
    """
    known = [(value.host, value.source) for value in values if value.source is not None]
    if len(known) < 2:
        return None
    sources = tuple(source for _, source in known)
    text = f"{', '.join(source.expr() for source in sources)} share what they did"
    return Predicate(sources, _Shares([host for host, _ in known]), text)


class _Shares:
    """Whether wrappers have the tensors in them in common with one another, and with other tensors, as they had."""

    def __init__(self, tensors: list[Host]) -> None:
        self.expected = self._pattern(tensors)

    @staticmethod
    def _pattern(tensors: Iterable[Host]) -> list[int]:
        found = [id(part) for tensor in tensors for part in _parts(tensor)]
        return [found.index(number) for number in found]

    def __call__(self, *tensors: Host) -> bool:
        return self._pattern(tensors) == self.expected


def _parts(tensor: Host) -> Iterable[Host]:
    return inner_tensors(tensor).values() if is_wrapper(type(tensor)) else (tensor,)


class _Holds:
    """Whether a wrapper holds tensors of these names, which begin where they did, in the same context.

    What it holds besides tensors is what it was.
    """

    def __init__(self, tensor: Host, seen: Host) -> None:
        *self.expected, context = self._read(tensor)
        self.context = context
        self.own_context = context if seen is tensor else own_sizes.expected(context, self._read(seen)[-1], seen)

    @staticmethod
    def _read(tensor: Host) -> tuple[object, ...]:
        with internals.DisableTorchFunctionSubclass():
            names, context = tensor.__tensor_flatten__()
            inner = inner_tensors(tensor)
            opaque = [getattr(tensor, name) for name in names if name not in inner]
            begins = [t.storage_offset() for t in inner.values() if t.layout is torch.strided]
            return list(names), begins, opaque, context

    def __call__(self, tensor: Host) -> bool:
        try:
            *found, context = self._read(tensor)
            if found != self.expected:
                return False
            compare = getattr(type(tensor), "__metadata_guard__", None)
            if compare is not None:
                return bool(compare(self.context, context))
            with internals.DisableTorchFunctionSubclass():
                return own_sizes.agrees(self.own_context, context, tensor)
        except Exception:  # the program's own code: the wrapper is not as it was
            return False
