"""One private name of torch, and how to tell whether it is what Stator takes it for (the table: `internals.py`)."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["CLASS", "FIELD", "FUNCTION", "MODULE", "OBJECT", "Kind", "Name", "look_at", "resolve"]


class Kind(NamedTuple):
    """A kind of object: how messages call it, and how it is told."""

    text: str
    fits: Callable[[Any], bool]


FUNCTION = Kind("a function", lambda found: callable(found) and not isinstance(found, type))
CLASS = Kind("a class", lambda found: isinstance(found, type))
#: an attribute that a class computes: the name stands for the function that reads it
FIELD = Kind("a computed attribute", lambda found: hasattr(type(found), "__get__") and not inspect.isfunction(found))
OBJECT = Kind("an object", lambda found: True)
MODULE = Kind("a module", inspect.ismodule)


class Name(NamedTuple):
    """One name of torch's.

    Args:
        path: the name.
        kind: what it must be.
        purpose: what Stator needs it for.
        takes: with how many arguments it is called, where it is written in Python.
        words: with which keywords.
        has: what is looked up in it.
        public: what torch documents for the same purpose, and is not enough.
    """

    path: str
    kind: Kind
    purpose: str
    takes: int | None = None
    words: tuple[str, ...] = ()
    has: tuple[str, ...] = ()
    public: str = ""


def look_at(row: Name) -> tuple[Any, str]:
    """What torch has under the name, and how that is not what it should be."""
    try:
        found = resolve(row.path)
    except (ImportError, AttributeError, RuntimeError):
        return None, f"{row.path} is not there ({row.purpose})"
    if not row.kind.fits(found):
        return found, f"{row.path} is not {row.kind.text} ({row.purpose})"
    for attribute in row.has:
        if not hasattr(found, attribute):
            return found, f"{row.path} has no {attribute} ({row.purpose})"
    problem = _cannot_call(found, row)
    return found, f"{row.path} is called otherwise: {problem} ({row.purpose})" if problem else ""


def resolve(path: str) -> Any:
    """The object of a dotted name; modules are imported."""
    parts = path.split(".")
    found: Any = None
    for i, part in enumerate(parts, 1):
        prefix = ".".join(parts[:i])
        # A package may show something else under the name of a module in it. Importing waits where another thread does.
        in_module = inspect.ismodule(found) and (sys.modules.get(prefix) is not None or not hasattr(found, part))
        if found is None or in_module:
            found = importlib.import_module(prefix)
        else:
            found = getattr(found, part)
    return found


def _cannot_call(found: Any, row: Name) -> str:
    """Why a Python function cannot be called as Stator calls it. C functions do not tell."""
    if row.takes is None and not row.words:
        return ""
    try:
        signature = inspect.signature(found)
    except (ValueError, TypeError):
        return ""
    try:
        signature.bind(*[None] * (row.takes or 0), **dict.fromkeys(row.words))
    except TypeError as error:
        return str(error)
    return ""
