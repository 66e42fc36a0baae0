"""What can be said of a text before all of it is known: methods of `str` on pending text.

Each declines (None) where the answer depends on what is not known yet.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from stator.space.deferred import DeferredStr, concatenated, joined
from stator.space.host_types import Host
from stator.space.operands import bool_value, known_host
from stator.space.protocol import builtin
from stator.space.space import Space
from stator.space.value import Constant, Value

#: what `hex` gives begins with a zero, and consists of these
_HEX = frozenset("0123456789abcdefx")
#: what other numbers are shown in
_DIGITS = frozenset("-0123456789")


def _pending(host: Host) -> Callable[[Callable[..., Value | None]], None]:
    """Register a model of a method of str that is asked only if an operand is pending."""

    def decorate(function: Callable[..., Value | None]) -> None:
        count = function.__code__.co_argcount - 1

        def model(space: Space, *args: Value) -> Value | None:
            forced = [arg.force() for arg in args]
            pending = any(isinstance(arg, DeferredStr) for arg in forced) and len(forced) == count
            return function(space, *forced) if pending and all(arg.isa(str) for arg in forced) else None

        builtin(host)(model)

    return decorate


def _whole(space: Space, text: Value) -> str | None:
    """The text, if all of it is known."""
    return None if isinstance(text, DeferredStr) else str.__str__(known_host(space, text, "str"))


def _laid_out(space: Space, text: Value) -> DeferredStr:
    """The text, taken for a pending one where all of it is known."""
    return text if isinstance(text, DeferredStr) else DeferredStr([], [_whole(space, text) or ""])


def _apart(space: Space, text: Value, part: Value) -> str | None:
    """The part, where no occurrence of it can lie in, or reach into, what is not known of the text."""
    word = _whole(space, part)
    pieces = _laid_out(space, text).pieces
    if not word or not pieces:
        return word or None
    if all(function is hex for function, _ in pieces):
        return None if word[0] in _HEX or "0" in word else word
    if all(function in (format, repr) and _in_digits(space, *args) for function, args in pieces):
        return None if _DIGITS.intersection(word) else word
    return None


def _in_digits(space: Space, number: Value, *options: Value) -> bool:
    """Whether a number is shown as `str` shows an int."""
    return number.cls is int and all(option.as_host(space) == "" for option in options)


@builtin(str.__add__)
def add(space: Space, left: Value, right: Value) -> Value | None:
    """Of text that varies from call to call too: which it is need not be known for this."""
    parts = [left.force(), right.force()]
    if not any(part.selects for part in parts) or not all(part.isa(str) for part in parts):
        return None
    return joined(parts, lambda text: str.__str__(known_host(space, text, "str")))


def _differ(space: Space, left: Value, right: Value) -> bool | None:
    mine, theirs = _laid_out(space, left), _laid_out(space, right)
    if (mine.texts, mine.pieces) == (theirs.texts, theirs.pieces):
        return False
    for whole, other in ((mine, theirs), (theirs, mine)):
        if not whole.pieces and len(whole.texts[0]) < sum(map(len, other.texts)):
            return True
    begins, other_begins = mine.texts[0], theirs.texts[0]
    common = min(len(begins), len(other_begins))
    if begins[:common] != other_begins[:common]:
        return True
    ends, other_ends = mine.texts[-1], theirs.texts[-1]
    common = min(len(ends), len(other_ends))
    return True if ends[len(ends) - common :] != other_ends[len(other_ends) - common :] else None


@_pending(str.__eq__)
def eq(space: Space, left: Value, right: Value) -> Value | None:
    differ = _differ(space, left, right)
    return None if differ is None else bool_value(not differ)


@_pending(str.__ne__)
def ne(space: Space, left: Value, right: Value) -> Value | None:
    differ = _differ(space, left, right)
    return None if differ is None else bool_value(differ)


@_pending(str.startswith)
def startswith(space: Space, text: Value, prefix: Value) -> Value | None:
    begins, wanted = _laid_out(space, text).texts[0], _whole(space, prefix)
    if wanted is None or (len(begins) < len(wanted) and wanted.startswith(begins)):
        return None
    return bool_value(begins.startswith(wanted))


@_pending(str.endswith)
def endswith(space: Space, text: Value, suffix: Value) -> Value | None:
    ends, wanted = _laid_out(space, text).texts[-1], _whole(space, suffix)
    if wanted is None or (len(ends) < len(wanted) and wanted.endswith(ends)):
        return None
    return bool_value(ends.endswith(wanted))


@_pending(str.__contains__)
def contains(space: Space, text: Value, part: Value) -> Value | None:
    word = _whole(space, part)
    if word is None:
        return None
    if any(word in known for known in _laid_out(space, text).texts):
        return bool_value(True)
    return None if _apart(space, text, part) is None else bool_value(False)


@_pending(str.replace)
def replace(space: Space, text: Value, old: Value, new: Value) -> Value | None:
    word, other = _apart(space, text, old), _whole(space, new)
    if word is None or other is None:
        return None
    found = _laid_out(space, text)
    return DeferredStr(found.pieces, [known.replace(word, other) for known in found.texts])


def _parts(text: DeferredStr, word: str) -> list[Value]:
    """What stands between the occurrences of a word, all of which are in what is known of the text."""
    pieces = [DeferredStr([piece]) for piece in text.pieces]
    parts, part = list[Value](), list[str | DeferredStr]()
    for known, *piece in itertools.zip_longest(text.texts, pieces):
        first, *others = known.split(word)
        part.append(first)
        for other in others:
            parts.append(concatenated(*part))
            part = [other]
        part += [each for each in piece if each is not None]
    return [*parts, concatenated(*part)]


@_pending(str.split)
def split(space: Space, text: Value, separator: Value) -> Value | None:
    word = _apart(space, text, separator)
    return None if word is None else space.new_list(_parts(_laid_out(space, text), word))


@_pending(str.rpartition)
def rpartition(space: Space, text: Value, separator: Value) -> Value | None:
    word = _apart(space, text, separator)
    if word is None:
        return None
    *others, last = _parts(_laid_out(space, text), word)
    begin = [each for part in others for each in (Constant(word), part)][1:]
    whole = joined(begin, lambda part: part.as_host(space)) if begin else Constant("")
    return space.new_tuple([whole, Constant(word if begin else ""), last])
