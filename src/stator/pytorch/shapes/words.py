"""How messages call symbols: by where the numbers are found, as the program knows no names of symbols."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.fake.metadata import expression_of
from stator.pytorch.shapes.unbacked import symbols_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stator.errors.catalogue import Break
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Operation
    from stator.pytorch.types import Number

__all__ = ["counts_elements", "number_in_words", "number_needed", "symbols_in_words"]

#: how many items of one container are named, and how many numbers in all
_MOST_ITEMS, _MOST_NAMED = 2, 4

#: what the program writes with brackets
_INDEXING = "Tensor.__getitem__"
#: the names that torch's ShapeEnv gives to symbols
_SYMBOL = re.compile(r"\b(?:s|u|zf|zuf)\d+\b")


def number_in_words(recorder: Recorder, number: Number, condition: bool) -> str:
    """What a number, or a condition, is computed of."""
    given, made = _given(recorder), _made(recorder)
    symbols = [str(symbol) for symbol in symbols_of(number)]
    found = [
        *_together(sorted({given[symbol] for symbol in symbols if symbol in given})),
        *sorted({made[symbol] for symbol in symbols if symbol in made}),
    ]
    if not found:
        return "a condition on sizes" if condition else "a number computed of sizes"
    shown, expression = _listed(found), expression_of(number)
    if condition:
        return f"a condition on {shown}"
    return shown if expression is not None and expression.is_symbol else f"a number computed of {shown}"


def number_needed(recorder: Recorder, brk: Break, undecided: Any) -> Break:
    """The break at an operation that must know a number, with where that is from, unless it is a private function:
    `undecided` is torch's error.
    """
    made, symbols = _made(recorder), getattr(getattr(undecided, "cond", None), "free_symbols", ())
    found = sorted({made[str(symbol)] for symbol in symbols if "._" not in made.get(str(symbol), "._")})
    if not isinstance(brk, errors.DataDependentValue) or not found:
        return brk
    return errors.DataDependentValue(brk.operation, f"{brk.does}: {_listed(found)}").advising(brk.hint)


def counts_elements(recorder: Recorder, number: Number) -> bool:
    """Whether a number, or a condition, is about how many elements there are of what a call makes."""
    symbols = set(map(str, symbols_of(number)))
    return any(symbol in symbols and _is_size(path) for symbol, _, path in _bound(recorder))


def symbols_in_words(recorder: Recorder, text: str) -> str:
    """What torch says of symbols, in words that the program has."""
    if not (recorder.shapes.begun and _SYMBOL.search(text)):
        return text
    names = {**_made(recorder), **_given(recorder)}
    return _SYMBOL.sub(lambda match: names.get(match[0], match[0]), text)


def _made_by(function: str, path: Iterable[object]) -> str:
    """What a call makes that nobody knows before: a number, or a tensor of so many elements."""
    if not _is_size(path):
        return function if function.endswith(")") else f"a number from {function}"  # `float(tensor)` is one
    return "how many elements a mask selects" if function == _INDEXING else f"how many elements {function} gives"


def _is_size(path: Iterable[object]) -> bool:
    return any(getattr(step, "name", "") == "size" for step in path)


def _given(recorder: Recorder) -> dict[str, str]:
    """Where the program has the number that a symbol stands for, by the symbol's name."""
    symbols = recorder.shapes.symbols.items()
    return {
        str(symbol): recorder.trace.root.names.of(value.source) for symbol, value in symbols if value.source is not None
    }


def _made(recorder: Recorder) -> dict[str, str]:
    """Which call makes the number that a symbol stands for, by the symbol's name."""
    return {symbol: _made_by(describe_callable(operation.called), path) for symbol, operation, path in _bound(recorder)}


def _bound(recorder: Recorder) -> Iterator[tuple[str, Operation, Iterable[object]]]:
    """The symbols that calls make: name, call, and where in its result the number is."""
    for operation in recorder.nodes.operations.values():
        for symbol, path in (operation.bindings or {}).items():
            yield str(symbol), operation, path


def _together(names: Iterable[str]) -> Iterator[str]:
    """Names as the program writes them; of many items of one container its name."""
    containers: dict[str, list[str]] = {}
    for name in names:
        containers.setdefault(name.rpartition("[")[0] if name.endswith("]") else name, []).append(name)
    for container, items in containers.items():
        yield from [f"items of {container}"] if len(items) > _MOST_ITEMS else items


def _listed(names: Sequence[str]) -> str:
    """Several names in a sentence, of many the first."""
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} other numbers"]
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
