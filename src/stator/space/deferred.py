"""Text and numbers that are computed when the graph has run: from numbers it gives, and objects made then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stator.space.host_types import Host, HostCallable
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["DeferredNumber", "DeferredStr", "concatenated", "joined"]

#: a function that gives text, and its arguments, whose values no longer change
Piece = tuple[Callable[..., str], list[Value]]


class DeferredStr(Value):
    """A str: known text and pieces yet to be computed, in order. Passing on, joining and printing it break nothing."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[str | Piece]) -> None:
        self.cls = str
        self.source = None
        self.parts = parts

    def as_host(self, space: Space) -> str:
        texts: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                texts.append(part)
            else:
                function, args = part
                # A symbol whose number is at hand is assumed to be that number.
                texts.append(function(*[space.decide(arg) if arg.symbolic else arg.as_host(space) for arg in args]))
        return "".join(texts)

    def describe(self) -> str:
        return "text that is known when the graph has run"

    def reconstruct(self, writer: Writer) -> str:
        pieces = [writer.const(part) if isinstance(part, str) else _call(writer, *part) for part in self.parts]
        return writer.assign("text", pieces[0] if len(pieces) == 1 else f"''.join(({', '.join(pieces)}))")


class DeferredNumber(Value):
    """A number that `function(*args)` will give; the call cannot fail."""

    __slots__ = ("args", "function")

    def __init__(self, cls: type, function: HostCallable, args: list[Value]) -> None:
        self.cls = cls
        self.source = None
        self.function = function
        self.args = args

    def describe(self) -> str:
        return "a number that depends on the value of a tensor"

    def reconstruct(self, writer: Writer) -> str:
        return writer.assign("number", _call(writer, self.function, self.args))


def _call(writer: Writer, function: Host, args: list[Value]) -> str:
    return f"{writer.const(function)}({', '.join(writer.expr(arg) for arg in args)})"


def joined(pieces: list[Value], text_of: Callable[[Value], str]) -> Value:
    """The concatenation of texts, some of them pending."""
    forced = [piece.force() for piece in pieces]
    return concatenated(*(piece if isinstance(piece, DeferredStr) else text_of(piece) for piece in forced))


def concatenated(*pieces: str | DeferredStr) -> Value:
    """The concatenation of known and pending texts."""
    known = [piece for piece in pieces if isinstance(piece, str)]
    if len(known) == len(pieces):
        return Constant("".join(known))
    parts: list[str | Piece] = [""]
    for piece in pieces:
        for part in [piece] if isinstance(piece, str) else piece.parts:
            if isinstance(part, str) and isinstance(parts[-1], str):
                parts[-1] += part
            else:
                parts.append(part)
    return DeferredStr(parts)
