"""What can be seen of a program's objects, as plain facts: types, values, identities; the same for equal worlds."""

from __future__ import annotations

import collections
import functools
import re
import types
from dataclasses import dataclass
from typing import Any

ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
PLAIN = (int, float, complex, bool, bytes, type(None), range, type(...), type(NotImplemented))
UNSEEN = {"calls"}
MODULE = "program"


@dataclass(frozen=True)
class Description:
    """Facts, a line each; `iterators` are the iterators met, in order.

    `by_address`: whether a key shows an address: how many keys there are goes by which memory is used again.
    """

    facts: tuple[str, ...]
    iterators: tuple[Any, ...]
    by_address: bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Description) and self.facts == other.facts


def describe(outcome: Any, args: Any, space: dict[str, Any], output: str) -> Description:
    """The outcome of a call, its arguments, the module's variables and what was printed."""
    graph = Graph()
    seen = {name: value for name, value in space.items() if name not in UNSEEN and name[:2] != "__"}
    facts = [f"outcome = {graph.name(outcome)}", f"arguments = {graph.name(args)}"]
    facts += [f"{name} = {graph.name(value)}" for name, value in seen.items()]
    graph.finish()
    return Description((*facts, *graph.facts, f"printed {text(output)}"), tuple(graph.iterators), graph.by_address)


def text(value: str) -> str:
    return repr(ADDRESS.sub("0x", value))


def shown(value: BaseException) -> str:
    """Its message; of one that holds an object of the program's that cannot be shown, what showing it raises."""
    try:
        return str(value)
    except Exception as e:
        return f"{type(e).__name__} when it is shown"


