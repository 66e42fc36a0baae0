"""The one form in which Stator speaks about a program: what happened, where, what it does meanwhile, what to do next.

A message has at most 80 columns and 20 lines, whatever names, paths and values it is about.
"""

from __future__ import annotations

import dataclasses
import linecache
import os
import textwrap
from collections.abc import Iterator, Sequence
from traceback import FrameSummary

__all__ = ["Message", "parted", "place", "short_path"]

_COLUMNS, _LINES = 80, 20
_LONGEST_PATH = 50
#: lines that the sentence, and each of the texts behind the stack, may take
_SENTENCE, _TEXT = 4, 2


@dataclasses.dataclass(frozen=True)
class Message:
    """What is told of one event.

    Attributes:
        code: as for `stator why CODE`.
        sentence: what happened, with the program's own names and values.
        stack: the program's frames, outermost first: the user's own, and the calls that were inlined.
        details: what belongs to the sentence, a line each.
        meanwhile: what Stator does.
        hint: what to do next.
        count: how often it has happened.
    """

    code: str
    sentence: str
    stack: Sequence[FrameSummary] = ()
    details: Sequence[str] = ()
    meanwhile: str = ""
    hint: str = ""
    count: int = 1

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        head = _filled(f"{self.code}: {self.sentence}{times}", _SENTENCE)
        foot = [line for detail in self.details for line in _filled(f"  - {detail}", _TEXT)]
        for title, text in (("meanwhile", self.meanwhile), ("what to do", self.hint)):
            foot += _filled(f"  {title}: {text}", _TEXT) if text else []
        foot.append(f"  more: stator why {self.code}")
        return "\n".join([*head, *_told(self.stack, _LINES - len(head) - len(foot)), *foot])


def place(frame: FrameSummary) -> str:
    """`file.py:12` of a frame."""
    return f"{frame.filename}:{frame.lineno}"


def parted(where: str) -> tuple[str, int]:
    """The file and the line of a place, "file.py:12"; 0 for what has no line."""
    file, _, line = where.rpartition(":")
    return file, int(line) if line.isdigit() else 0


def short_path(path: str) -> str:
    """A file as a user names it: from the current folder, if it is in there; of a long path the end."""
    here = os.path.join(os.getcwd(), "")
    path = path.removeprefix(here)
    while len(path) > _LONGEST_PATH and os.sep in path.removeprefix("…" + os.sep):
        path = os.path.join("…", path.removeprefix("…" + os.sep).lstrip(os.sep).partition(os.sep)[2])
    return path


def _filled(text: str, most: int) -> list[str]:
    """A text on lines that fit, and on so many."""
    return textwrap.wrap(
        " ".join(text.split(" ")), _COLUMNS, subsequent_indent="    ", max_lines=most, placeholder=" …", tabsize=4
    )


def _told(stack: Sequence[FrameSummary], room: int) -> Iterator[str]:
    """The frames in so many lines: the outermost one, and of the others the innermost ones."""
    blocks = [_block(frame) for frame in stack]
    kept = list(blocks)
    while len(kept) > 2 and sum(map(len, kept)) + (len(kept) < len(blocks)) > room:
        del kept[1]
    for number, block in enumerate(kept):
        yield from block
        if not number and len(kept) < len(blocks):
            yield f"  … {len(blocks) - len(kept)} calls between"


def _block(frame: FrameSummary) -> list[str]:
    """Where, the source line, and what of it is meant."""
    where = f"  {short_path(frame.filename)}:{frame.lineno}"
    head = _filled(f"{where} in {frame.name}" if frame.name else where, 1)
    line, start, end = _source(frame)
    if not line:
        return head
    room = _COLUMNS - 6
    if len(line) > room:  # of a long line the part that is meant
        cut = max(0, min(start - room // 3, len(line) - room))
        shown = line[cut : cut + room]
        shown = f"{'…' if cut else shown[0]}{shown[1:-1]}{'…' if cut + room < len(line) else shown[-1]}"
        line, start, end = shown, start - cut, min(end - cut, room)
    return [*head, f"      {line}".rstrip(), " " * (6 + start) + "^" * max(1, end - start)]


def _source(frame: FrameSummary) -> tuple[str, int, int]:
    """The frame's line without its indentation, and the columns that are meant: all of them if none are known."""
    line = linecache.getline(frame.filename, frame.lineno or 0).rstrip().expandtabs(1)
    text = line.lstrip()
    if frame.colno is None or frame.end_colno is None or (frame.line and frame.line.expandtabs(1) != text):
        text = (frame.line or text).expandtabs(1)
        return text, 0, len(text)
    indent = len(line) - len(text)
    start = _column(line, frame.colno) - indent
    end = _column(line, frame.end_colno) - indent if frame.end_lineno == frame.lineno else len(text)
    return text, max(0, start), min(len(text), end)


def _column(line: str, offset: int) -> int:
    """The column of an offset into the line in UTF-8, as code objects have them."""
    return len(line.encode()[:offset].decode(errors="replace"))
