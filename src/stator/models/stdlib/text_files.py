"""What is written to text files that existed before the trace goes out after the graph, as texts of its numbers do.

That is right where the write cannot fail and runs no code of the program's, which `takes_text` tells; else it breaks
the graph.
"""

from __future__ import annotations

import codecs
import io
import os
import stat
from collections.abc import Iterable

from stator.guards.guard import Predicate
from stator.guards.raw import type_lookup
from stator.models.text.varying_text import VaryingText
from stator.space.deferred import DeferredNumber, DeferredStr, said_later
from stator.space.host_types import Host
from stator.space.operands import known_host, refuse
from stator.space.protocol import NONE, builtin, register
from stator.space.space import Space
from stator.space.value import Constant, Value

__all__ = ["SINKS", "can_take", "known_parts", "settled", "write_later"]

#: `write` methods in C that do nothing but take the text; what they wrote can only be read back across a break
SINKS = (io.TextIOWrapper.write, io.StringIO.write)
_CLOSED = {io.TextIOWrapper: io.TextIOWrapper.__dict__["closed"], io.StringIO: io.StringIO.__dict__["closed"]}
_BUFFERS = (io.BufferedWriter, io.BufferedRandom)
#: the encodings of the C library that can write every text of ASCII characters, as `codecs` calls them
_ENCODINGS = frozenset({"ascii", "utf-8", "iso8859-1"})


def can_take(space: Space, file: Value, texts: Iterable[str]) -> bool:
    """Whether writing these texts to the existing file may be put off; guards what that depends on."""
    assert file.source is not None
    check = takes_text
    if not all(text.isascii() for text in texts):
        if not all(map(_is_unicode, texts)):
            return False
        check = takes_unicode
    host = file.host
    holds = Predicate((file.source,), check, "the text file can be written")
    if not holds.test(host):
        return False
    space.trace.guard(holds)
    return True


def settled(space: Space, text: Value, function: str) -> Value:
    """Text whose characters are settled, now or when the function writes it."""
    return said_later(text.force()) or Constant(str.__str__(known_host(space, text, function)))


def known_parts(text: Value) -> list[str]:
    """What must be known of settled text for `can_take`; the rest is numbers and the like, or ASCII at least."""
    if isinstance(text, DeferredStr):
        varying = [value for _, (value, *_) in text.pieces if isinstance(value, VaryingText)]
        return [*text.texts, *(value.host for value in varying if not value.stays_ascii())]
    return [text.host]


def _is_unicode(text: str) -> bool:
    """Whether the text has no surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def takes_text(file: Host) -> bool:
    """Whether the file takes ASCII characters, without failing and without code of the program's."""
    kind = io.StringIO if issubclass(type(file), io.StringIO) else io.TextIOWrapper
    closed = _CLOSED[kind]
    if type_lookup(type(file), "closed") is not closed or closed.__get__(file):
        return False
    return kind is io.StringIO or (codecs.lookup(file.encoding).name in _ENCODINGS and _is_plain(file.buffer))


def takes_unicode(file: Host) -> bool:
    """Whether the file takes all characters."""
    if not takes_text(file):
        return False
    return issubclass(type(file), io.StringIO) or codecs.lookup(file.encoding).name == "utf-8"


def _is_plain(buffer: Host) -> bool:
    """Whether the bytes go to memory or to a file that does not block."""
    if type(buffer) is io.BytesIO:
        return not buffer.closed
    raw = buffer.raw if type(buffer) in _BUFFERS else buffer
    if type(raw) is not io.FileIO or raw.closed or not raw.writable():
        return False
    number = raw.fileno()
    if number in (1, 2):  # the standard streams, whatever they are
        return True
    found = os.fstat(number)
    if stat.S_ISCHR(found.st_mode):
        return os.isatty(number) or found.st_rdev == os.stat(os.devnull).st_rdev
    return stat.S_ISREG(found.st_mode)


def write_later(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`host(file, text)`, the `write` of a text file: it goes out after the graph."""
    file, text = (arg.force() for arg in args) if len(args) == 2 and not kwargs else (None, None)
    if file is None or text is None or not text.isa(str) or not file.isa(host.__objclass__):
        return space.unmodelled(host, args, kwargs)
    written = settled(space, text, "write")
    known = known_parts(written)
    if file.source is None or not can_take(space, file, known):
        raise refuse(f"io.{host.__qualname__}")
    space.trace.defer(host, [file, written])
    return DeferredNumber(int, len, [written]) if isinstance(written, DeferredStr) else Constant(sum(map(len, known)))


def _write(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return write_later(space, io.TextIOWrapper.write, args, kwargs)


register(io.TextIOWrapper.write, _write)


@builtin(io.TextIOWrapper.flush)
def flush(space: Space, file: Value, /) -> Value:
    """After the graph, as what is written."""
    file = file.force()
    if file.source is None or not file.isa(io.TextIOWrapper) or not can_take(space, file, ()):
        return space.unmodelled(io.TextIOWrapper.flush, [file], {})
    space.trace.defer(io.TextIOWrapper.flush, [file])
    return NONE
