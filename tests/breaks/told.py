# needs: torch
"""The messages of a run, and what is wrong with one: its form, and names that the program does not have."""

from __future__ import annotations

import builtins
import functools
import keyword
import re
import sys
import types
from collections.abc import Iterator
from types import ModuleType

import stator
from stator import errors
from stator.errors.message import Message
from stator.report import messages
from stator.report.events import Broke, Listener
from stator.report.stats import RecompileRecord
from tests.breaks.registry import Program

__all__ = ["Told", "violations"]

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
#: what says of a word that it is a name: a point, an underscore, a capital inside; or it is between backticks
_LIKE_A_NAME = re.compile(r"[._]|[a-z0-9][A-Z]")
#: special methods, which an operator or a statement calls
_SPECIAL = re.compile(r"__\w+__")
#: what Python itself calls frames and classes
_OF_PYTHON = frozenset(
    {
        "listcomp",
        "genexpr",
        "lambda",
        "dictcomp",
        "setcomp",
        *(cls.__name__ for cls in vars(types).values() if isinstance(cls, type)),
    }
)
_QUOTED = re.compile(r"`([^`]*)`")


class Told(Listener):
    """Keeps what is told."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def broke(self, event: Broke) -> None:
        self.messages.append(messages.broke(event))

    def recompiled(self, record: RecompileRecord) -> None:
        self.messages.append(messages.recompiled(record))

    def found(self, file: str) -> set[tuple[str, int]]:
        """The codes, with the innermost of the file's lines."""
        return {(each.code, line) for each in self.messages if (line := _line(each, file))}


def _line(message: Message, file: str) -> int:
    return next((frame.lineno or 0 for frame in reversed(message.stack) if frame.filename == file), 0)


def violations(message: Message, program: Program) -> Iterator[str]:
    """What is wrong with a message."""
    lines = str(message).splitlines()
    if len(lines) > 20 or max(map(len, lines)) > 80:
        yield f"{len(lines)} lines, {max(map(len, lines))} columns"
    if not _line(message, program.file):
        yield "no line of the program"
    if not message.hint:
        yield "no next step"
    if not lines[-1].endswith(f"stator why {message.code}"):
        yield "no page"
    names = _Names(program)
    for name in sorted(_names_in(message)):
        if not names.known(name):
            yield f"{name} is no name of the program"


def _names_in(message: Message) -> set[str]:
    text = " ".join([message.sentence, *message.details, message.meanwhile, message.hint])
    quoted = {name for part in _QUOTED.findall(text) for name in _NAME.findall(part)}
    functions = {name for frame in message.stack for name in _NAME.findall(frame.name)}
    return quoted | functions | {name for name in _NAME.findall(text) if _LIKE_A_NAME.search(name)}


class _Names:
    """The names that a program may be told of: its own, public ones of what it imports, Stator's words."""

    def __init__(self, program: Program) -> None:
        self._words = set(re.findall(r"\w+", program.source))
        self._home = program.make.__module__
        file = vars(sys.modules[self._home])
        modules = {"stator": stator} | {name: thing for name, thing in file.items() if isinstance(thing, ModuleType)}
        # A module may be imported under another name, and a part of it by itself.
        modules |= {thing.__name__: thing for thing in modules.values()}
        modules |= {word: sys.modules[word] for word in self._words if word in sys.modules}
        self._modules = modules

    def known(self, name: str) -> bool:
        """Whether the program may be told of it."""
        first, *rest = name.removeprefix(f"{self._home}.").split(".")
        if rest and rest[-1] in self._words and not rest[-1].startswith("_"):
            return True  # a method that the program calls, with the class of the object
        if keyword.iskeyword(name) or name in _OF_PYTHON:
            return True
        if all(part in self._words for part in (first, *rest)) or name in own_words():
            return True
        if first in self._words and first not in self._modules:
            return all(part in self._words or not part.startswith("_") or _SPECIAL.fullmatch(part) for part in rest)
        roots = [self._modules.get(first), getattr(builtins, first, None)]
        roots += [getattr(module, first, None) for module in self._modules.values() if not first.startswith("_")]
        return any(_leads_on(root, rest) for root in roots if root is not None)


def _leads_on(thing: object, names: list[str]) -> bool:
    """Whether there are such public attributes."""
    for name in names:
        if not (_SPECIAL.fullmatch(name) or not name.startswith("_")) or not hasattr(thing, name):
            return False
        thing = getattr(thing, name)
    return True


@functools.cache
def own_words() -> frozenset[str]:
    """The names in what is said of every break of a kind, and those of options and functions of Stator's."""
    texts = [text for kind in errors.kinds() for text in (kind.title, kind.hint, re.sub(r"{.*?}", "", kind.template))]
    words = {name for text in texts for name in _NAME.findall(text)}
    return frozenset(words | set(stator.__all__) | {name for name in dir(stator.config) if not name.startswith("_")})
