"""How messages call symbols: by where the numbers are found, as the program knows no names of symbols."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.fake.metadata import expression_of
from stator.pytorch.shapes.unbacked import symbols_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Number

__all__ = ["number_in_words", "symbols_in_words"]

#: what the program writes with brackets
_INDEXING = "Tensor.__getitem__"
#: the names that torch's ShapeEnv gives to symbols
_SYMBOL = re.compile(r"\b(?:s|u|zf|zuf)\d+\b")


def number_in_words(recorder: Recorder, number: Number, condition: bool) -> str:
    """What a number, or a condition, is computed of."""
    names = _names(recorder)
    found = sorted({names[str(symbol)] for symbol in symbols_of(number) if str(symbol) in names})
    if not found:
        return "a condition on sizes" if condition else "a number computed of sizes"
    shown, expression = ", ".join(found), expression_of(number)
    if condition:
        return f"a condition on {shown}"
    return shown if expression is not None and expression.is_symbol else f"a number computed of {shown}"


def symbols_in_words(recorder: Recorder, text: str) -> str:
    """What torch says of symbols, in words that the program has."""
    if not (recorder.shapes.begun and _SYMBOL.search(text)):
        return text
    names = _names(recorder)
    return _SYMBOL.sub(lambda match: names.get(match[0], match[0]), text)


def _made_by(function: str, path: Iterable[object]) -> str:
    """What a call makes that nobody knows before: a number, or a tensor of so many elements."""
    if not any(getattr(step, "name", "") == "size" for step in path):
        return f"a number from {function}"
    return "how many elements a mask selects" if function == _INDEXING else f"how many elements {function} gives"


def _names(recorder: Recorder) -> dict[str, str]:
    """Where the number is found that a symbol stands for, by the symbol's name."""
    found: dict[str, str] = {}
    for operation in recorder.nodes.operations.values():
        for symbol, path in (operation.bindings or {}).items():
            found[str(symbol)] = _made_by(describe_callable(operation.called), path)
    for symbol, value in recorder.shapes.symbols.items():
        if value.source is not None:
            found[str(symbol)] = recorder.trace.root.names.of(value.source)
    return found
