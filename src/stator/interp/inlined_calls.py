"""The calls that a trace has inlined: how deep they nest, and how deep they may."""

from __future__ import annotations

import sys
from types import CodeType
from typing import TYPE_CHECKING

from stator import errors
from stator._core import calls_left
from stator.space.signals import NearRecursionLimit
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from stator.space.interfaces import Frame


class InlinedCalls:
    """The depth of the calls being inlined, against the program's limit of recursion and the tracer's own.

    Args:
        depth_limit: calls that may be nested in a trace (`inline_depth_limit`).
    """

    def __init__(self, depth_limit: int) -> None:
        self.depth = 0
        self.deepest = 0
        self.depth_limit = depth_limit
        self.recursion_limit = sys.getrecursionlimit()
        #: the code that has been traced, that of the root included, by its id
        self.codes: dict[int, CodeType] = {}
        self._calls_left = calls_left()

    def enter(self, frame: Frame) -> None:
        """A call begins."""
        self.depth += 1
        if self.depth > self.deepest:
            self.deepest = self.depth
        self.codes[id(frame.code)] = frame.code
        if self.depth >= self._calls_left:
            raise NearRecursionLimit
        if self.depth > self.depth_limit:
            self.depth -= 1
            raise Unsupported(errors.InlineTooDeep(frame.code.co_qualname, self.depth))

    def leave(self) -> None:
        """A call has ended."""
        self.depth -= 1
