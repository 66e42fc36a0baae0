"""What of the builtin types is traced: `stator slots`, and the page `docs/guide/slots.md` made of the same text.

The types, their slots, methods and attributes are those of the running interpreter; what becomes of each is read from
the tables that the tracer itself goes by (`stator.space.protocol`).
"""

from __future__ import annotations

import builtins
import importlib
import platform
import types
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from stator.guards.raw import is_heap_type, members
from stator.space.attributes import is_generic
from stator.space.protocol import EXTERNAL_ONLY, HANDLERS, IMMUTABLE, SLOTS, is_pure, model_for
from stator.space.rare import load_all
from stator.space.value import Value

__all__ = ["MODELLED", "STATUSES", "builtin_types", "entries", "find", "groups", "page", "status", "tables"]

MODELLED, KNOWN, BREAKS = STATUSES = ("modelled", "when known", "breaks")

_MODULES: tuple[str, ...] = (
    "builtins",
    "collections",
    "functools",
    "itertools",
    "operator",
    "types",
    "weakref",
    "contextvars",
)
_MODULES += ("re", "random", "decimal", "datetime", "struct", "array")
#: where their C types say they come from
_HOMES = frozenset(_MODULES) | {f"_{name}" for name in _MODULES} | {"_sre"}
_SLOT_OF = {method: slot for slot, methods in SLOTS.items() for method in methods}
_FIELDS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_CALLABLES: tuple[type, ...] = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
)
_CALLABLES += (staticmethod, classmethod, types.BuiltinFunctionType)
#: the trees behind contextvars; what C code wraps its functions in; what stands for sys.stderr until there is one
_INTERNAL = frozenset({"hamt", "hamt_array_node", "hamt_bitmap_node", "hamt_collision_node", "keys", "values", "items"})
_INTERNAL |= {"instancemethod", "InterpreterID", "stderrprinter"}
_DISALLOW_INSTANTIATION = 1 << 7
_ROWS = {"tp": "slots", "am": "slots", "bf": "slots", "nb": "numbers", "sq": "items", "mp": "items"}


# -- what there is ----------------------------------------------------------------------------------------------------


def builtin_types() -> list[type]:
    """The builtin types and the C types of the modules, iterators and views among them, ordered by name."""
    for name in ("stator.models", *_MODULES):
        importlib.import_module(name)
    load_all()
    found = {cls for cls in _subclasses(object) if cls.__module__ in _HOMES and _made_in_c(cls) and not _internal(cls)}
    return sorted(found, key=lambda cls: (cls.__module__ != "builtins", cls.__module__, cls.__name__.lower()))


def _subclasses(root: type) -> Iterator[type]:
    """All types: what no module names is reached as a subclass of what one does."""
    seen: set[type] = {root}
    todo = [root]
    while todo:
        cls = todo.pop()
        yield cls
        subs: list[type] = type.__subclasses__(cls)
        for sub in subs:
            if sub not in seen:
                seen.add(sub)
                todo.append(sub)


def _internal(cls: type) -> bool:
    """Whether programs meet no object of the type: only CPython itself, C code or CPython's own tests make one."""
    return cls.__module__ == "builtins" and cls.__name__ in _INTERNAL and not hasattr(builtins, cls.__name__)


def _made_in_c(cls: type) -> bool:
    """Whether C code defines the type: one of a class statement has no slot wrapper or C method of its own."""
    own = members(cls, *_CALLABLES).values()
    return not is_heap_type(cls) or any(getattr(v, "__objclass__", getattr(v, "__self__", None)) is cls for v in own)


def entries(cls: type) -> dict[str, Any]:
    """The slots, methods and C-level attributes that the type defines itself; `T()` stands for calling it."""
    found: dict[str, Any] = {"T()": cls} if _can_be_called(cls) else {}
    return found | members(cls, *_CALLABLES, *_FIELDS)


def _can_be_called(cls: type) -> bool:
    return "__new__" in vars(cls) and not cls.__flags__ & _DISALLOW_INSTANTIATION


# -- what becomes of it -----------------------------------------------------------------------------------------------


def status(cls: type, name: str, entry: Any) -> str:
    """One of `STATUSES`."""
    if entry is cls:
        return _call_status(cls)
    if type(entry) in _FIELDS:
        return _field_status(cls, name, entry)
    host = entry.__func__ if isinstance(entry, staticmethod | classmethod) else entry
    if id(host) in EXTERNAL_ONLY:
        return KNOWN
    if id(host) in HANDLERS or is_generic(host):
        return MODELLED
    return KNOWN if is_pure(host) else BREAKS


def _call_status(cls: type) -> str:
    """`T(…)`: a model of the type itself, or the type is immutable, or as its `__new__`."""
    if id(cls) in HANDLERS:
        return MODELLED
    new = vars(cls)["__new__"]
    return KNOWN if cls in IMMUTABLE and id(new) not in HANDLERS else status(cls, "__new__", new)


def _field_status(cls: type, name: str, entry: Any) -> str:
    """A C-level attribute: answered by a model, or read from the object where that exists already."""
    model = model_for(cls)
    if id(entry) in HANDLERS or model.answers(cls, name):
        return MODELLED
    if name == "__dict__" and model.attr_dict is not Value.attr_dict:
        return MODELLED
    return KNOWN


