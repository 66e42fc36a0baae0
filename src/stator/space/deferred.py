"""Text and numbers that are computed when the graph has run: from numbers it gives, and objects made then."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from stator.space.host_types import Host, HostCallable
from stator.space.identity.varying_keys import TextKey
from stator.space.value import Constant, NotKnown, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["DeferredNumber", "DeferredStr", "concatenated", "joined", "said_later"]

#: a function that gives text, and its arguments, whose values no longer change
Piece = tuple[Callable[..., str], list[Value]]


class DeferredStr(Value):
    """A str: known texts with pieces between them that are yet to be computed, as in a template string.

    Passing on, joining and printing it break nothing.
    """

    __slots__ = ("pieces", "texts")

    selects = True

    def __init__(self, pieces: list[Piece], texts: list[str] | None = None) -> None:
        self.cls = str
        self.source = None
        self.pieces = pieces
        #: what is before, between and after the pieces
        self.texts = [""] * (len(pieces) + 1) if texts is None else texts

    def key(self, space: Space) -> Host:
        """What it says, where guards can tell: they select what is found under it (`self[f"expert_{index}"]`)."""
        found = [self.texts[0]]
        for (function, (value, *options)), text in zip(self.pieces, self.texts[1:], strict=True):
            known = [option.as_host(space) for option in options]
            said = function(value.host, *known) if value.constant else space.outcome(function, value, *known)
            if said is None:
                return space.traced_key(self)
            found += (said, text)
        return "".join(found)

    def as_host(self, space: Space) -> str:
        found = [self.texts[0]]
        for (function, args), text in zip(self.pieces, self.texts[1:], strict=True):
            # A symbol whose number is at hand is assumed to be that number.
            hosts = [space.decide(arg) if arg.symbolic else arg.as_host(space) for arg in args]
            found += (function(*hosts), text)
        return "".join(found)

    def text_key(self, space: Space) -> TextKey | None:
        said = [self.texts[0]]
        parts: list[Host] = []
        for (function, args), text in zip(self.pieces, self.texts[1:], strict=True):
            now = [_now(space, arg) for arg in args]
            if any(host is NotKnown for host in now):
                return None
            said += (function(*now), text)
            parts += (function, *(arg.host if arg.constant and not arg.selects else arg for arg in args), text)
        return TextKey(space, self, "".join(said), (self.texts[0], self.texts[-1]), tuple(parts))

    def select(self, space: Space, container: Value, read: HostCallable) -> Value | None:
        if len(self.pieces) != 1:
            return None
        function, (number, *options) = self.pieces[0]
        known = tuple([option.as_host(space) for option in options])
        return number.select(space, container, _read_by_text(read, function, known, *self.texts))

    def describe(self) -> str:
        return "text that is known when the graph has run"

    def reconstruct(self, writer: Writer) -> str:
        shown = [writer.const(self.texts[0])]
        for piece, text in zip(self.pieces, self.texts[1:], strict=True):
            shown += (_call(writer, *piece), writer.const(text))
        shown = [part for part in shown if part != "''"]
        return writer.assign("text", shown[0] if len(shown) == 1 else f"''.join(({', '.join(shown)}))")


def _now(space: Space, arg: Value) -> Host:
    """What a piece of text is made of, as it is in this call; NotKnown where only the graph knows."""
    if arg.constant and not arg.selects:
        return arg.host
    key = arg.text_key(space)
    if key is not None:
        return key.now
    number = arg.number_now()
    return NotKnown if number is None else number


class ReadByText:
    """What reads by a text that `function` makes of a number: `self.heads[f"task{index}"]`."""

    def __init__(
        self, read: HostCallable, function: HostCallable, options: tuple[Host, ...], before: str, after: str
    ) -> None:
        self._read, self._function, self._options = read, function, options
        self._around = before, after

    def __call__(self, container: Host, number: Host) -> Host:
        return self._read(container, self._function(number, *self._options).join(self._around))

    def written(self, number: str) -> str:
        """The text as a program writes it, given how it writes the number; a template of a source's, as that is."""
        told = f"{{{_MARK}:{self._options[0]}}}" if any(self._options) else f"{{{_MARK}}}"
        if self._function not in (str, repr, format):
            told = f"{{{self._function.__name__}({_MARK})}}"
        elif not any((*self._around, *self._options)):
            return f"str({number})"
        return f"f{told.join(self._around)!r}".replace(_MARK, number)


#: where the number is to stand in a text
_MARK = "<number>"


#: one function for equal ones, as sources are interned by it
_read_by_text = functools.lru_cache(1024)(ReadByText)


class DeferredNumber(Value):
    """A number that `function(*args)` will give; the call cannot fail."""

    __slots__ = ("args", "function")

    def __init__(self, cls: type, function: HostCallable, args: list[Value]) -> None:
        self.cls = cls
        self.source = None
        self.function = function
        self.args = args

    def depends_on(self) -> str:
        """What must be known for it."""
        late = [arg for arg in self.args if isinstance(arg, DeferredNumber)]
        return late[0].depends_on() if late else "the value of a tensor"

    def describe(self) -> str:
        return f"a number that depends on {self.depends_on()}"

    def reconstruct(self, writer: Writer) -> str:
        return writer.assign("number", _call(writer, self.function, self.args))


def _call(writer: Writer, function: Host, args: list[Value]) -> str:
    return f"{writer.const(function)}({', '.join(writer.expr(arg) for arg in args)})"


def joined(pieces: list[Value], text_of: Callable[[Value], str]) -> Value:
    """The concatenation of texts, some of them pending."""
    forced = [piece.force() for piece in pieces]
    varying = [place for place, piece in enumerate(forced) if piece.selects and piece.constant]
    if len(varying) == 1 and all(piece.constant for piece in forced):
        texts = ["" if place in varying else text_of(piece) for place, piece in enumerate(forced)]
        (place,) = varying
        return forced[place].within("".join(texts[:place]), "".join(texts[place:]))
    return concatenated(*(said_later(piece) or text_of(piece) for piece in forced))


def said_later(text: Value) -> DeferredStr | None:
    """Text that is not known yet, or need not be, as it varies from call to call; None for other text."""
    if isinstance(text, DeferredStr):
        return text
    return DeferredStr([(str, [text])]) if text.selects and text.constant else None


def concatenated(*pieces: str | DeferredStr) -> Value:
    """The concatenation of known and pending texts."""
    texts, pending = [""], list[Piece]()
    for piece in pieces:
        text = piece if isinstance(piece, DeferredStr) else DeferredStr([], [piece])
        texts = [*texts[:-1], texts[-1] + text.texts[0], *text.texts[1:]]
        pending += text.pieces
    return DeferredStr(pending, texts) if pending else Constant(texts[0])
