"""What messages call a source: by the names that the program has for it."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from .raw import ABSENT, type_lookup
from .source import (
    CallInputs,
    CallSource,
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

__all__ = [
    "CONTENTS",
    "FORWARDERS",
    "LOOP_VARIABLES",
    "PARAMETERS",
    "PLAIN",
    "STEPS",
    "Called",
    "Names",
    "identifier",
    "is_expression",
    "names_of",
    "quoted",
]


def is_expression(name: str) -> bool:
    """Whether a source's name is one that the program could write; "the result of the call" is none."""
    return not name.startswith("the ")


def _stepped(name: str, written: str) -> str:
    """A step from what is called so, as it is written from there; of what the program has no expression for, in words:
    "the `.args[0]` of the exception".
    """
    if is_expression(name) or not written.startswith(name):
        return written
    before, told, whole = name.removeprefix("the `").partition("` of ") if name.startswith("the `") else ("", "", "")
    return f"the `{before}{written.removeprefix(name)}` of {whole if told else name}"


def quoted(name: str) -> str:
    """A source's name in a sentence: in backticks, if it is an expression."""
    return f"`{name}`" if is_expression(name) else name


def identifier(text: str) -> str:
    """The last words of a text that are short enough together."""
    words = [word for word in _WORD.sub("_", text).split("_") if word] or ["v"]
    while len(words) > 1 and sum(map(len, words)) + len(words) > _LONGEST_IDENTIFIER:
        del words[0]
    return "_".join(words)


_WORD = re.compile(r"\W+")
_LONGEST_IDENTIFIER = 40


class Called(NamedTuple):
    """A call of a function: where its positional arguments are found, and those that are given by name."""

    code: CodeType
    args: tuple[Source, ...]
    kwargs: Source | None = None


#: asked about a call whose code only passes its arguments on: what it calls
FORWARDERS: list[Callable[[Called, CallInputs], Called | None]] = []
#: asked what the parameters of a code object are, where that is not their names
PARAMETERS: list[Callable[[CodeType], Sequence[str] | None]] = []
#: by kinds of sources: asked how a program writes such a step, given what other sources are called; None where the
#: step's own text will do
STEPS: dict[type[Source], Callable[[Any, Names], str | None]] = {}
#: asked which variables the loop binds in which a frame goes on
LOOP_VARIABLES: list[Callable[[CodeType], Sequence[str]]] = []
#: asked about a container, by its path in the program: whose it is and what it holds, where the program sees only those
CONTENTS: list[Callable[[str], tuple[str, str] | None]] = []


