"""Sources: where a value of the frame comes from, as a path.

A source is immutable and interned: building the same path twice gives the same object, so sources compare and
hash by identity.  Each kind names one load operation of the guard program (``op``, ``lower``), performs the same
load in Python (``fetch``), and prints itself (``expr``).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from itertools import islice
from types import CellType, FunctionType
from typing import Any, Self

from .intern import CallInputs, LoadError, Source, interned
from .raw import ABSENT, dict_get, dict_keys, instance_dict, present_dict, type_lookup

__all__ = [
    "AttrSource",
    "CallInputs",
    "CallSource",
    "CellContentsSource",
    "CellSource",
    "ConstSource",
    "DictItemSource",
    "DictKeySource",
    "FieldSource",
    "FunctionSource",
    "GetAttrSource",
    "GlobalSource",
    "InstanceDictSource",
    "ItemSource",
    "LoadError",
    "LocalSource",
    "OffsetSource",
    "SizeSource",
    "Source",
    "StrideSource",
    "TypeAttrSource",
    "TypeSource",
    "WeakrefSource",
    "asked",
    "field_names",
]


class LocalSource(Source):
    """The raw value of argument slot ``index``, before any cell is made."""

    __slots__ = ("index", "name")
    op = "LOCAL"
    is_container_step = True
    index: int
    name: str

    def __new__(cls, index: int, name: str) -> LocalSource:
        return interned((cls, index, name), base=None, index=index, name=name)  # type: ignore[no-any-return]

    def fetch(self, base: object, call: CallInputs) -> object:
        if self.index >= len(call.args):
            raise LoadError(f"no argument slot {self.index}")
        return call.args[self.index]

    def step(self, base: str) -> str:
        return self.name

    def lower(self) -> tuple[int, object]:
        return self.index, None

    def fields(self) -> tuple[object, ...]:
        return self.index, self.name


class FunctionSource(Source):
    """The running function object."""

    __slots__ = ()
    op = "FUNCTION"

    def __new__(cls) -> FunctionSource:
        return interned((cls,), base=None)  # type: ignore[no-any-return]

    def fetch(self, base: object, call: CallInputs) -> object:
        return call.func

    def step(self, base: str) -> str:
        return "__function__"


class CellSource(Source):
    """The contents of closure cell ``index`` of the running function."""

    __slots__ = ("index", "name")
    op = "CELL"
    index: int
    name: str

    def __new__(cls, index: int, name: str) -> CellSource:
        return interned((cls, index, name), base=None, index=index, name=name)  # type: ignore[no-any-return]

    def fetch(self, base: object, call: CallInputs) -> object:
        closure = call.func.__closure__ if isinstance(call.func, FunctionType) else None
        if closure is None or self.index >= len(closure):
            raise LoadError(f"no closure cell {self.index}")
        return _cell_contents(closure[self.index])

    def step(self, base: str) -> str:
        return self.name

    def lower(self) -> tuple[int, object]:
        return self.index, None

    def fields(self) -> tuple[object, ...]:
        return self.index, self.name


class GlobalSource(Source):
    """``globals_dict[name]``: a module's global; the dict itself is embedded."""

    __slots__ = ("globals_dict", "module_name", "name")
    op = "GLOBAL"
    globals_dict: dict[str, object]
    name: str
    module_name: str

    def __new__(cls, globals_dict: dict[str, object], name: str, module_name: str = "") -> GlobalSource:
        key = (cls, id(globals_dict), name, module_name)
        self: GlobalSource = interned(key, base=None, globals_dict=globals_dict, name=name, module_name=module_name)
        return self

    def fetch(self, base: object, call: CallInputs) -> object:
        return _dict_item(self.globals_dict, self.name)

    def step(self, base: str) -> str:
        if self.module_name in ("", "__main__"):
            return self.name
        return f"{self.module_name}.{self.name}"

    def lower(self) -> tuple[int, object]:
        return 0, (self.globals_dict, self.name)

    def fields(self) -> tuple[object, ...]:
        return self.globals_dict, self.name, self.module_name


class ConstSource(Source):
    """An embedded object: a module, a class, …; ``text`` is how it is written."""

    __slots__ = ("obj", "text")
    op = "CONST"
    is_constant = True
    obj: object
    text: str

    def __new__(cls, obj: object, expr: str) -> ConstSource:
        return interned((cls, id(obj), expr), base=None, obj=obj, text=expr)  # type: ignore[no-any-return]

    def fetch(self, base: object, call: CallInputs) -> object:
        return self.obj

    def step(self, base: str) -> str:
        return self.text

    def lower(self) -> tuple[int, object]:
        return 0, self.obj

    def fields(self) -> tuple[object, ...]:
        return self.obj, self.text


class _Step(Source):
    """A step that needs nothing but its base."""

    __slots__ = ()
    base: Source

    def __new__(cls, base: Source) -> Self:
        return interned((cls, base), base=base)  # type: ignore[no-any-return]

    def fields(self) -> tuple[object, ...]:
        return (self.base,)


