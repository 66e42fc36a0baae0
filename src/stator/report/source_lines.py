"""The program's own lines, around those that there is something to say about."""

from __future__ import annotations

import linecache
from collections.abc import Iterable

from stator.errors.message import parted

__all__ = ["line_at", "lines_around"]

#: files of at most so many lines are shown whole, of others so many lines around each
_WHOLE, _AROUND = 200, 4


def line_at(place: str) -> str:
    """The text of a line ("file.py:12") without its indentation; "" where it is not known."""
    file, line = parted(place)
    return linecache.getline(file, line).strip() if file else ""


def lines_around(places: Iterable[str]) -> dict[str, dict[int, str]]:
    """The text of the lines around places ("file.py:line"), by file and number."""
    touched: dict[str, set[int]] = {}
    for place in places:
        file, line = parted(place)
        touched.setdefault(file, set()).add(line)
    return {file: shown for file, lines in touched.items() if (shown := _shown(linecache.getlines(file), lines))}


def _shown(texts: list[str], lines: set[int]) -> dict[int, str]:
    if len(texts) <= _WHOLE:
        wanted = range(1, len(texts) + 1)
    else:
        near = {number for line in lines for number in range(line - _AROUND, line + _AROUND + 1)}
        wanted = sorted(number for number in near if 1 <= number <= len(texts))  # type: ignore[assignment]
    return {number: texts[number - 1].rstrip() for number in wanted}
