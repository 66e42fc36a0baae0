"""What all guards share: what a guard is, how it is kept, printed and made again."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any, ClassVar

from stator._core import OPERATIONS

from .source import CallInputs, LoadError, Source

__all__ = ["KINDS", "Guard", "Where", "show"]

#: where in the user's program the assumption was made: "file.py:12", or (code, line) turned into text when asked
Where = str | tuple[CodeType, int] | None


#: the kinds of guards, by their operations
KINDS: dict[str, type[Guard]] = {}


class Guard:
    """One assumption.  Use the subclasses."""

    __slots__ = ("_key", "sources", "where")
    #: the operation of the guard program that checks it: a row of `_core/ops.h`
    op: ClassVar[str]
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

    def explain(self, call: CallInputs) -> str:
        """What was expected and what is there instead."""
        try:
            objects = [call.get(source) for source in self.sources]
        except LoadError as error:
            return f"{self}: {error}{self.at()}"
        return f"{self}: {self.found(*objects)}{self.at()}"

    def found(self, *objects: Any) -> str:
        """What there is instead of what was expected."""
        return "it is " + ", ".join(show(obj) for obj in objects)

    def at(self) -> str:
        """The user's line that made the assumption, as a comment."""
        if self.where is None:
            return ""
        if isinstance(self.where, str):
            return f"  # {self.where}"
        code, line = self.where
        return f"  # {code.co_filename}:{line}"

    def lower(self) -> tuple[int, object]:
        """The operands (index, object) of the C++ check."""
        return 0, None

    def fields(self) -> tuple[object, ...]:
        """The arguments that build this guard again."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.fields()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"


def show(obj: object) -> str:
    """A short text for an object, running no code of the user's."""
    kind = type(obj)
    if kind in _SHOWN_TYPES:
        text = repr(obj)
        return text if len(text) <= 80 else text[:77] + "..."
    if isinstance(obj, (type, FunctionType)):
        return f"{obj.__module__}.{obj.__qualname__}"
    return f"<{kind.__qualname__} at {id(obj):#x}>"


_SHOWN_TYPES = frozenset((int, float, complex, bool, str, bytes, type(None), type(...)))
