"""The exceptions that a frame is handling, and what they leave on its value stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.space.value import Value

if TYPE_CHECKING:
    from stator.space.interfaces import Frame


class ExcInfo(Value):
    """What PUSH_EXC_INFO leaves on the stack: the exception that is being handled from there on."""

    __slots__ = ("current",)

    def __init__(self, current: Value) -> None:
        self.cls = type(None)
        self.source = None
        self.current = current


class Lasti(Value):
    """The instruction offset that an exception-table entry asks to be pushed."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.cls = int
        self.source = None
        self.index = index


class Handling:
    """The exceptions being handled in a frame, in nested `except` and `finally` clauses.

    It does not lead to the frame, which must end as soon as the program lets go of it.
    """

    __slots__ = ("current", "infos", "reraised")

    def __init__(self, parent: Frame | None) -> None:
        #: the stack entries of the clauses, outermost first
        self.infos: list[ExcInfo] = []
        #: the exception being handled, in this frame or else in a caller that is traced
        self.current = _in(parent)
        #: the instruction at which the exception that has just been sent on was first raised
        self.reraised: int | None = None

    def resume(self, parent: Frame | None) -> None:
        """The frame of a generator goes on: outside of its own clauses it is handling what its caller is."""
        if not self.infos:
            self.current = _in(parent)

    def begin(self, exc: Value) -> ExcInfo:
        """A clause has caught the exception."""
        info = ExcInfo(exc)
        self.infos.append(info)
        self.current = exc
        return info

    def end(self, info: Value, parent: Frame | None) -> None:
        """The clause has been left."""
        assert isinstance(info, ExcInfo)
        self.infos.remove(info)
        # Around a handler of a generator, what those are handling who resume it now.
        self.current = self.infos[-1].current if self.infos else _in(parent)

    def narrow(self, exc: Value) -> None:
        """`except*`: the clause handles that part of the exception."""
        self.current = self.infos[-1].current = exc


def _in(parent: Frame | None) -> Value | None:
    return None if parent is None else parent.handling.current
