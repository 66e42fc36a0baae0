"""Warnings of functions that run while tracing: they belong into the program's run, and are not shown before.

A filter that matches nothing is put before the others for the time of a call: it learns of the warning before anything
is shown or noted as shown. What would warn breaks the graph, so that the program is warned where it runs, or finds the
exception there that its filters make of the warning; unless they ignore the category, which is guarded then.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from typing import TYPE_CHECKING

from stator import errors
from stator._core import call_within
from stator.guards.guard import Predicate
from stator.guards.interned import Interned
from stator.guards.source import AttrSource, ConstSource, GlobalSource
from stator.space.attributes import MISSING
from stator.space.host_types import Host, HostCallable
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from stator.space.space import Space

__all__ = [
    "TrappedWarning",
    "call_trapping_warnings",
    "collected",
    "filters",
    "is_redirected",
    "left_to_run_time",
    "shows",
]

#: `hear`: what this thread does with a warning: it returns whether that is all, or raises
_listening = threading.local()


class TrappedWarning(BaseException):
    """A function was about to warn."""

    def __init__(self, category: type) -> None:
        super().__init__(category)
        self.category = category


class _Listening(type):
    def __subclasscheck__(cls, category: type) -> bool:
        hear = getattr(_listening, "hear", None)
        return hear is not None and not _of_finaliser(category) and hear(category)


def _of_finaliser(category: type) -> bool:
    """Whether the warning is of an object that has died, and has nothing to do with the call."""
    if issubclass(category, ResourceWarning):
        return True
    return issubclass(category, RuntimeWarning) and sys._getframe(2).f_code.co_name == "_warn_unawaited_coroutine"


class _Nothing(metaclass=_Listening):
    pass


_LISTENER: tuple[object, ...] = ("ignore", None, _Nothing, None, 0)


def filters() -> Host:
    """Python's filters of warnings; from 3.14 on those of the context, where it has some."""
    return getattr(warnings, "_get_filters", lambda: warnings.filters)()


@contextlib.contextmanager
def _heard(hear: Callable[[type], bool]) -> Iterator[None]:
    active = filters()
    before = getattr(_listening, "hear", None)
    active.insert(0, _LISTENER)
    _listening.hear = hear
    try:
        yield
    finally:
        _listening.hear = before
        active.remove(_LISTENER)


def _end(category: type) -> bool:
    raise TrappedWarning(category)


def call_trapping_warnings(depth: int, function: HostCallable, /, *args: Host, **kwargs: Host) -> Host:
    """As `call_within`; raises TrappedWarning in place of a warning."""
    with _heard(_end):
        return call_within(depth, function, *args, **kwargs)


@contextlib.contextmanager
def collected(categories: set[type]) -> Iterator[None]:
    """Warnings are not shown, and their categories put into the set."""

    def hear(category: type) -> bool:
        categories.add(category)
        return True

    with _heard(hear):
        yield


def left_to_run_time(space: Space, categories: Collection[type], name: str) -> None:
    """What `name` names would warn: the graph breaks, unless the program ignores such warnings."""
    for category in categories:
        if is_redirected(space) or not _is_ignored(category):
            raise Unsupported(errors.FailingCall(name, "warns")) from None
        check = _Ignored(category)
        space.trace.guard(Predicate((ConstSource(warnings, "warnings"),), check, f"{category.__name__} is ignored"))


def shows(category: type) -> bool:
    """Whether a warning of the category may be shown, or be an exception, somewhere in the program."""
    return not _is_ignored(category)


class _Ignored(Interned):
    """Whether the filters ignore a category."""

    def __init__(self, category: type) -> None:
        self.category = category

    def __call__(self, module: Host) -> bool:
        return _is_ignored(self.category)


def _is_ignored(category: type) -> bool:
    """Whether the filters ignore the category, wherever the warning comes from."""
    for action, message, kind, module, line in filters():
        if issubclass(category, kind):
            if action != "ignore":
                return False
            if message is None and module is None and not line:
                return True
    return False


def is_redirected(space: Space) -> bool:
    """Whether the traced program itself has changed which warnings are shown, or how."""
    module = space.existing(warnings)
    for name in ("filters", "showwarning", "_showwarnmsg_impl"):
        host = vars(warnings).get(name, MISSING)
        if host is MISSING:
            continue
        current = space.getattr(module, name)
        if not isinstance(current.source, AttrSource | GlobalSource):
            return True
        if space.identity(current) is not host or space.trace.effects.is_mutated(current.force()):
            return True
    return False
