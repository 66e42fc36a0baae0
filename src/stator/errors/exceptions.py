"""The exceptions Stator itself raises. An exception of the user's program is never wrapped in one."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import ClassVar

from stator.errors.message import Message, parted, place
from stator.errors.torchs import Joinable

_NOT_MADE = "the call is not made, as no break is allowed here (fullgraph=True)"


class StatorError(Joinable):
    """The base of everything Stator raises on its own account.

    Where torch has an exception for the same thing, it is one of torch's as well: see `torchs`.
    """


class ConfigError(StatorError, ValueError):
    """An option, argument or environment variable that Stator does not know or cannot accept."""


class BackendError(StatorError):
    """A backend raised, or returned something that is not callable; `__cause__` holds what it raised."""

    code: ClassVar[str] = "SB0602"
    torchs_name = "BackendCompilerFailed"

    def __init__(self, message: str, *, backend: str = "") -> None:
        super().__init__(message)
        self.backend = backend


class UnknownBackendError(BackendError):
    """No backend has this name."""

    torchs_name = "InvalidBackend"


class RecompileLimitError(StatorError):
    """A code object would be compiled more often than allowed, and falling back to eager was not wanted."""

    code: ClassVar[str] = "SB0501"
    torchs_name = "FailOnRecompileLimitHit"


class RecompileError(StatorError):
    """A frame would be compiled again, and `error_on_recompile` forbids it."""

    code: ClassVar[str] = "SB0601"
    torchs_name = "RecompileError"


class ConstraintViolationError(StatorError, RuntimeError):
    """A size that is marked as dynamic is made a number, or is out of the range that it is marked to have."""

    torchs_name = "ConstraintViolationError"
    torchs_module = "torch.fx.experimental.symbolic_shapes"


class RankDivergenceError(StatorError):
    """The processes of a group would run different collectives (`check_ranks`); raised on each of them.

    `where` is "file.py:line" of the first difference, `values` what each rank has there, for the ranks that tell.
    """

    where: str
    values: dict[int, str]

    def __init__(self, message: str, where: str = "", values: dict[int, str] | None = None) -> None:
        super().__init__(message, where, values or {})
        self.where = where
        self.values = values or {}

    def __str__(self) -> str:
        return str(self.args[0])


class InternalError(StatorError):
    """A defect of Stator, never of the program it was tracing."""

    torchs_name = "InternalTorchDynamoError"


class GraphBreakError(StatorError):
    """A graph break where none was allowed (`fullgraph=True`).

    `code` names the kind of break, `reason` says what happened here, `where` is "file.py:line" of the
    instruction, `hint` what to do about it and `user_stack` the user's frames, outermost first.
    """

    torchs_name = "Unsupported"
    code: str
    reason: str
    where: str
    hint: str
    user_stack: tuple[traceback.FrameSummary, ...]

    def __init__(
        self,
        code: str,
        reason: str,
        *,
        where: str = "",
        hint: str = "",
        user_stack: Sequence[traceback.FrameSummary] = (),
    ) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason
        self.user_stack = tuple(user_stack)
        self.where = where or (place(self.user_stack[-1]) if self.user_stack else "")
        self.hint = hint

    def __str__(self) -> str:
        file, line = parted(self.where)
        stack = self.user_stack or ((traceback.FrameSummary(file, line, ""),) if line else ())
        return str(Message(self.code, self.reason, stack, meanwhile=_NOT_MADE, hint=self.hint))

    def __reduce__(self) -> tuple[object, ...]:
        # The default would lose the keyword arguments; errors cross process boundaries in test runners.
        stack = tuple(map(_without_code, self.user_stack))
        return _rebuild, (self.plain, self.code, self.reason, self.where, self.hint, stack)


def _without_code(frame: traceback.FrameSummary) -> traceback.FrameSummary:
    """As it was before 3.14: without the code object, which cannot be pickled."""
    return traceback.FrameSummary(
        frame.filename,
        frame.lineno,
        frame.name,
        line=frame.line,
        end_lineno=frame.end_lineno,
        colno=frame.colno,
        end_colno=frame.end_colno,
    )


def _rebuild(
    cls: type[GraphBreakError],
    code: str,
    reason: str,
    where: str,
    hint: str,
    user_stack: tuple[traceback.FrameSummary, ...],
) -> GraphBreakError:
    return cls(code, reason, where=where, hint=hint, user_stack=user_stack)
