"""What the iterator types written in C have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from stator import errors
from stator.objects.protocol import models
from stator.objects.value import Raised, Unsupported, Value
from stator.stdlib.support import known_host, refuse

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.objects.space import Space
    from stator.residual.writer import Writer

__all__ = ["Stream", "own_class", "stream"]

S = TypeVar("S", bound="type[Stream]")


class Stream(Value):
    """An iterator; subclasses say how it advances. One that existed before the trace cannot be looked into."""

    __slots__ = ("host",)

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.source: Source | None = None
        self.host: Any = None

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> Value:
        space.guard_type(host, source)
        self = cls.__new__(cls)
        Stream.__init__(self, type(host))
        self.source, self.host = source, host
        return self

    def advance(self, space: Space) -> Value | None:
        """The next item, or None at the end; a StopIteration that a callback raises passes through."""
        raise NotImplementedError

    def next_value(self, space: Space) -> Value | None:
        """The next item, or None at the end."""
        self.check_inside()
        try:
            return self.advance(space)
        except Raised as e:
            if issubclass(e.value.cls, StopIteration):
                return None
            raise

    def check_inside(self) -> None:
        """An iterator made outside the trace breaks the graph when it is advanced."""
        if self.source is not None:
            raise Unsupported(errors.OpaqueIterator(f"a {self.cls.__name__} object"))

    def identity(self, space: Space) -> Any:
        return self if self.source is None else self.host

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        made: str = writer.assign(self.cls.__name__.strip("_"), self.made(writer))
        return made

    def made(self, writer: Writer) -> str:
        """The expression that makes the iterator in its present state."""
        raise Unsupported(errors.NotReconstructible(self.describe()))


def _iter(self: Stream, space: Space) -> Value:
    return self


def _next(self: Stream, space: Space) -> Value:
    self.check_inside()
    found = self.advance(space)
    if found is None:
        raise space.error(StopIteration)
    return found


def stream(host: type) -> Callable[[S], S]:
    """Class decorator: the Stream class models the iterator type `host`."""

    def decorate(value_class: S) -> S:
        value_class.tp_iter = _iter  # type: ignore[attr-defined]
        value_class.tp_next = _next  # type: ignore[attr-defined]
        return models(host)(value_class)

    return decorate


def own_class(space: Space, cls: Value, host: type) -> type:
    """The class to make an instance of, which must be the builtin type itself."""
    owner: type = known_host(space, cls, f"{host.__name__}.__new__")
    if owner is not host:
        raise refuse(f"{host.__name__}.__new__ of a subclass")
    return owner
