"""Keys that are not the same for good: numbers and texts that vary from call to call.

Which they are is assumed where they are compared with others, and not before: `stats[f"pages{n}"] += 1` is one graph
for all `n`, also beside `stats["steps"] += 1`, which no number can make of it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from stator.space.host_types import Host
from stator.space.identity.keys import PLAIN, IdentityKey
from stator.space.value import Value

if TYPE_CHECKING:
    from stator.space.interfaces import Trace
    from stator.space.space import Space

__all__ = ["MOST_COMPARED", "SymbolKey", "TextKey", "equality", "settled", "told_apart", "varies"]


class SymbolKey:
    """Key of a whole number that varies: it hashes as the number does now, and being compared is assumed to stay so.

    A host dict compares it only with keys of the same hash: `told_apart` compares it with the others.
    """

    __slots__ = ("now", "space", "value")

    def __init__(self, space: Space, value: Value, now: int) -> None:
        space.trace.extension(_Met).numbers = True
        self.space = space
        self.value = value
        self.now = now

    def __hash__(self) -> int:
        return hash(self.now)

    def __eq__(self, other: object) -> bool:
        if type(other) is not SymbolKey and type(other) not in _NUMBERS:
            return False
        return self.space.truth(self._compared(other))

    def _compared(self, other: Host) -> Value:
        theirs = other.value if type(other) is SymbolKey else self.space.fresh(other)
        return self.space.compare("==", self.value, theirs).force()

    def equality(self, other: Host) -> bool | None:
        """Whether it equals another key for all numbers, or for none."""
        if type(other) is not SymbolKey and type(other) not in _NUMBERS:
            return False if type(other) in _COMPARED else None
        if type(other) is SymbolKey and other.value is self.value:
            return True
        result = self._compared(other)
        return result.host if result.constant else None


class TextKey:
    """Key of a text that varies: it hashes and compares as the text does now.

    What it begins and ends with tells it from most texts for good; for all others `told_apart` has it assumed.

    Args:
        space: where it is met.
        value: the text.
        now: what it is in this call.
        around: how it begins and ends in all calls.
        parts: what it is made of, the same for equal texts: values, and what is the same object or equal.
    """

    __slots__ = ("after", "before", "now", "parts", "value")

    def __init__(self, space: Space, value: Value, now: str, around: tuple[str, str], parts: tuple[Host, ...]) -> None:
        space.trace.extension(_Met).texts = True
        self.value = value
        self.now = now
        self.before, self.after = around
        self.parts = parts

    def __hash__(self) -> int:
        return hash(self.now)

    def __eq__(self, other: object) -> bool:
        return self.now == (other.now if type(other) is TextKey else other)

    def equality(self, other: Host) -> bool | None:
        """Whether it equals another key for all numbers, or for none."""
        if type(other) is TextKey:
            ends = (self.before, other.before), (other.after[::-1], self.after[::-1])
            if all(a.startswith(b) or b.startswith(a) for a, b in ends):
                return True if self._is_made_as(other) else None
            return False
        if type(other) is str:
            enough = len(other) >= len(self.before) + len(self.after)
            return None if enough and other.startswith(self.before) and other.endswith(self.after) else False
        return False if type(other) in _COMPARED else None

    def _is_made_as(self, other: TextKey) -> bool:
        if self.value is other.value:
            return True
        pairs = list(zip(self.parts, other.parts, strict=False))
        return len(self.parts) == len(other.parts) and all(a is b for a, b in pairs)


#: types of keys that vary
_VARYING = frozenset({SymbolKey, TextKey})
_NUMBERS = frozenset({int, bool, float, complex})
#: types of keys of which it is known what they are to a number, and with how many of them one that varies is compared
_COMPARED = frozenset({*_VARYING, IdentityKey, tuple, *PLAIN})
MOST_COMPARED = 16


class _Met:
    """Whether some keys are numbers that vary, or texts."""

    def __init__(self, trace: Trace) -> None:
        self.numbers = self.texts = False


def varies(key: Host) -> bool:
    """Whether the key is a number or a text that varies."""
    return type(key) in _VARYING


def equality(key: Host, other: Host) -> bool | None:
    """Whether two keys, one of which varies, are equal whatever it is; None where that depends on it."""
    return (key if varies(key) else other).equality(other if varies(key) else key)  # type: ignore[no-any-return]


def settled(space: Space, key: Host) -> Host:
    """The key, that of a number or a text which varies as what it is now."""
    if type(key) is SymbolKey:
        return space.decide(key.value)
    return space.key(key.value) if type(key) is TextKey else key


def told_apart(space: Space, key: Host, keys: Collection[Host]) -> Host:
    """The key, once it is known which of the keys of a dict it is: each other number than now would be another one."""
    kind, met = type(key), space.trace.extension(_Met)
    if not met.numbers and not met.texts:
        return key
    if kind in _VARYING and (len(keys) > MOST_COMPARED or any(type(other) not in _COMPARED for other in keys)):
        return settled(space, key)
    if kind is TextKey:
        return settled(space, key) if any(equality(key, other) is None for other in keys) else key
    if kind is str:
        _settle_texts(space, key, keys if met.texts else ())
    elif kind is SymbolKey or kind in _NUMBERS:
        for other in keys:
            if (kind is SymbolKey or type(other) is SymbolKey) and key == other:
                break
    elif kind not in _COMPARED:
        for other in keys:
            settled(space, other)
    return key


def _settle_texts(space: Space, text: str, keys: Collection[Host]) -> None:
    """Assume of the texts among the keys that may be equal to another what they are."""
    for key in keys:
        if type(key) is TextKey and equality(key, text) is None:
            settled(space, key)