class _NamedStep(Source):
    """A step by a name."""

    __slots__ = ("name",)
    base: Source
    name: str

    def __new__(cls, base: Source, name: str) -> Self:
        return interned((cls, base, name), base=base, name=name)  # type: ignore[no-any-return]

    def lower(self) -> tuple[int, object]:
        return 0, self.name

    def fields(self) -> tuple[object, ...]:
        return self.base, self.name


class _IndexedStep(Source):
    """A step by a position."""

    __slots__ = ("index",)
    base: Source
    index: int

    def __new__(cls, base: Source, index: int) -> Self:
        if index < 0:
            raise ValueError("a source's index counts from the front")
        return interned((cls, base, index), base=base, index=index)  # type: ignore[no-any-return]

    def lower(self) -> tuple[int, object]:
        return self.index, None

    def fields(self) -> tuple[object, ...]:
        return self.base, self.index


class AttrSource(_NamedStep):
    """``base.__dict__[name]``: the instance's own attribute, never the type's."""

    __slots__ = ()
    op = "ATTR"

    def fetch(self, base: object, call: CallInputs) -> object:
        return _dict_item(present_dict(base), self.name)

    def step(self, base: str) -> str:
        return f"{base}.{self.name}"


class GetAttrSource(_NamedStep):
    """``getattr(base, name)``, with all that this may run."""

    __slots__ = ()
    op = "GETATTR"
    is_repeatable = False

    def fetch(self, base: object, call: CallInputs) -> object:
        try:
            return getattr(base, self.name)
        except Exception as error:
            raise LoadError(f"getattr({self.base.expr()}, {self.name!r}): {type(error).__name__}") from None

    def step(self, base: str) -> str:
        return f"getattr({base}, {self.name!r})"


class InstanceDictSource(_Step):
    """The instance dict of the base."""

    __slots__ = ()
    op = "INSTANCE_DICT"

    def fetch(self, base: object, call: CallInputs) -> object:
        found = instance_dict(base)
        if not isinstance(found, dict):  # a class shows only a view of its dict
            raise LoadError("no instance dict")
        return found

    def step(self, base: str) -> str:
        return f"{base}.__dict__"


class TypeSource(_Step):
    """The base's real type (``__class__`` may lie)."""

    __slots__ = ()
    op = "TYPE"

    def fetch(self, base: object, call: CallInputs) -> object:
        return type(base)

    def step(self, base: str) -> str:
        return f"type({base})"


class TypeAttrSource(_NamedStep):
    """The raw attribute that the MRO of the class which the base *is* gives for ``name``; descriptors do not act."""

    __slots__ = ()
    op = "TYPE_ATTR"
    steps_from = (type,)

    def fetch(self, base: Any, call: CallInputs) -> object:
        found = type_lookup(base, self.name)
        if found is ABSENT:
            raise LoadError(f"class {base.__qualname__} has no {self.name!r}")
        return found

    def step(self, base: str) -> str:
        return f"lookup({base}, {self.name!r})"


class ItemSource(_IndexedStep):
    """``base[index]`` of a list or tuple, subclasses included, whatever their ``__getitem__`` does."""

    __slots__ = ()
    op = "ITEM"
    is_container_step = True
    steps_from = (tuple, list)

    def fetch(self, base: object, call: CallInputs) -> object:
        kind: Any = tuple if isinstance(base, tuple) else list
        if self.index >= kind.__len__(base):
            raise LoadError(f"no item {self.index}")
        return kind.__getitem__(base, self.index)

    def step(self, base: str) -> str:
        return f"{base}[{self.index}]"


class FieldSource(ItemSource):
    """``base[index]`` of a named tuple, which the program calls ``base.name``."""

    __slots__ = ("name",)
    name: str

    def __new__(cls, base: Source, index: int, name: str) -> FieldSource:
        return interned((cls, base, index, name), base=base, index=index, name=name)  # type: ignore[no-any-return]

    def step(self, base: str) -> str:
        return f"{base}.{self.name}"

    def fields(self) -> tuple[object, ...]:
        return self.base, self.index, self.name


def field_names(cls: type) -> tuple[str, ...]:
    """The names that a class made by `namedtuple` has for its items: what messages call them."""
    names = next((vars(base)["_fields"] for base in cls.__mro__ if "_fields" in vars(base)), ())
    return names if type(names) is tuple and all(type(name) is str for name in names) else ()


class DictItemSource(Source):
    """``base[key]`` of a dict, subclasses included, whatever their ``__getitem__`` or ``__missing__`` do."""

    __slots__ = ("key",)
    op = "DICT_ITEM"
    is_container_step = True
    steps_from = (dict,)
    base: Source
    key: object

    def __new__(cls, base: Source, key: object) -> DictItemSource:
        kind = type(key)
        intern_key = (cls, base, kind, key if kind in _PLAIN_KEYS else id(key))
        return interned(intern_key, base=base, key=key)  # type: ignore[no-any-return]

    def fetch(self, base: Any, call: CallInputs) -> object:
        return _dict_item(base, self.key)

    def step(self, base: str) -> str:
        owner = base.removesuffix(".__dict__")
        is_attribute = owner != base and type(self.key) is str and self.key.isidentifier()
        return f"{owner}.{self.key}" if is_attribute else f"{base}[{self.key!r}]"

    def lower(self) -> tuple[int, object]:
        return 0, self.key

    def fields(self) -> tuple[object, ...]:
        return self.base, self.key


