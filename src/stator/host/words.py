"""CPython's own words for an error: they differ between versions, and are asked for instead of written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["error_words"]


def error_words(function: Callable[..., Any], /, *args: Any) -> str:
    """What CPython says when it refuses this call: `error_words(max, ())` is "max() iterable argument is empty"."""
    try:
        function(*args)
    except Exception as error:
        return str(error)
    raise AssertionError(f"{function!r} has taken the arguments")
