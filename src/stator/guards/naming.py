"""What messages call a source: by the names that the program has for it."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import NamedTuple

from .source import (
    CallInputs,
    CellContentsSource,
    DictItemSource,
    FunctionSource,
    GetAttrSource,
    ItemSource,
    LoadError,
    LocalSource,
    Source,
    TypeAttrSource,
)

__all__ = ["FORWARDERS", "PLAIN", "STEPS", "Called", "Names", "names_of"]


class Called(NamedTuple):
    """A call of a function: where its positional arguments are found, and those that are given by name."""

    code: CodeType
    args: tuple[Source, ...]
    kwargs: Source | None = None


#: asked about a call whose code only passes its arguments on: what it calls
FORWARDERS: list[Callable[[Called, CallInputs], Called | None]] = []
#: asked how a program writes a step, given what it calls other sources; None where the step's own text will do
STEPS: list[Callable[[Source, Callable[[Source], str]], str | None]] = []


class Names:
    """What the sources of one call are called.

    Args:
        call: the call.
        called: the function that it is about.
        parameters: the sources that this function has names for.
    """

    def __init__(
        self,
        call: CallInputs | None = None,
        called: Called | None = None,
        parameters: dict[Source, str] | None = None,
    ) -> None:
        self.called = called
        self._call = call
        self._parameters = parameters or {}
        #: what has been asked for of this call, and the paths as they are
        self._texts: dict[Source, str] = {}
        self._paths: dict[Source, str] = {}

    def of(self, source: Source) -> str:
        """The path as the program writes it."""
        if self._call is None:
            return source.expr(self._name)
        texts = self._texts
        if source not in texts:
            for step in reversed([step for step in source.chain() if step not in texts]):
                name = self._name(step)
                texts[step] = step.step("" if step.base is None else texts[step.base]) if name is None else name
        return texts[source]

    def quoted(self, source: Source) -> str:
        """The path in backticks, if it is an expression."""
        text = self.of(source)
        return text if text.startswith("the ") else f"`{text}`"

    def within(self, text: str, sources: tuple[Source, ...]) -> str:
        """A text in which the sources stand by their own paths."""
        paths = {self._path(source): source for source in sources}
        for path in sorted(paths, key=len, reverse=True):
            text = text.replace(path, self.of(paths[path]))
        return text

    def _path(self, source: Source) -> str:
        """The path as it is."""
        if self._call is None:
            return source.expr()
        paths = self._paths
        if source not in paths:
            for step in reversed([step for step in source.chain() if step not in paths]):
                paths[step] = step.step("" if step.base is None else paths[step.base])
        return paths[source]

    def _name(self, source: Source) -> str | None:
        known = self._parameters.get(source)
        if known is not None:
            return known
        if isinstance(source, DictItemSource) and self.called is not None and source.base is self.called.kwargs:
            return str(source.key)
        if isinstance(source, GetAttrSource | TypeAttrSource):
            return f"{self.of(source.base)}.{source.name}"
        return next((name for ask in (_of_frame, self._of_cell, *STEPS) if (name := ask(source, self.of))), None)

    def _of_cell(self, source: Source, name_of: Callable[[Source], str]) -> str | None:
        """A variable that a function has from around it."""
        cell = source.base if isinstance(source, CellContentsSource) else None
        closure = cell.base if isinstance(cell, ItemSource) else None
        if self._call is None or not isinstance(closure, GetAttrSource) or closure.name != "__closure__":
            return None
        assert isinstance(cell, ItemSource)
        try:
            function = self._call.get(closure.base)
        except LoadError:
            return None
        names = function.__code__.co_freevars if isinstance(function, FunctionType) else ()
        if cell.index >= len(names):
            return None
        name = names[cell.index]
        return name if isinstance(closure.base, FunctionSource) else f"the {name} of {self.quoted(closure.base)}"


#: paths as they are
PLAIN = Names()


def names_of(code: CodeType, call: CallInputs) -> Names:
    """What the sources of a call of this code are called."""
    called = Called(code, tuple(LocalSource(i, code.co_varnames[i]) for i in range(len(call.args))))
    parameters: dict[Source, str] = {}
    while (inner := next((inner for ask in FORWARDERS if (inner := ask(called, call))), None)) is not None:
        called, parameters = inner, dict(zip(inner.args, _positional(inner), strict=False))
    return Names(call, called, parameters)


def _positional(called: Called) -> list[str]:
    """What a function calls its positional arguments."""
    code = called.code
    names = list(code.co_varnames[: code.co_argcount])
    if code.co_flags & _STAR_ARGS:
        rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        names += [f"{rest}[{i}]" for i in range(len(called.args) - len(names))]
    return names


_STAR_ARGS = 0x04

#: what only frames that are gone on with have
_OF_FRAMES = {
    ".result": "the result of the call",
    ".exception": "the exception",
    ".callable": "the call",
    ".arguments": "the arguments of the call",
    ".first": "the first argument",
    ".stack": "the value of a part of the line",
}


def _of_frame(source: Source, name_of: Callable[[Source], str]) -> str | None:
    if not isinstance(source, LocalSource) or not source.name.startswith("."):
        return None
    return _OF_FRAMES.get(source.name.rstrip("0123456789"))
