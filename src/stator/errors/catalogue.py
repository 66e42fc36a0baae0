"""The catalogue of graph breaks: each kind is one class, with a code that never means anything else.

A kind is a frozen dataclass: its fields are what is known where the break happens, `template` turns them into
the reason. A page `pages/<code>.md` says all about a kind: what its class is made of, in the front matter, from which
`tools/breaks` writes the module `breaks`; and at length what happened, which `stator why CODE` prints.

    SB01xx  calls and objects   SB02xx  tensors and data   SB03xx  asked for   SB04xx  frames   SB05xx  limits
    SB06xx  no breaks: what happens to what has been compiled
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
import string
from collections.abc import Sequence
from pathlib import Path
from traceback import FrameSummary
from typing import ClassVar, Self, dataclass_transform

from stator.errors.exceptions import GraphBreakError

_CODE = re.compile(r"SB\d{4}\Z")
_registry: dict[str, type[Break]] = {}

# Codes of kinds that are gone, with what became of them; they are never given again.
RETIRED: dict[str, str] = {"SB0107": "with statements call __enter__ and __exit__ like any method: SB0101"}


@dataclass_transform(frozen_default=True)
class Break:
    """One graph break. Subclasses are the kinds; `where` it happened is known to whoever records it."""

    code: ClassVar[str]
    title: ClassVar[str]
    template: ClassVar[str]
    hint: ClassVar[str]
    #: the frame being traced runs as ordinary Python from its beginning: resuming it after the break would show
    whole: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _check(cls)
        _registry[cls.code] = cls

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        # With the first break of its kind: to make dataclasses of all would take a tenth of `import stator`.
        if "__dataclass_fields__" not in vars(cls):
            dataclasses.dataclass(frozen=True)(cls)
        return object.__new__(cls)

    @property
    def reason(self) -> str:
        """What happened, in one sentence with the names of this case."""
        # Not asdict(): a field may be any object, and must not be copied.
        return self.template.format(**{name: getattr(self, name) for name in inspect.get_annotations(type(self))})

    def advising(self, hint: str) -> Self:
        """The same break, where more is known of what helps than of its kind in general; "": where it is not."""
        if not hint:
            return self
        told = copy.copy(self)
        object.__setattr__(told, "hint", hint)
        return told

    def __str__(self) -> str:
        return f"{self.code}: {self.reason}"

    def error(self, *, where: str = "", user_stack: Sequence[FrameSummary] = ()) -> GraphBreakError:
        """The exception that reports this break where none is allowed."""
        return GraphBreakError(self.code, self.reason, where=where, hint=self.hint, user_stack=user_stack)


def _check(cls: type[Break]) -> None:
    """A kind that is incomplete, or takes another's code, is refused when it is defined."""
    for name in ("code", "title", "template", "hint"):
        if not cls.__dict__.get(name):
            raise TypeError(f"{cls.__name__} must define {name!r}")
    if not _CODE.match(cls.code):
        raise TypeError(f"{cls.__name__}: {cls.code!r} is not a code (SB and four digits)")
    if cls.code in _registry or cls.code in RETIRED:
        taken = _registry[cls.code].__name__ if cls.code in _registry else "a retired kind"
        raise TypeError(f"{cls.__name__}: the code {cls.code} belongs to {taken}")
    used = {name for _, name, _, _ in string.Formatter().parse(cls.template) if name}
    unknown = used - set(inspect.get_annotations(cls))
    if unknown:
        raise TypeError(f"{cls.__name__}: the template names {sorted(unknown)}, which are no fields")


def kinds() -> tuple[type[Break], ...]:
    """All kinds of graph breaks, by code."""
    return tuple(_registry[code] for code in sorted(_registry))


def kind(code: str) -> type[Break] | None:
    """The kind with this code, in any case, or None."""
    return _registry.get(code.upper())


def page(code: str) -> str | None:
    """The Markdown page about a code without its front matter, or None where none has been written."""
    path = Path(__file__).parent / "pages" / f"{code.upper()}.md"
    return path.read_text(encoding="utf-8").partition("\n---\n\n")[2] if path.is_file() else None
