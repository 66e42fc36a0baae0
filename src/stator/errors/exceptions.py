"""The exceptions Stator itself raises. An exception of the user's program is never wrapped in one."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Sequence

from stator.errors.torchs import Joinable


class StatorError(Joinable):
    """The base of everything Stator raises on its own account.

    Where torch has an exception for the same thing, it is one of torch's as well: see `torchs`.
    """


class ConfigError(StatorError, ValueError):
    """An option, argument or environment variable that Stator does not know or cannot accept."""


class BackendError(StatorError):
    """A backend raised, or returned something that is not callable; `__cause__` holds what it raised."""

    torchs_name = "BackendCompilerFailed"

    def __init__(self, message: str, *, backend: str = "") -> None:
        super().__init__(message)
        self.backend = backend


class UnknownBackendError(BackendError):
    """No backend has this name."""

    torchs_name = "InvalidBackend"


class RecompileLimitError(StatorError):
    """A code object would be compiled more often than allowed, and falling back to eager was not wanted."""

    torchs_name = "FailOnRecompileLimitHit"


class RecompileError(StatorError):
    """A frame would be compiled again, and `error_on_recompile` forbids it."""

    torchs_name = "RecompileError"


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
        self.where = where or _place(self.user_stack)
        self.hint = hint

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterable[str]:
        yield f"{self.code}: {self.reason}"
        if self.where:
            yield f"  at: {self.where}"
        if self.hint:
            yield f"  hint: {self.hint}"
        yield f"  more: stator why {self.code}"
        if self.user_stack:
            yield ""
            yield "The user's stack, innermost call last:"
            yield "".join(traceback.format_list(list(self.user_stack))).rstrip("\n")

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


def _place(stack: tuple[traceback.FrameSummary, ...]) -> str:
    return f"{stack[-1].filename}:{stack[-1].lineno}" if stack else ""
