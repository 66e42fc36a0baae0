"""What all guards share: what a guard is, how it is kept, printed and made again."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar, NamedTuple

from stator._core import OPERATIONS

from .naming import PLAIN, Names
from .raw import is_heap_type, own_qualname, present_dict
from .source import CallInputs, LoadError, Source

__all__ = [
    *("KINDS", "Change", "Guard", "Where", "name_and_place", "short_name", "shortened", "show", "show_all"),
    "with_article",
]

#: where in the user's program the assumption was made: "file.py:12", or (code, line) turned into text when asked
Where = str | tuple[CodeType, int] | None


class Change(NamedTuple):
    """How a call differs from what was assumed: one sentence in the program's words, and what to do about it.

    `was` and `now` are the two values, where the sentence is about one thing that has another value.
    """

    text: str
    advice: str = ""
    was: str = ""
    now: str = ""


#: the kinds of guards, by their operations
KINDS: dict[str, type[Guard]] = {}


class Guard:
    """One assumption.  Use the subclasses."""

    __slots__ = ("_key", "sources", "where")
    #: the operation of the guard program that checks it: a row of `_core/ops.h`
    op: ClassVar[str]
    #: what helps where guards of this kind fail in call after call, if that is known
    helps: ClassVar[str] = ""
    #: whether it may say how many rounds a loop has
    counts: bool = False
    sources: tuple[Source, ...]
    where: Where
    _key: tuple[object, ...]

    def __init_subclass__(cls) -> None:
        """Registers a kind: a class that names the operation it is checked by."""
        super().__init_subclass__()
        if "op" in vars(cls):
            if not OPERATIONS.get(cls.op, (False,))[0] or cls.op in KINDS:
                raise TypeError(f"{cls.__name__}: the core has no check {cls.op}, or another guard has it")
            KINDS[cls.op] = cls

    def _set(self, sources: tuple[Source, ...], key: tuple[object, ...], where: Where) -> None:
        self.sources = sources
        self.where = where
        self._key = (type(self), sources, key)

    @property
    def key(self) -> tuple[object, ...]:
        """What the guard asserts, hashable: equal keys mean the same assumption."""
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guard) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def check(self, call: CallInputs) -> bool:
        """Does the assumption hold for this call?  A source that cannot be loaded, or an exception, means no."""
        try:
            return self.test(*[call.get(source) for source in self.sources])
        except LoadError:
            return False

    def test(self, *objects: Any) -> bool:
        """The check itself, on the objects found at the sources."""
        raise NotImplementedError

    def explain(self, call: CallInputs, names: Names = PLAIN) -> Change:
        """What was expected and what is there instead."""
        missing = self.missing(call)
        if missing is not None:
            return Change(f"{names.quoted(missing)} was there, and is no more")
        return self.changed(names, *map(call.get, self.sources))

    def missing(self, call: CallInputs) -> Source | None:
        """The first step to what it looks at that cannot be loaded."""
        for source in self.sources:
            for step in reversed(list(source.chain())):
                try:
                    call.get(step)
                except LoadError:
                    return step
        return None

    def changed(self, names: Names, *objects: Any) -> Change:
        """The same, given the objects found at the sources."""
        raise NotImplementedError

    @property
    def remedy(self) -> str:
        """The same, of this guard."""
        return self.helps

    def place(self) -> str:
        """The user's line that made the assumption: "file.py:12"; "" where it is not known."""
        if self.where is None or isinstance(self.where, str):
            return self.where or ""
        code, line = self.where
        return f"{code.co_filename}:{line}"

    def at(self) -> str:
        """The same, as a comment."""
        place = self.place()
        return f"  # {place}" if place else ""

    def lower(self) -> tuple[int, object]:
        """The operands (index, object) of the C++ check."""
        return 0, None

    def fields(self) -> tuple[object, ...]:
        """The arguments that build this guard again."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.fields()

    def shown(self, *paths: Any) -> str:
        """The assumption as text, given the texts of the paths to the objects."""
        raise NotImplementedError

    def told(self, names: Names) -> str:
        """The same, with the paths as the program writes them."""
        return self.shown(*map(names.of, self.sources))

    def __str__(self) -> str:
        return self.shown(*[source.expr() for source in self.sources])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"


def show(obj: object) -> str:
    """A short text for an object, running no code of the user's."""
    kind = type(obj)
    if kind is str:
        return _cut(repr(obj))
    if issubclass(kind, type):
        return short_name(own_qualname(obj))  # type: ignore[arg-type]
    if kind is FunctionType:
        return short_name(obj.__qualname__)  # type: ignore[attr-defined]
    if kind is ModuleType:
        return f"the module {(present_dict(obj) or {}).get('__name__')}"
    if kind is tuple:
        shown = ", ".join(map(show, obj[:_MOST_SHOWN]))  # type: ignore[index]
        return f"({shown}{',' if len(obj) == 1 else ''})" if len(obj) <= _MOST_SHOWN else f"({shown}, ...)"  # type: ignore[arg-type]
    if issubclass(kind, enum.Enum):
        return f"{short_name(kind.__qualname__)}.{(present_dict(obj) or {}).get('_name_')}"
    if not is_heap_type(kind) and not kind.__flags__ & _HAVE_GC:
        with contextlib.suppress(ValueError):  # an int of more than `sys.get_int_max_str_digits()`
            return _cut(repr(obj))
    return with_article(short_name(own_qualname(kind)))


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def show_all(objects: Iterable[object]) -> str:
    """A short text for several: "'a', 'b'"; of those of a class how many, "30 Parameters", and of many the first."""
    counts: dict[tuple[str, str], int] = {}
    for obj in objects:
        text, name = show(obj), short_name(own_qualname(type(obj)))
        key = text, name if text == with_article(name) else ""
        counts[key] = counts.get(key, 0) + 1
    texts = [
        text if count == 1 else f"{count} {name}s" if name else f"{count} times {text}"
        for (text, name), count in counts.items()
    ]
    more = len(texts) - _MOST_SHOWN
    return ", ".join(texts if more <= 0 else [*texts[:_MOST_SHOWN], f"{more} more"])


def short_name(qualname: str) -> str:
    """A qualified name as it is where it is defined: without the functions around it."""
    return qualname.rpartition("<locals>.")[2]


def name_and_place(code: CodeType) -> str:
    """A function as messages name it."""
    return f"{short_name(code.co_qualname)} ({code.co_filename}:{code.co_firstlineno})"


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters: of a longer one its beginning and its end, where comparisons stand."""
    if len(text) <= most:
        return text
    head = max(1, most * 3 // 5)
    tail = max(0, most - head - 3)
    return f"{text[:head]} … {text[len(text) - tail :]}"


def with_article(name: str) -> str:
    """`a Linear`, `an Adam`."""
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"


_MOST_SHOWN = 8
#: `Py_TPFLAGS_HAVE_GC`: its objects may hold others, whose code `repr` would run
_HAVE_GC = 1 << 14
