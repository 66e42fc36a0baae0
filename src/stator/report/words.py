"""Words of reports."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["better_left", "compiled_by_itself", "counted", "merged"]


def counted(number: int, noun: str) -> str:
    """A number and what it counts: "1 graph break", "2 graph breaks"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def better_left(function: str, count: int, places: int) -> str:
    """That a function breaks so often, at so many of its lines, that it is better not traced."""
    broken = f"`{function}` has {counted(count, 'break')}, at {places} of its lines"
    return f"{broken}: under `stator.disable` it runs as ordinary Python, with one break where it is called"


def compiled_by_itself(caller: str, place: str) -> str:
    """Why what a function calls that was compiled too often is told behind all else."""
    runs = f"`{caller}` ({place}) runs as ordinary Python, so what it calls is compiled by itself"
    return f"{runs}: mend SB0501 there, then look again"


def merged(sentences: Iterable[str]) -> list[str]:
    """The sentences that are not empty, each once; those that differ in one word, or one call, are one sentence.

    >>> merged(["mark(x, 0) before the first call", "mark(y, 1) before the first call"])
    ['mark(x, 0), mark(y, 1) before the first call']
    """
    groups: list[_Alike] = []
    for sentence in dict.fromkeys(filter(None, sentences)):
        words = _WORD.findall(sentence)
        if not any(group.takes(words) for group in groups):
            groups.append(_Alike(words))
    return [str(group) for group in groups]


class _Alike:
    """Sentences that differ in one word."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._place = -1
        self._others: list[str] = []

    def takes(self, words: list[str]) -> bool:
        """Whether a sentence is like the others, and is now one of them."""
        apart = [at for at, pair in enumerate(zip(words, self._words, strict=False)) if pair[0] != pair[1]]
        if len(words) != len(self._words) or len(apart) != 1 or self._place not in (-1, apart[0]):
            return False
        self._place = apart[0]
        self._others.append(words[self._place])
        return True

    def __str__(self) -> str:
        words = list(self._words)
        words[self._place] = ", ".join([words[self._place], *self._others])
        return " ".join(words)


#: a call counts as one word
_WORD = re.compile(r"[^\s(]+\([^)]*\)\S*|\S+")
