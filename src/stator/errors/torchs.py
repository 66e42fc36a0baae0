"""Exceptions of Stator's that are torch's too: `except torch._dynamo.exc.Unsupported` catches a GraphBreakError.

Torch's classes are not imported for it. An exception that is made when they are there gets a class that derives from
both; one that is made before gets it when they are imported, which an `except torch._dynamo.exc.Unsupported:` may do.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Sequence
from traceback import FrameSummary
from types import ModuleType
from typing import ClassVar, Self

from stator.host.waiting import when_loaded

__all__ = ["Both", "Joinable"]

_EXCEPTIONS = "torch._dynamo.exc"
#: exceptions without torch's class, to be joined with it when there is one
_alone: weakref.WeakSet[Joinable] = weakref.WeakSet()


class Both:
    """A base of the classes that derive from Stator's and torch's: what handlers of torch's ask of an exception."""

    first_useful_frame = None
    frame_exec_strategy = None
    _torch_dynamo_tracer_output = None
    skip_frame = False

    @property
    def msg(self) -> str:
        """The text."""
        return str(self)

    @property
    def real_stack(self) -> Sequence[FrameSummary]:
        """The user's stack."""
        stack: Sequence[FrameSummary] = getattr(self, "user_stack", ())
        return stack

    @property
    def gb_type(self) -> str | None:
        """The kind of graph break."""
        code: str | None = getattr(self, "code", None)
        return code

    @property
    def inner_exception(self) -> BaseException | None:
        """What the backend raised."""
        return self.__cause__  # type: ignore[attr-defined, no-any-return]

    @property
    def backend_name(self) -> str:
        """The backend."""
        return str(getattr(self, "backend", "?"))


class Joinable(Exception):
    """An exception that is one of torch's as well, from when it is made or torch's are imported."""

    #: the name of torch's exception, and the module that has it
    torchs_name: ClassVar[str] = ""
    torchs_module: ClassVar[str] = _EXCEPTIONS
    #: the class itself, without torch's beside it
    plain: ClassVar[type[Joinable]]

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if not issubclass(cls, Both):
            cls.plain = cls

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        made = super().__new__(cls, *args)
        _join_in_time(made)
        return made

    def __init__(self, *args: object) -> None:
        Exception.__init__(self, *args)  # and no __init__ of torch's

    def __reduce__(self) -> tuple[object, ...]:
        return (self.plain, *Exception.__reduce__(self)[1:])


def _join_in_time(error: Joinable) -> None:
    """Make an exception one of torch's as well, now or when torch's are imported."""
    if not error.torchs_name:
        return
    module = sys.modules.get(error.torchs_module)
    if module is not None:
        _join(error, module)
    elif "torch" in sys.modules:
        if not _alone:
            when_loaded(_EXCEPTIONS, _join_all)
        _alone.add(error)


def _join_all(module: ModuleType) -> None:
    for error in list(_alone):
        _join(error, module)
    _alone.clear()


def _join(error: Joinable, module: ModuleType) -> None:
    torchs = getattr(module, error.torchs_name, None)
    if isinstance(torchs, type) and not isinstance(error, torchs):
        error.__class__ = _both(error.plain, torchs)  # type: ignore[arg-type]


@functools.cache
def _both(own: type[Joinable], torchs: type) -> type[Joinable]:
    namespace = {"__module__": own.__module__, "__qualname__": own.__qualname__, "__doc__": own.__doc__}
    return type(own.__name__, (Both, own, torchs), namespace)
