"""The encoder in C that `json.dumps` uses, traced as the one in Python that it stands for.

A number that is known when the graph has run is written then: `log.write(json.dumps({"loss": loss.item()}) + "\\n")`.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from stator.space.deferred import DeferredNumber, DeferredStr, said_later
from stator.space.protocol import builtin, pure
from stator.space.space import Space
from stator.space.value import Value

_encoders: Any = importlib.import_module("json.encoder")
#: what holds the text that it gives: a list until 3.11, then a tuple
_WHOLE: Any = type(_encoders.JSONEncoder().iterencode(None, _one_shot=True))


@builtin(_encoders.c_make_encoder)
def new(space: Space, *args: Value) -> Value:
    return space.call(space.existing(python_encoder), list(args), {})


def python_encoder(
    markers: dict[int, object] | None,
    default: Callable[[object], object],
    encoder: Callable[[str], str],
    indent: None,
    key_separator: str,
    item_separator: str,
    sort_keys: bool,
    skipkeys: bool,
    allow_nan: bool,
) -> Callable[[object, int], Sequence[str]]:
    """The same as a program that is traced. What holds itself makes no end of it, and runs as ordinary Python then."""

    def number_text(number: float) -> str:
        if allow_nan or math.isfinite(number):
            return float_text(number)
        raise ValueError(f"Out of range float values are not JSON compliant: {number!r}")

    parts = _encoders._make_iterencode(
        None, default, encoder, indent, number_text, key_separator, item_separator, sort_keys, skipkeys, True
    )
    return lambda obj, level: _WHOLE(["".join(parts(obj, level))])


@builtin(_encoders.c_encode_basestring_ascii)
def quoted(space: Space, text: Value) -> Value | None:
    """Text in quotation marks, made of ASCII characters; of text that is made later, later."""
    later = said_later(text.force()) if text.isa(str) else None
    return None if later is None else DeferredStr([(_encoders.c_encode_basestring_ascii, [later])])


pure(_encoders.c_encode_basestring, _encoders.c_encode_basestring_ascii)


def float_text(number: float) -> str:
    """A float as JSON has it."""
    return json.dumps(number)


@builtin(float_text)
def shown(space: Space, number: Value) -> Value | None:
    number = number.force()
    return DeferredStr([(float_text, [number])]) if number.symbolic or isinstance(number, DeferredNumber) else None
