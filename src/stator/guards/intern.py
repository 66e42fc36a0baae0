"""What all sources share: interning, and the call that they load from."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

from stator._core import OPERATIONS

__all__ = ["KINDS", "CallInputs", "LoadError", "Output", "Source", "interned", "sources_of"]


class LoadError(Exception):
    """The path does not exist (any more): a missing key, another container type, a dead weak reference."""


class CallInputs:
    """What a guard check looks at: the running function and the raw values of its argument slots."""

    __slots__ = ("args", "func", "registers")

    def __init__(self, func: object, args: tuple[object, ...]) -> None:
        self.func = func
        self.args = args
        self.registers: dict[Source, object] = {}

    def get(self, source: Source) -> object:
        """The object at ``source``, loaded once; raises LoadError."""
        registers = self.registers
        if source not in registers:
            registers[source] = source.load(self)
        return registers[source]


# Keys hold the base strongly; that is no leak, for a live child holds it anyway and a dead child's key goes.
_interned: dict[tuple[object, ...], weakref.ref[Source]] = {}


class _Ref(weakref.ref["Source"]):
    __slots__ = ("key",)
    key: tuple[object, ...]


def _forget(ref: weakref.ref[Source]) -> None:
    key = ref.key  # type: ignore[attr-defined]
    if _interned.get(key) is ref:
        del _interned[key]


def interned(key: tuple[Any, ...], /, **fields: object) -> Any:
    """The one source of this key, whose first part is its class; made with these fields if there is none alive."""
    ref = _interned.get(key)
    found = None if ref is None else ref()
    if found is not None:
        return found
    made: Source = object.__new__(key[0])
    for name, field in fields.items():
        setattr(made, name, field)
    return _remember(key, made)


def _remember(key: tuple[object, ...], source: Source) -> Source:
    """Interns a new source; gives the one to use."""
    ref = _Ref(source, _forget)
    ref.key = key
    while True:
        known = _interned.setdefault(key, ref)
        if known is ref:
            return source
        other = known()
        if other is not None:  # another thread was first
            return other
        if _interned.get(key) is known:
            del _interned[key]


#: the kinds of sources, by their operations
KINDS: dict[str, type[Source]] = {}


class Source:
    """A path to a value of the frame.  Use the subclasses."""

    __slots__ = ("__weakref__", "_plain", "base")
    #: the operation of the guard program that loads it: a row of `_core/ops.h`
    op: ClassVar[str]
    #: whether loading it twice gives one object: not where the program's code or a helper makes it
    is_repeatable: ClassVar[bool] = True
    #: the types that the base's object may be of, subclasses included
    steps_from: ClassVar[tuple[type, ...]] = (object,)
    #: whether it is an argument, or found in a container
    is_container_step: ClassVar[bool] = False
    #: whether it leads to the same object in every call
    is_constant: ClassVar[bool] = False
    base: Source | None
    _plain: str
    #: the paths that it is loaded from besides
    others: tuple[Source, ...] = ()

    def __init_subclass__(cls) -> None:
        """Registers a kind: a class that names the operation it is loaded by."""
        if "op" in vars(cls):
            if OPERATIONS.get(cls.op, (True,))[0] or cls.op in KINDS:
                raise TypeError(f"{cls.__name__}: the core has no load {cls.op}, or another source has it")
            KINDS[cls.op] = cls

    def load(self, call: CallInputs) -> object:
        """The object at this path; raises LoadError."""
        base = self.base
        if base is None:
            return self.fetch(None, call)
        found = call.get(base)
        if not issubclass(type(found), self.steps_from):  # isinstance would ask the object's own `__class__`
            raise LoadError(f"{base.expr()} is no {' or '.join(kind.__name__ for kind in self.steps_from)}")
        return self.fetch(found, call)

    def fetch(self, base: object, call: CallInputs) -> object:
        """One step: from the base's object to this path's."""
        raise NotImplementedError

    def expr(self, called: Callable[[Source], str | None] | None = None) -> str:
        """The path as readable Python; `called` may have a name for one of its steps."""
        if called is None:
            return self._plain_path()
        name = called(self)
        if name is not None:
            return name
        return self.step("" if self.base is None else self.base.expr(called))

    def _plain_path(self) -> str:
        """The path without names, made once: those of a program have most of their steps in common."""
        try:
            return self._plain
        except AttributeError:
            self._plain = self.step("" if self.base is None else self.base.expr())
            return self._plain

    def step(self, base: str) -> str:
        """The path, given that of the base."""
        raise NotImplementedError

    def lower(self) -> tuple[int, object]:
        """The operands (index, object) of the C++ load."""
        return 0, None

    def fields(self) -> tuple[object, ...]:
        """The arguments that build this source again."""
        return ()

    def chain(self) -> Iterator[Source]:
        """This source, its base, its base's base, …"""
        step: Source | None = self
        while step is not None:
            yield step
            step = step.base

    @property
    def is_given(self) -> bool:
        """Whether it is an argument of the call, or found in containers from one on, and in no object."""
        return all(step.is_container_step for step in self.chain())

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.fields()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.expr()}>"


#: one value handed over, or several handed over as one tuple
Output = Source | tuple[Source, ...]


def sources_of(output: Output) -> tuple[Source, ...]:
    """The sources of what is handed over."""
    return output if isinstance(output, tuple) else (output,)