class Names:
    """What the sources of one call are called.

    Args:
        call: the call.
        calls: of the function, and what it only passes its arguments on to: the last is what names are about.
        parameters: the sources that this function has names for.
        resumed: whether the frame is the rest of one, which the program does not call.
    """

    def __init__(
        self,
        call: CallInputs | None = None,
        calls: Sequence[Called] = (),
        parameters: dict[Source, str] | None = None,
        *,
        resumed: bool = False,
    ) -> None:
        self.calls = calls
        self.called = calls[-1] if calls else None
        self.resumed = resumed
        self._call = call
        self._parameters = parameters or {}
        self._stacked = {source for source, name in self._parameters.items() if name.startswith(".stack")}
        #: what has been asked for of this call
        self._texts: dict[Source, str] = {}

    def of(self, source: Source) -> str:
        """The path as the program writes it."""
        if self._call is None:
            return source.expr(self._name)
        texts = self._texts
        if source in texts:
            return texts[source]
        asked: list[Source] = []
        step: Source | None = source
        while step is not None and step not in texts:
            asked.append(step)
            step = step.base
        for step in reversed(asked):
            name = self._name(step)
            base = "" if step.base is None else texts[step.base]
            texts[step] = _stepped(base, step.step(base)) if name is None else name
        return texts[source]

    def identifier(self, source: Source) -> str:
        """A name for it in generated code: "self_layers_0_weight" of `self.layers[0].weight`."""
        name = self.of(source)
        return identifier(source.expr() if "the " in name else name)

    def quoted(self, source: Source) -> str:
        """The path in backticks, if it is an expression."""
        return quoted(self.of(source))

    def found_at(self, source: Source) -> object:
        """What is found at the source; None where nothing is, or the names are those of no call."""
        try:
            return None if self._call is None else self._call.get(source)
        except LoadError:
            return None

    def contents(self, source: Source) -> tuple[str, str] | None:
        """Whose the container is and what it holds, if the program sees only those: `self.layers[0]`, forward hook."""
        name = self.of(source)
        return next((found for ask in CONTENTS if (found := ask(name)) is not None), None)

    def _name(self, source: Source) -> str | None:
        known = self._parameters.get(source) or (source.name if isinstance(source, LocalSource) else "")
        if known.startswith("."):
            return self._part_of_frame(source, known)
        known = known or (self._variable(source) if self._stacked else "")
        if known:
            return known
        tell = _TOLD.get(type(source))
        return self._asked(source) if tell is None else tell(self, source)

    def _attribute(self, source: GetAttrSource) -> str:
        base = self.of(source.base)
        return self._bound_to(source, base) or _stepped(base, f"{base}.{source.name}")

    def _bound_to(self, source: GetAttrSource, method: str) -> str:
        """What has the method under its name, for the object that it is bound to: `random` in `random.random`."""
        owner, _, name = method.rpartition(".")
        if source.name != "__self__" or not owner:
            return ""
        found = self.found_at(source.base)
        return owner if isinstance(found, MethodType | BuiltinFunctionType) and found.__name__ == name else ""

    def _item(self, source: ItemSource) -> str | None:
        """An item among those that a function of ours has read."""
        read = source.base
        if not isinstance(read, CallSource):
            return self._asked(source) or self._nth(source)
        if read.text == "parts_of":
            return self.of(read.base)  # `enumerate(layers)`: what it takes its items from
        return f"{self.of(read.base)}[{source.index}]" if read.text == "deque_items" else self._nth(source)

    def _nth(self, source: ItemSource) -> str | None:
        """An item of what the program has no expression for: "the 2nd item of the list that the line makes"."""
        base = self.of(source.base)
        if type(source) is not ItemSource or is_expression(base) or base.startswith("the `"):
            return None
        noun = "" if base.startswith("the items ") else "item "
        return f"the {_ordinal(source.index + 1)} {noun}of {base}"

    def _entry(self, source: DictItemSource) -> str | None:
        """What a call gives by name."""
        is_given = self.called is not None and source.base is self.called.kwargs
        return str(source.key) if is_given else self._asked(source)

    def _asked(self, source: Source) -> str | None:
        """What whoever knows this kind of sources says."""
        ask = STEPS.get(type(source))
        return None if ask is None else ask(source, self)

    def _part_of_frame(self, source: Source, name: str) -> str | None:
        """What only a frame that is gone on with has."""
        if not name.startswith(".stack"):
            return _OF_FRAMES.get(name.rstrip("0123456789"))
        kind = type(self.found_at(source))
        if type_lookup(kind, "__next__") is not ABSENT:
            return "the loop"
        made = f"the {kind.__name__} that the line makes" if kind in (list, dict, set) else ""
        return self._variable(source) or made or "the value of a part of the line"

    def _variable(self, source: Source) -> str:
        """The variable that has the object, where the path to it leads through the value of a part of a line."""
        if not any(step in self._stacked for step in source.chain()):
            return ""
        found = self.found_at(source)
        if type(found) in _NUMBERS_AND_TEXTS:
            return ""  # there are several of them that are one object
        variables = ((other, name) for other, name in self._parameters.items() if not name.startswith("."))
        return next((name for other, name in variables if self.found_at(other) is found), "")

    def _told(self, source: CallSource) -> str | None:
        """What a function of ours has read; the text of some is an expression of the program's."""
        step = self._asked(source)
        if step is not None:
            return step
        if source.text in _EXPRESSIONS or not source.text.isidentifier():
            return self._filled(source) if source.others else None
        variable = self._next(source) if source.text == "next_item" else ""
        if variable:
            return f"the next `{variable}`"
        words = _READ.get(source.text, source.text.strip("_").replace("_", " "))
        return f"the {words} of {self.quoted(source.base)}"

    def _filled(self, source: CallSource) -> str:
        """The expression that is computed of several."""
        whole = source.expr(lambda step: None if step is source else self.of(step))
        return _stepped(self.of(source.base), whole)

    def _next(self, source: CallSource) -> str:
        """The variable that gets the next item of the loop in which the frame goes on."""
        over = source.base
        parts = over.base if isinstance(over, ItemSource) and isinstance(over.base, CallSource) else None
        loop = over if parts is None else parts.base
        code = next((called.code for called in self.calls if loop in called.args), None)
        if loop not in self._stacked or code is None:
            return ""
        variables = [name for ask in LOOP_VARIABLES for name in ask(code)]
        if not isinstance(over, ItemSource):
            return variables[0] if len(variables) == 1 else ""
        kind = type(self.found_at(loop))
        part = over.index + (kind is enumerate)
        return variables[part] if kind in (enumerate, zip) and part < len(variables) > 1 else ""

    def _of_cell(self, source: CellContentsSource) -> str | None:
        """A variable that a function has from around it."""
        cell = source.base
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


