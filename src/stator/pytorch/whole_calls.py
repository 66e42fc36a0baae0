"""Calls of torch's Python functions that are one operation to the program: traced, or else left to Python as a whole.

    dist.all_reduce(y)      # dozens of frames of torch's around one C function
    torch.cond(p, f, g, (x,))

Where anything inside of such a call breaks, the break is at the call itself, with the name that the program knows; the
call then runs as in eager, and nothing inside of it is traced.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from stator.interp import policy
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    from stator.errors import Break
    from stator.pytorch.types import Function, Host
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = ["left_whole", "public_name", "traced_or_whole"]


def public_name(host: Host) -> str:
    """The name by which programs call a function of torch."""
    module, name = str(host.__module__), host.__qualname__
    for package in ("torch", "torch.distributed"):
        if module.startswith(package) and getattr(sys.modules.get(package), name, None) is host:
            return f"{package}.{name}"
    return f"{module}.{name}"


class left_whole:
    """A context: whatever breaks meanwhile is a break at the call of `function` as a whole.

    Args:
        function: None for one that is written in C.
        breaks: makes that break of the one that was met.
    """

    def __init__(self, function: Function | None, breaks: Callable[[Break], Break]) -> None:
        self.code = None if function is None else function.__code__
        self.breaks = breaks

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, Unsupported):
            if self.code is not None:
                policy.LEFT.keep(self.code, True)
            raise Unsupported(self.breaks(error.brk)) from None


def traced_or_whole(host: Host, breaks: Callable[[Break], Break], within: Callable[[CodeType], bool]) -> Handler:
    """The model of a function that is traced, or left to Python as a whole.

    Args:
        within: whether a frame of this code belongs to the operation: a call from there is one like any other.
    """

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        if within(space.trace.frame.code):
            return None
        with left_whole(host, breaks):
            function: Any = space.existing(host)
            return function.inline(space, args, kwargs, False)

    return handler
