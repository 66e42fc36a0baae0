"""Writing the residual program: what remains of a frame after its graph, as readable Python source."""

from __future__ import annotations

import builtins
import keyword
import math
import re
import types
from typing import TYPE_CHECKING, Any

from stator.codegen.resume_functions import suspended_generator
from stator.guards.naming import identifier
from stator.guards.source import ConstSource, Source
from stator.space.cached_results import CachedResults
from stator.space.globals_ import made_names
from stator.space.identity.aliasing import InternedTexts, ShownAddresses
from stator.space.value import NotKnown, Unsupported, Value, is_unique
from stator.space.wrapping import plain_name

if TYPE_CHECKING:
    from stator.models.functions.suspendable import Suspendable
    from stator.space.interfaces import Trace

#: what generated code finds, whatever the program does to the module
_BUILTINS = dict(vars(builtins))
_WORD = re.compile(r"\W+")
#: the types of what `builtins` contains by its own name; the names of other objects are the program's to compute
_NAMED = (type, types.BuiltinFunctionType)
_RESERVED = frozenset({"run", "tail_call", "raising", "graph", "error", "result", "END"})


class Writer:
    """Collects lines, the sources they need as parameters, the objects they name, and the graph outputs they use."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.lines: list[str] = []
        #: lines that come before the graph is called
        self.first: list[str] = []
        #: lines for when what existed before has been written back
        self.late: list[str] = []
        self.namespace: dict[str, Any] = {"__builtins__": _BUILTINS}
        self.params: dict[Source, str] = {}
        self.outputs: list[Value] = []
        #: by the ids of values, what the program's variables are called that hold them
        self.variables: dict[int, str] = {}
        self._used: set[str] = set(_RESERVED)
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._shells: dict[int, str] = {}
        self._making: set[int] = set()
        self._embedded: dict[int, str] = {}
        #: the object that each literal text stands for: an equal one is another object, and stays so
        self._written: dict[str, str] = {}
        self._kept: list[object] = []

    # -- names ------------------------------------------------------------------------------------------------------

    def name(self, hint: str) -> str:
        """A fresh variable name like `hint`."""
        base = _WORD.sub("_", hint).strip("_") or "v"
        if base[0].isdigit() or keyword.iskeyword(base) or hasattr(builtins, base):
            base = f"a_{base}"
        name, n = base, self._numbers.get(base, 1)
        while name in self._used:
            n += 1
            name = f"{base}_{n}"
        self._numbers[base] = n
        self._used.add(name)
        return name

    def line(self, text: str) -> None:
        """Emit one line, now."""
        self.lines.append(text)

    def assign(self, hint: str, expression: str) -> str:
        """Emit `name = expression`; returns the name."""
        name = self.name(hint)
        self.line(f"{name} = {expression}")
        return name

    # -- values -----------------------------------------------------------------------------------------------------

    def expr(self, value: Value) -> str:
        """The expression for a value; an object is made once, however often it is asked for."""
        if value.lazy and value._value is None:  # type: ignore[attr-defined]
            assert value.source is not None
            return self.source(value.source)
        value = value.force()
        key = id(value)
        found = self._names.get(key)
        if found is not None:
            return found
        if key in self._making:
            return self.early(value)
        if self.trace.space.has_cached_results:
            self.trace.extension(CachedResults).keep(value)
        self._making.add(key)
        self._kept.append(value)
        text = value.reconstruct(self)
        self._names[key] = text
        self._making.discard(key)
        return text

    def attempt(self, value: Value) -> str | None:
        """The expression for a value, or None, with nothing emitted, if generated code cannot make it."""
        lines, late, outputs, first = len(self.lines), len(self.late), len(self.outputs), len(self.first)
        kept = (dict(self._names), dict(self._shells), set(self._making), dict(self.params))
        try:
            return self.expr(value)
        except (Unsupported, NotKnown):
            del self.lines[lines:], self.late[late:], self.outputs[outputs:], self.first[first:]
            self._names, self._shells, self._making, self.params = kept
            return None

    def is_made(self, value: Value) -> bool:
        """Whether code for the object has been emitted already."""
        return id(value) in self._names

    def is_unfinished(self, value: Value) -> bool:
        """Whether the object has still to get its contents."""
        return id(value) in self._making

    def name_value(self, value: Value, name: str) -> None:
        """The object has been made and is called `name`; what is emitted next may already refer to it."""
        self._names[id(value)] = name

    def early(self, value: Value) -> str:
        """Emit the empty object now and its contents later: something in its contents refers to it."""
        key = id(value)
        if key not in self._shells:
            text = value.shell(self)
            if key not in self._shells:  # making its class may have asked for the object itself
                self._shells[key] = self._names[key] = self.assign("obj", text)
        return self._shells[key]

    def shell_of(self, value: Value) -> str | None:
        """The name of the empty object that a cycle has asked for, or None."""
        return self._shells.get(id(value))

    def source(self, source: Source) -> str:
        """The parameter that the guard program fills with what is found at `source`."""
        if type(source) is ConstSource:
            return self.const(source.obj) if is_unique(source.obj) else self._named(source.obj, None)
        found = self.params.get(source)
        if found is None:
            found = self.params[source] = self.name(self.trace.root.names.identifier(source))
        return found

    def graph_output(self, value: Value) -> str:
        """The variable holding what the graph computes for this value."""
        self.outputs.append(value)
        return self.name(self.variables.get(id(value)) or value.node.name)  # type: ignore[attr-defined]

    def const(self, host: object, hint: str | None = None) -> str:
        """A literal, a builtin's own name, or the name of a known object embedded in the program's globals."""
        if self.is_literal(host) and (type(host) is not str or self._may_write(host)):
            return repr(host)
        return self._named(host, hint)

    def new_nan(self, host: float) -> str:
        """The NaN that the traced program has computed: another object in each run, as keys of dicts tell."""
        if id(host) in self.trace.extension(ShownAddresses).hosts:
            return self.const(host)
        name = self._names.get(id(host))
        if name is None:
            name = self._names[id(host)] = self.assign("nan", f"-(-{self.const(host)})")
        return name

    def _named(self, host: object, hint: str | None) -> str:
        """The name of the very object."""
        named: Any = host
        if type(host) in _NAMED and vars(builtins).get(named.__name__) is host:
            return str(named.__name__)
        if issubclass(type(host), type):
            fresh = self.trace.classes.fresh.get(named)
            if fresh is not None:
                return self.expr(fresh)
        found = self._embedded.get(id(host))
        if found is None:
            found = self._embedded[id(host)] = self.name(identifier(hint or plain_name(host)))
            self.namespace[found] = host
        return found

    def _may_write(self, text: str) -> bool:
        interned = self.trace.extension(InternedTexts).texts
        return self._written.setdefault(text, text) is text and id(text) not in interned

    def globals(self, host: dict[str, Any]) -> str:
        """The globals of a function or frame."""
        made = made_names(host)
        if made is None:
            return self.const(host)
        value = made.items
        holder = value.dict_owner or value
        if holder.source is None and not self.is_made(holder) and id(holder) not in self._making:
            # What it holds may be functions that have it as their globals.
            self.early(holder)
            holder.reconstruct(self)
        return self.expr(value)

    @staticmethod
    def is_literal(host: object) -> bool:
        """Whether `repr(host)` is Python source for the very object."""
        if type(host) is float:
            return math.isfinite(host)
        return host is None or host is ... or host is NotImplemented or type(host) in (int, bool, str, bytes)

    def generator(self, value: Suspendable) -> str:
        """A suspended generator of the traced program, made anew at the place where it is suspended."""
        return suspended_generator(self, value)
