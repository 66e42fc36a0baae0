"""os: paths, and what the file system says of them."""

from __future__ import annotations

import _stat
import os
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.guards.guard import Equals
from stator.guards.source import CallSource, ConstSource
from stator.objects.protocol import builtin, pure
from stator.objects.value import Raised, Unsupported, Value
from stator.stdlib.support import known_host, literal, refuse

if TYPE_CHECKING:
    from stator.objects.space import Space


class _Status:
    """What `os.stat` says of a path now: the result, or the error."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, path: Any) -> Any:
        """Numbers to compare, the type and number of the error where there is one."""
        try:
            found = self.function(path)
        except (OSError, ValueError) as e:
            return type(e), str(e)
        return tuple(found), found.st_mtime_ns, found.st_ctime_ns, found.st_atime_ns


def _asks(function: Any) -> None:
    """`os.stat` and `os.lstat`: asked when tracing, and again by a guard."""
    status = _Status(function)

    @builtin(function)
    def model(space: Space, path: Value) -> Value:
        path = path.force()
        if not literal(path):
            raise refuse(f"os.{function.__name__}")
        if space.trace.effects.acts():
            # What has not been performed yet may be a change of the file.
            raise Unsupported(errors.UnsupportedCCall(f"os.{function.__name__} after side effects"))
        host = known_host(space, path, f"os.{function.__name__}")
        space.trace.guard(Equals(CallSource(status, ConstSource(host, repr(host)), function.__name__), status(host)))
        try:
            found = function(host)
        except Exception as e:
            raise Raised(space.exception(e)) from None
        return space.existing(found, f"os.{function.__name__}({host!r})")


pure(*(host for host in vars(_stat).values() if callable(host)))
_asks(os.stat)
_asks(os.lstat)


@builtin(os.fspath)
def fspath(space: Space, path: Value) -> Value:
    path = path.force()
    if issubclass(path.cls, (str, bytes)):
        return path
    slot = space.special(path, "__fspath__")
    if slot is None:
        words = "expected str, bytes or os.PathLike object, not"
        raise space.error(TypeError, f"{words} {path.type_name}")
    result = space.call(slot, [path], {}).force()
    if not issubclass(result.cls, (str, bytes)):
        words = f"expected {path.type_name}.__fspath__() to return str or bytes, not {result.type_name}"
        raise space.error(TypeError, words)
    return result