# -- the tables -------------------------------------------------------------------------------------------------------


def groups(cls: type) -> dict[str, dict[str, str]]:
    """Name of a slot, "methods", "attributes" or "T()" → the names in it → their status."""
    found: dict[str, dict[str, str]] = {}
    for name, entry in entries(cls).items():
        kind = "attributes" if type(entry) in _FIELDS else "T()" if entry is cls else _slot_of(cls, name)
        found.setdefault(kind, {})[name] = status(cls, name, entry)
    order = ["T()", *SLOTS, "methods", "attributes"]
    return {kind: found[kind] for kind in order if kind in found}


def _slot_of(cls: type, name: str) -> str:
    if name == "__add__" and "__radd__" not in vars(cls):
        return "sq_concat"
    if name in ("__mul__", "__rmul__", "__imul__") and "__sub__" not in vars(cls):
        return "sq_repeat" if name != "__imul__" else "sq_inplace_repeat"
    if name == "__iadd__" and "__isub__" not in vars(cls):
        return "sq_inplace_concat"
    return _SLOT_OF.get(name, "methods")


def full_name(cls: type) -> str:
    """The name as the page gives it."""
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def find(name: str) -> list[type]:
    """The types of that name, with or without their module."""
    return [cls for cls in builtin_types() if name in (cls.__name__, f"{cls.__module__}.{cls.__name__}")]


def tables(classes: Iterable[type]) -> str:
    """A table for each type; exceptions that differ in nothing share one."""
    alike: dict[Any, list[type]] = {}
    for cls in classes:
        own = groups(cls)
        shared = issubclass(cls, BaseException) and cls is not BaseException
        alike.setdefault(repr(own) if shared else cls, []).append(cls)
    return "\n".join(_table(members) for members in alike.values())


def _table(members: list[type]) -> str:
    rows: dict[str, dict[str, list[str]]] = {}
    for kind, names in groups(members[0]).items():
        row = rows.setdefault(_ROWS.get(kind[:2], kind), {state: [] for state in STATUSES})
        for state in STATUSES:
            having = [name for name, found in names.items() if found == state]
            if having:
                row[state].append(_cell(kind, having, len(having) == len(names)))
    heading = ", ".join(f"`{full_name(cls)}`" for cls in members)
    lines = [f"### {heading}", "", "| | modelled | when known | breaks |", "|---|---|---|---|"]
    lines += [f"| {row} | {' | '.join(' '.join(cells[s]) for s in STATUSES)} |" for row, cells in rows.items()]
    return "\n".join([*lines, ""])


def _cell(kind: str, names: list[str], whole: bool) -> str:
    if kind in ("methods", "attributes"):
        return " ".join(names)
    return kind if whole else f"{kind} ({' '.join(names)})"


_HEAD = """# What of the builtin types is traced

Written by `stator slots > docs/guide/slots.md` on CPython {version}, and checked by the tests to be so. Listed is what
each type defines itself; what it inherits stands under its base. Left out are types of which no program meets an
object: those of the tables behind contextvars (`hamt`, its keys, values and items), `instancemethod` and
`InterpreterID`, which only C code and CPython's own tests make, and what stands for `sys.stderr` while the
interpreter starts.

- **modelled**: traced, whatever the operands;
- **when known**: CPython itself computes it while tracing, where the object and the operands are known (an attribute,
  and `__sizeof__` of what grows: of objects that existed before the trace);
- **breaks**: a graph break.

Iterators of C functions, generators and views that existed before the trace are opaque: what is asked of them breaks,
and so does `__init__` or `__setstate__` of most objects that existed before.

`T()` is calling the type. A slot has its C name; where the methods that make it up differ, they follow in brackets.
"""


def page() -> str:
    """The whole page: totals, then all tables."""
    classes = builtin_types()
    counts = {cls: Counter(s for names in groups(cls).values() for s in names.values()) for cls in classes}
    exceptions = [cls for cls in classes if issubclass(cls, BaseException)]
    others = [cls for cls in classes if cls not in exceptions]
    lines = ["| | modelled | when known | breaks |", "|---|---|---|---|"]
    for title, listed in (
        ("builtins", [cls for cls in others if cls.__module__ == "builtins"]),
        ("modules", [cls for cls in others if cls.__module__ != "builtins"]),
        ("exceptions", exceptions),
        ("all", classes),
    ):
        total = sum((counts[cls] for cls in listed), Counter())
        lines.append(f"| {title} ({len(listed)} types) | {' | '.join(str(total[s]) for s in STATUSES)} |")
    broken = [f"`{full_name(cls)}` {counts[cls][BREAKS]}" for cls in classes if counts[cls][BREAKS]]
    version = ".".join(platform.python_version_tuple()[:2])
    head = _HEAD.format(version=version) + "\n" + "\n".join(lines)
    return f"{head}\n\nTypes of which something breaks: {', '.join(broken)}.\n\n{tables([*others, *exceptions])}"
