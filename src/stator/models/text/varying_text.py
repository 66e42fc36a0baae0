"""Text that existed before the trace and has been other text in an earlier one: `model(x, task="depth")`.

Which it is, is guarded where something depends on it. What is selected by it (`self.heads[task]`,
`getattr(self, name)`) depends on what is found under it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stator.guards.guard import Equals, Predicate, TypeIs
from stator.guards.source import CallSource, DictKeySource, Source
from stator.models.containers.selection import select
from stator.space import facts
from stator.space.identity.varying_keys import TextKey
from stator.space.protocol import LITERAL_HOOKS
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stator.space.host_types import Host, HostCallable
    from stator.space.interfaces import Trace, Writer
    from stator.space.space import Space

__all__ = ["VaryingText"]


class VaryingText(Constant):
    """A str of which the guard is made when the text is looked at."""

    __slots__ = ("_around", "_text", "space")

    selects = True
    source: Source

    def __init__(self, space: Space, text: str, source: Source, around: tuple[str, str] = ("", "")) -> None:
        self.space = space
        self._text = text
        #: how it begins and ends in all calls
        self._around = around
        self.cls = str
        self.source = source

    @property
    def host(self) -> str:
        """The text, which the trace depends on from now on."""
        self.space.trace.guard(Equals(self.source, self._text))
        return self._text

    def stays_ascii(self) -> bool:
        """Whether it consists of ASCII characters, as it then does in all calls."""
        if self._text.isascii():
            self.space.trace.guard(Predicate((self.source,), str.isascii, f"{self.source.expr()}.isascii()"))
        return self._text.isascii()

    def text_key(self, space: Space) -> TextKey:
        return TextKey(space, self, self._text, self._around, (self.source,))

    def select(self, space: Space, container: Value, read: HostCallable) -> Value | None:
        base = container.source
        if base is None:
            return None
        return select(space, container, self._text, read, lambda fn: CallSource(fn, base, "{}[{1}]", self.source))

    def within(self, before: str, after: str) -> Value:
        text = f"{before}{self._text}{after}"
        source = CallSource(_within(before, after), self.source, f"f{f'{before}{{{{}}}}{after}'!r}")
        return VaryingText(self.space, text, source, (before + self._around[0], self._around[1] + after))

    def reconstruct(self, writer: Writer) -> str:
        return writer.source(self.source)


@functools.cache
def _within(before: str, after: str) -> Callable[[str], str]:
    """What puts text around another; one function for equal ones, as sources are interned by it."""
    return lambda text: f"{before}{text}{after}"


def existing_text(trace: Trace, text: Host, source: Source) -> Value | None:
    """A str that existed before the trace, if it varies (see protocol.LITERAL_HOOKS)."""
    if type(text) is not str or not _varies(trace, text, source):
        return None
    trace.guard(TypeIs(source, str))
    return VaryingText(trace.space, text, source)


def _varies(trace: Trace, text: str, source: Source) -> bool:
    """Whether there was other text in an earlier trace of the same code."""
    if not trace.config.automatic_dynamic or trace.dynamic is False or isinstance(source, DictKeySource):
        return False
    return not facts.stays(trace, "texts", source.expr(), text)


LITERAL_HOOKS.append(existing_text)
