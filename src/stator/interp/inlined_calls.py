"""The calls that a trace inlines: how deep they nest, and how deep they may."""

from __future__ import annotations

import sys
from types import CodeType
from typing import TYPE_CHECKING

from stator import errors
from stator._core import calls_left
from stator.bytecode import is_suspendable
from stator.interp.frame import Frame
from stator.interp.policy import GIVEN_UP, runs_whole
from stator.models.functions import generator
from stator.space.signals import NearRecursionLimit
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.models.functions.function import FunctionValue
    from stator.space import interfaces


class InlinedCalls:
    """The calls being inlined; their depth, against the program's limit of recursion and the tracer's own."""

    def __init__(self, trace: interfaces.Trace) -> None:
        self._trace = trace
        self.depth = 0
        self.deepest = 0
        self.recursion_limit = sys.getrecursionlimit()
        #: the code that has been traced, that of the root included, by its id
        self.codes: dict[int, CodeType] = {}
        self._calls_left = calls_left()

    def inline(self, function: FunctionValue, bound: dict[str, Value], in_tail_position: bool) -> Value:
        """Run a frame inside this trace; in tail position its result goes onto the caller's stack as it is."""
        given_up = GIVEN_UP.find(function.code) if GIVEN_UP else None
        if given_up is not None:
            raise Unsupported(errors.FrameGivenUp(function.qualname, given_up))
        suspendable = is_suspendable(function.code)
        frame = Frame(
            self._trace,
            function,
            bound,
            parent=self._trace.frame,
            in_tail_position=in_tail_position and not suspendable and not runs_whole(function.code),
        )
        return generator.make(frame) if suspendable else self._run(frame)

    def inline_class_body(self, function: FunctionValue, namespace: Value) -> Value:
        """Execute a class body with `namespace` as its locals; returns the class cell, or None."""
        frame = Frame(self._trace, function, {}, parent=self._trace.frame)
        frame.namespace = namespace
        return self._run(frame)

    def _run(self, frame: Frame) -> Value:
        self.enter(frame)
        try:
            return frame.run()
        finally:
            self.leave()

    def enter(self, frame: interfaces.Frame) -> None:
        """A call begins."""
        self.depth += 1
        if self.depth > self.deepest:
            self.deepest = self.depth
        self.codes[id(frame.code)] = frame.code
        if self.depth >= self._calls_left:
            raise NearRecursionLimit
        if self.depth > self._trace.config.inline_depth_limit:
            self.depth -= 1
            raise Unsupported(errors.InlineTooDeep(frame.code.co_qualname, self.depth))

    def leave(self) -> None:
        """A call has ended."""
        self.depth -= 1