class Graph:
    """Numbers objects in the order of their discovery, and notes what each one consists of."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.kept: list[Any] = []
        self.facts: list[str] = []
        self.iterators: list[Any] = []
        self.by_address = False
        self.done = 0

    def name(self, value: Any) -> str:
        """A plain value itself, else the type and the number of the object."""
        kind = type(value)
        if kind in PLAIN:
            return repr(value)
        if kind is str:
            return text(value)
        if kind in (tuple, frozenset) and _constant(value):
            return text(repr(value))  # whether equal constants are one object is the compiler's affair
        if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, types.ModuleType | type(None)):
            return value.__qualname__
        if isinstance(value, type) and value.__module__ != MODULE:
            return value.__qualname__
        if isinstance(value, types.ModuleType):
            return value.__name__
        number = self.numbers.get(id(value))
        if number is None:
            number = self.numbers[id(value)] = len(self.kept)
            self.kept.append(value)
        return f"{kind.__name__}#{number}"

    def finish(self) -> None:
        while self.done < len(self.kept):
            value = self.kept[self.done]
            self.facts.append(f"{self.name(value)}: {self.contents(value)}")
            self.done += 1

    def names(self, values: Any) -> str:
        return ", ".join([self.name(value) for value in values])

    def items(self, mapping: Any) -> str:
        items = list(mapping)
        self.by_address |= any(type(key) is str and ADDRESS.search(key) is not None for key, _ in items)
        return ", ".join([f"{self.name(key)}: {self.name(value)}" for key, value in items])

    # -- by type -------------------------------------------------------------------------------------------------------

    def contents(self, value: Any) -> str:
        for kind, method in CONTENTS.items():
            if isinstance(value, kind):
                parts = method(self, value)
                break
        else:
            parts = ""
        if hasattr(type(value), "__next__"):
            self.iterators.append(value)
            return parts
        if type(value).__module__ == MODULE or isinstance(value, BaseException | types.SimpleNamespace):
            parts += self.attributes(value)
        elif hasattr(type(value), "requires_grad"):
            parts = self.tensor(value)
        return parts

    def attributes(self, value: Any) -> str:
        try:
            own = object.__getattribute__(value, "__dict__").items()
        except AttributeError:
            own = ()
        slots = [name for name in type(value).__dict__.get("__slots__", ()) if _has(value, name)]
        return f" {{{self.items(own)}}}" + "".join(
            f" .{n}={self.name(object.__getattribute__(value, n))}" for n in slots
        )

    def cls(self, value: type) -> str:
        members = [
            (n, v) for n, v in vars(value).items() if not (n.startswith("__") and n.endswith("__")) and n[0] != "_"
        ]
        return f"{value.__qualname__}({self.names(value.__bases__)}) {self.items(members)}"

    def function(self, value: types.FunctionType) -> str:
        cells = [cell.cell_contents if _filled(cell) else "unbound" for cell in value.__closure__ or ()]
        code = value.__code__
        return (
            f"{value.__qualname__} at {code.co_firstlineno} defaults {self.name(value.__defaults__)}"
            f" {self.name(value.__kwdefaults__)} cells {self.names(cells)} {{{self.items(vars(value).items())}}}"
        )

    def method(self, value: Any) -> str:
        return f"{value.__name__} of {self.name(value.__self__)}" + (
            f" {self.name(value.__func__)}" if isinstance(value, types.MethodType) else ""
        )

    def partial(self, value: functools.partial[Any]) -> str:
        return f"{self.name(value.func)} {self.name(value.args)} {self.name(value.keywords)}"

    def exception(self, value: BaseException) -> str:
        chain = (
            f"cause {self.name(value.__cause__)} context {self.name(value.__context__)} {value.__suppress_context__}"
        )
        if isinstance(value, BaseExceptionGroup):
            chain += f" group {self.names(value.exceptions)}"
        if isinstance(value, StopIteration):
            chain += f" value {self.name(value.value)}"
        lines = []
        entry = value.__traceback__
        while entry is not None:
            if entry.tb_frame.f_code.co_filename == "<program>":
                lines.append(f"{entry.tb_frame.f_code.co_name}:{entry.tb_lineno}")
            entry = entry.tb_next
        return f"{self.name(value.args)} {text(shown(value))} {chain} at {' '.join(lines)}"

    def tensor(self, value: Any) -> str:
        return f"{value.dtype} {tuple(value.shape)} {value.requires_grad} {value.tolist()} grad {self.name(value.grad)}"

    def mapping(self, value: Any) -> str:
        extra = f" factory {self.name(value.default_factory)}" if isinstance(value, collections.defaultdict) else ""
        return f"{{{self.items(dict.items(value))}}}{extra}"


#: How the contents of each type are told; a subclass also has attributes.
CONTENTS: dict[Any, Any] = {
    list: lambda graph, value: f"[{graph.names(list.__iter__(value))}]",
    tuple: lambda graph, value: f"({graph.names(tuple.__iter__(value))})",
    dict: Graph.mapping,
    set: lambda graph, value: f"{{{graph.names(set.__iter__(value))}}}",
    frozenset: lambda graph, value: f"{{{graph.names(frozenset.__iter__(value))}}}",
    collections.deque: lambda graph, value: f"[{graph.names(value)}] {value.maxlen}",
    str: lambda graph, value: text(str.__str__(value)),
    type: Graph.cls,
    types.FunctionType: Graph.function,
    types.MethodType: Graph.method,
    types.BuiltinMethodType: Graph.method,
    functools.partial: Graph.partial,
    BaseException: Graph.exception,
    property: lambda graph, value: graph.names([value.fget, value.fset]),
    classmethod: lambda graph, value: graph.name(value.__func__),
    staticmethod: lambda graph, value: graph.name(value.__func__),
    types.CellType: lambda graph, value: graph.name(value.cell_contents) if _filled(value) else "unbound",
    slice: lambda graph, value: graph.names([value.start, value.stop, value.step]),
}


def _constant(value: Any) -> bool:
    if type(value) in (tuple, frozenset):
        return all(map(_constant, value))
    return type(value) in PLAIN or type(value) is str


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _has(value: Any, name: str) -> bool:
    try:
        object.__getattribute__(value, name)
    except AttributeError:
        return False
    return True
