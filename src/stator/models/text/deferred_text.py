"""What can be said of a text before all of it is known: methods of `str` on pending text.

Each declines (None) where the answer depends on what is not known yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stator.space.deferred import DeferredStr, concatenated
from stator.space.operands import bool_value, known_host
from stator.space.protocol import builtin
from stator.space.space import Space
from stator.space.value import Constant, Value

#: what `hex` gives begins with a zero, and consists of these
_HEX = frozenset("0123456789abcdefx")


def _pending(host: Any) -> Callable[[Callable[..., Value | None]], None]:
    """Register a model of a method of str that is asked only if an operand is pending."""

    def decorate(function: Callable[..., Value | None]) -> None:
        count = function.__code__.co_argcount - 1

        def model(space: Space, *args: Value) -> Value | None:
            forced = [arg.force() for arg in args]
            pending = any(isinstance(arg, DeferredStr) for arg in forced) and len(forced) == count
            return function(space, *forced) if pending and all(issubclass(arg.cls, str) for arg in forced) else None

        builtin(host)(model)

    return decorate


def _pieces(space: Space, text: Value) -> str | DeferredStr:
    return text if isinstance(text, DeferredStr) else str.__str__(known_host(space, text, "str"))


def _ends(text: str | DeferredStr) -> tuple[str, str]:
    """What the text certainly begins and ends with."""
    if isinstance(text, str):
        return text, text
    first, last = text.parts[0], text.parts[-1]
    return first if isinstance(first, str) else "", last if isinstance(last, str) else ""


def _apart(text: Value, part: Value) -> tuple[DeferredStr, str] | None:
    """The two, where no occurrence of the part can lie in, or reach into, what is not known of the text."""
    if not isinstance(text, DeferredStr) or type(part) is not Constant:
        return None
    word = str(part.host)
    hexadecimal = all(isinstance(piece, str) or piece[0] is hex for piece in text.parts)
    if not hexadecimal or not word or word[0] in _HEX or "0" in word:
        return None
    return text, word


@_pending(str.__add__)
def add(space: Space, left: Value, right: Value) -> Value:
    return concatenated(_pieces(space, left), _pieces(space, right))


def _differ(space: Space, left: Value, right: Value) -> bool | None:
    if isinstance(left, DeferredStr) and isinstance(right, DeferredStr) and left.parts == right.parts:
        return False
    (begins, ends), (other_begins, other_ends) = _ends(_pieces(space, left)), _ends(_pieces(space, right))
    common = min(len(begins), len(other_begins))
    if begins[:common] != other_begins[:common]:
        return True
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
    begins, wanted = _ends(_pieces(space, text))[0], _ends(_pieces(space, prefix))[0]
    if isinstance(prefix, DeferredStr) or (len(begins) < len(wanted) and wanted.startswith(begins)):
        return None
    return bool_value(begins.startswith(wanted))


@_pending(str.endswith)
def endswith(space: Space, text: Value, suffix: Value) -> Value | None:
    ends, wanted = _ends(_pieces(space, text))[1], _ends(_pieces(space, suffix))[1]
    if isinstance(suffix, DeferredStr) or (len(ends) < len(wanted) and wanted.endswith(ends)):
        return None
    return bool_value(ends.endswith(wanted))


@_pending(str.__contains__)
def contains(space: Space, text: Value, part: Value) -> Value | None:
    if isinstance(text, DeferredStr) and type(part) is Constant:
        if any(isinstance(piece, str) and part.host in piece for piece in text.parts):
            return bool_value(True)
        return None if _apart(text, part) is None else bool_value(False)
    return None


@_pending(str.replace)
def replace(space: Space, text: Value, old: Value, new: Value) -> Value | None:
    found = _apart(text, old)
    if found is None or type(new) is not Constant:
        return None
    pieces = [
        piece.replace(found[1], new.host) if isinstance(piece, str) else DeferredStr([piece])
        for piece in found[0].parts
    ]
    return concatenated(*pieces)