def _ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


#: paths as they are
PLAIN = Names()


def names_of(code: CodeType, call: CallInputs) -> Names:
    """What the sources of a call of this code are called."""
    calls = [Called(code, tuple(LocalSource(i, code.co_varnames[i]) for i in range(len(call.args))))]
    own = _own_names(code)
    parameters = dict[Source, str](zip(calls[0].args, own or code.co_varnames, strict=False))
    while (inner := next((inner for ask in FORWARDERS if (inner := ask(calls[-1], call))), None)) is not None:
        calls.append(inner)
        parameters.update(zip(inner.args, _positional(inner), strict=False))
    return Names(call, calls, parameters, resumed=own is not None)


def _positional(called: Called) -> list[str]:
    """What a function calls its positional arguments."""
    code = called.code
    names = list(_own_names(code) or code.co_varnames[: code.co_argcount])
    if code.co_flags & _STAR_ARGS:
        rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        names += [f"{rest}[{i}]" for i in range(len(called.args) - len(names))]
    return names


def _own_names(code: CodeType) -> Sequence[str] | None:
    return next((names for ask in PARAMETERS if (names := ask(code)) is not None), None)


_STAR_ARGS = 0x04

#: by kinds of sources: what one of them is called; all others are asked about in `STEPS`
_TOLD: dict[type[Source], Callable[[Names, Any], str | None]] = {
    GetAttrSource: Names._attribute,
    TypeAttrSource: Names._attribute,  # the class's name, and the attribute's
    CallSource: Names._told,
    ItemSource: Names._item,
    DictItemSource: Names._entry,
    CellContentsSource: Names._of_cell,
}

#: what only frames that are gone on with have
_OF_FRAMES = {
    ".": "the loop",  # `.0` of a comprehension
    ".result": "the result of the call",
    ".exception": "the exception",
    ".callable": "the call",
    ".arguments": "the arguments of the call",
    ".first": "the first argument",
}

_NUMBERS_AND_TEXTS = (int, float, complex, bool, str, bytes, type(None))
#: functions that a program may call as well
_EXPRESSIONS = frozenset(dir(builtins))
#: what others read, where that is not their name
_READ = {
    "sequence": "items",
    "deque_items": "items",
    "rest_of": "rest",
    "iterated": "items",
    "viewed": "dict",
    "inner_of": "context",
    "outer_of": "context",
    "item": "number",
}