class DictKeySource(_IndexedStep):
    """The ``index``-th key of a dict, in its order."""

    __slots__ = ()
    op = "DICT_KEY"
    steps_from = (dict,)

    def fetch(self, base: Any, call: CallInputs) -> object:
        for key in islice(dict_keys(base), self.index, None):
            return key
        raise LoadError(f"no key {self.index}")

    def step(self, base: str) -> str:
        return f"list({base})[{self.index}]"


class CellContentsSource(_Step):
    """What the cell at the base holds."""

    __slots__ = ()
    op = "CELL_CONTENTS"
    steps_from = (CellType,)

    def fetch(self, base: Any, call: CallInputs) -> object:
        return _cell_contents(base)

    def step(self, base: str) -> str:
        return f"{base}.cell_contents"


class _NumberOf(_IndexedStep):
    """A number that the tensor at the base tells of itself."""

    __slots__ = ()
    is_repeatable = False

    def fetch(self, base: Any, call: CallInputs) -> int:
        try:
            return int(self.ask(base))
        except Exception as error:
            raise LoadError(f"{self.expr()}: {type(error).__name__}: {error}") from None

    def ask(self, tensor: Any) -> Any:
        """What the tensor says."""
        raise NotImplementedError


class SizeSource(_NumberOf):
    """The size of the tensor at the base in dimension ``index``."""

    __slots__ = ()
    op = "SIZE"

    def ask(self, tensor: Any) -> Any:
        return tensor.size(self.index)

    def step(self, base: str) -> str:
        return f"{base}.size({self.index})"


class StrideSource(_NumberOf):
    """The stride of the tensor at the base in dimension ``index``."""

    __slots__ = ()
    op = "STRIDE"

    def ask(self, tensor: Any) -> Any:
        return tensor.stride(self.index)

    def step(self, base: str) -> str:
        return f"{base}.stride({self.index})"


class OffsetSource(_NumberOf):
    """Where in its storage the tensor at the base begins; ``index`` says nothing."""

    __slots__ = ()
    op = "OFFSET"

    def ask(self, tensor: Any) -> Any:
        return tensor.storage_offset()

    def step(self, base: str) -> str:
        return f"{base}.storage_offset()"


class WeakrefSource(_Step):
    """What the weak reference at the base refers to."""

    __slots__ = ()
    op = "WEAKREF"
    steps_from = (weakref.ref,)

    def fetch(self, base: Any, call: CallInputs) -> object:
        found = weakref.ref.__call__(base)
        if found is None:
            raise LoadError("dead weak reference")
        return found

    def step(self, base: str) -> str:
        return f"{base}()"


class CallSource(Source):
    """``fn(base, *others)``, a Python function; for what no other step can do.

    ``{}`` in ``text`` is the base's path, ``{1}`` that of the first of the others.
    """

    __slots__ = ("fn", "others", "text")
    op = "CALL"
    is_repeatable = False
    base: Source
    fn: Callable[..., object]
    text: str

    def __new__(cls, fn: Callable[..., object], base: Source, text: str, *others: Source) -> CallSource:
        key = (cls, id(fn), base, text, others)
        return interned(key, base=base, others=others, fn=fn, text=text)  # type: ignore[no-any-return]

    def fetch(self, base: object, call: CallInputs) -> object:
        try:
            return self.fn(base, *map(call.get, self.others))
        except Exception as error:
            raise LoadError(f"{self.expr()}: {type(error).__name__}: {error}") from None

    def expr(self, called: Callable[[Source], str | None] | None = None) -> str:
        text = super().expr(called)
        for number, other in enumerate(self.others, 1):
            text = text.replace(f"{{{number}}}", other.expr(called))
        return text

    def step(self, base: str) -> str:
        return self.text.replace("{}", base) if "{}" in self.text else f"{self.text}({base})"

    def lower(self) -> tuple[int, object]:
        return 0, self.fn

    def fields(self) -> tuple[object, ...]:
        return self.fn, self.base, self.text, *self.others


def asked(function: Callable[[], object], text: str) -> Source:
    """What a function without arguments tells about the interpreter or the thread; `text` names it."""
    return CallSource(_call, ConstSource(function, text), "{}()")


def _call(function: Callable[[], object]) -> object:
    return function()


_PLAIN_KEYS = frozenset((str, int, bool, bytes, type(None)))


def _dict_item(mapping: Mapping[Any, object] | None, key: object) -> object:
    if mapping is None:
        raise LoadError("no instance dict")
    try:
        found = dict_get(mapping, key)
    except Exception:  # the keys' own __hash__ or __eq__
        found = ABSENT
    if found is ABSENT:
        raise LoadError(f"no key {key!r}")
    return found


def _cell_contents(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        raise LoadError("empty cell") from None
