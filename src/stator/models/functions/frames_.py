"""What `sys` tells about the traced frames."""

from __future__ import annotations

import sys
from types import NoneType
from typing import Any

from stator import errors
from stator.guards.guard import Equals
from stator.guards.source import asked
from stator.models.exceptions.exception import exc_info
from stator.models.functions.frame_ import Frames
from stator.space.host_types import Host
from stator.space.operands import refuse
from stator.space.protocol import NONE, builtin
from stator.space.space import Space
from stator.space.value import Constant, Unsupported, Value


@builtin(sys.exc_info)
def sys_exc_info(space: Space) -> Value:
    handled = space.trace.frame.being_handled()
    return space.new_tuple([NONE, NONE, NONE] if handled is None else exc_info(space, handled))


@builtin(sys._getframe)
def sys_getframe(space: Space, depth: Value = Constant(0), /) -> Value:  # noqa: B008 (immutable)
    frame = space.trace.frame
    for _ in range(space.int_(depth)):
        if frame.parent is None:
            raise Unsupported(errors.OutsideCaller("sys._getframe"))
        frame = frame.parent
    return space.trace.extension(Frames).value(frame)


@builtin(sys.getrecursionlimit)
def sys_getrecursionlimit(space: Space) -> Value:
    limit = space.trace.calls.recursion_limit
    _guard_setting(space, sys.getrecursionlimit, limit)
    return Constant(limit)


def _setting(getter: Host) -> None:
    """A setting of the interpreter that the program reads."""

    def model(space: Space) -> Value:
        value = getter()
        if type(value) not in (int, NoneType):
            raise refuse(f"sys.{getter.__name__}")
        _guard_setting(space, getter, value)
        return space.fresh(value)

    builtin(getter)(model)


def _guard_setting(space: Space, getter: Host, value: Any) -> None:
    space.trace.guard(Equals(asked(getter, f"sys.{getter.__name__}"), value))


_settings = (sys.gettrace, sys.getprofile, sys.get_int_max_str_digits, sys.get_coroutine_origin_tracking_depth)
for _getter in _settings:
    _setting(_getter)


@builtin(sys.audit)
def sys_audit(space: Space, event: Value, /, *args: Value) -> Value:
    """Whoever listens hears of it after the graph, in its turn."""
    space.trace.defer(sys.audit, [event, *args], {})
    return NONE


@builtin(locals)
def locals_(space: Space) -> Value:
    return space.trace.extension(Frames).value(space.trace.frame).locals(space)


@builtin(sys.exception)
def sys_exception(space: Space) -> Value:
    return space.trace.frame.being_handled() or NONE


if hasattr(sys, "_getframemodulename"):

    @builtin(sys._getframemodulename)
    def sys_getframemodulename(space: Space, depth: Value = Constant(0)) -> Value:  # noqa: B008
        frame = space.trace.frame
        for _ in range(space.int_(depth)):
            frame = frame.parent
            if frame is None:
                raise refuse("sys._getframemodulename")
        return space.getattr(frame.function, "__module__")
