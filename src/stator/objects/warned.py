"""Warnings of functions that CPython runs while tracing: they belong into the program's run, and are not shown before.

A filter that matches nothing is put before the others for the time of a call: it learns of the warning, and ends the
call before anything is shown or noted as shown.
"""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING, Any

from stator._core import call_within
from stator.guards.source import AttrSource, GlobalSource
from stator.objects.attributes import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable

    from stator.objects.space import Space

__all__ = ["Warned", "call_silent", "is_ignored", "is_redirected"]

#: whether this thread is in such a call
_listening = threading.local()


class Warned(BaseException):
    """A function was about to warn."""

    def __init__(self, category: type) -> None:
        super().__init__(category)
        self.category = category


class _Listening(type):
    def __subclasscheck__(cls, category: type) -> bool:
        # The last two come from finalisers, of objects that have nothing to do with the call.
        if getattr(_listening, "on", False) and not issubclass(category, ResourceWarning | RuntimeWarning):
            raise Warned(category)
        return False


class _Nothing(metaclass=_Listening):
    pass


_LISTENER: tuple[Any, ...] = ("ignore", None, _Nothing, None, 0)


def call_silent(depth: int, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """As `call_within`; raises Warned in place of a warning."""
    filters: Any = warnings.filters
    filters.insert(0, _LISTENER)
    _listening.on = True
    try:
        return call_within(depth, function, *args, **kwargs)
    finally:
        _listening.on = False
        filters.remove(_LISTENER)


def is_ignored(category: type) -> bool:
    """Whether the filters ignore the category, wherever the warning comes from."""
    for action, message, kind, module, line in warnings.filters:
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
