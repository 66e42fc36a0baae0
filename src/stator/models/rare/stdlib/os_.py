"""os: paths, and what the file system says of them."""

from __future__ import annotations

import _stat
import os
import types
from typing import Any

from stator import errors
from stator.guards.guard import Equals
from stator.guards.raw import members
from stator.guards.source import CallSource, ConstSource
from stator.space.host_types import Host
from stator.space.operands import call_slot, host_errors, known_host, literal
from stator.space.protocol import TRUE, builtin, pure
from stator.space.space import Space
from stator.space.value import Unsupported, Value


class _Status:
    """What `os.stat` says of a path now: the result, or the error.

    The time of the last access is left out: to look at a path may change it, that of a link for one.
    """

    def __init__(self, function: Host) -> None:
        self.function = function

    def __call__(self, path: Host) -> Any:
        """Numbers to compare, the type and number of the error where there is one."""
        try:
            found = self.function(path)
        except (OSError, ValueError) as e:
            return type(e), str(e)
        numbers = (found.st_mode, found.st_ino, found.st_dev, found.st_nlink, found.st_uid, found.st_gid, found.st_size)
        return *numbers, found.st_mtime_ns, found.st_ctime_ns


_STATUS: dict[Any, _Status] = {function: _Status(function) for function in (os.stat, os.lstat)}


def _status(space: Space, function: Host, path: Value) -> Value:
    """The answer of `os.stat` or `os.lstat`: asked for when tracing, and again by a guard."""
    path = path.force() if literal(path.force()) else fspath(space, path).force()
    if space.trace.effects.acts():
        # What has not been performed yet may be a change of the file.
        raise Unsupported(errors.PendingSideEffects(f"os.{function.__name__}"))
    host = known_host(space, path, f"os.{function.__name__}")
    status = _STATUS[function]
    space.trace.guard(Equals(CallSource(status, ConstSource(host, repr(host)), function.__name__), status(host)))
    with host_errors(space, Exception):
        found = function(host)
    return space.existing(found, f"os.{function.__name__}({host!r})")


@builtin(os.stat)
def stat(space: Space, path: Value, *, follow_symlinks: Value = TRUE) -> Value:
    return _status(space, os.stat if space.truth(follow_symlinks) else os.lstat, path)


@builtin(os.lstat)
def lstat(space: Space, path: Value) -> Value:
    return _status(space, os.lstat, path)


pure(*members(_stat, types.BuiltinFunctionType).values())


@builtin(os.fspath)
def fspath(space: Space, path: Value) -> Value:
    path = path.force()
    if path.isa((str, bytes)):
        return path
    result = call_slot(space, path, "__fspath__", "expected str, bytes or os.PathLike object, not %T")
    if not result.isa((str, bytes)):
        words = f"expected {path.type_name(space)}.__fspath__() to return str or bytes, not {result.type_name(space)}"
        raise space.error(TypeError, words)
    return result
