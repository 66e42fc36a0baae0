"""Which frames are worth tracing, decided once per code object."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from stator._core import CodePolicy, set_code_policy
from stator.bytecode.by_code import ByCode

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = tuple(
    os.path.join(sysconfig.get_paths()[key], "") for key in ("stdlib", "platstdlib") if sysconfig.get_paths().get(key)
)
_SITE = ("site-packages" + os.sep, "dist-packages" + os.sep)
#: directories whose frames are run as they are when the hook meets them (their callees are still looked at)
_SKIPPED: list[str] = [_HERE]
#: directories inside skipped ones whose frames are traced all the same
TRACED: list[str] = []
#: codes of such frames, as they are what is to be compiled
WANTED = ByCode[bool]()
#: tell the codes whose frames run as they are together with all that they call, unless one graph holds them whole
WHOLE: list[Callable[[CodeType], bool]] = []
#: further such codes: calls of theirs have been left to Python as a whole. (What is compiled by itself is traced yet.)
LEFT = ByCode[bool]()
#: classes of first arguments with which C code calls a function whose frame, and all that it calls, runs as it is
CALLED_BACK: list[type] = []
#: directories and files of other tracers and compilers: while one of their frames runs, nothing is traced. Nor while
#: a module is imported, whose code runs once
MACHINERY: list[str] = ["<frozen importlib."]
#: asked about a frame of code that many functions share: True to leave all in it alone, False to trace what it calls
SHARED: list[Callable[[CodeType, Any], bool | None]] = []
#: names of functions in there that only call what they wrap
NO_MACHINERY: set[str] = set()
#: what says which tracer, transform or mode is at work that wants to see the program itself; None where none is
OTHERS_AT_WORK: list[Callable[[], str | None]] = []
#: the same of what has begun inside of a compiled call: such a call may begin while it is at work
BEGUN_INSIDE: list[Callable[[], str | None]] = []
#: what graphs are made of, and the directories of who makes them
COMPUTING: list[type] = []
COMPUTED_BY: list[str] = []
#: continuations that run as ordinary Python, and why; what they call may be traced
GIVEN_UP = ByCode[str]()


def give_up_on(continuation: CodeType, why: str) -> None:
    """The continuation runs as ordinary Python from now on, and what it calls may be traced."""
    set_code_policy(continuation, CodePolicy.SKIP)
    GIVEN_UP.keep(continuation, why)


def other_at_work(*, inside: bool = False) -> str | None:
    """What is at work on this thread that wants to see the program itself, not what Stator makes of it.

    Args:
        inside: of a compiled call.
    """
    asked = (*OTHERS_AT_WORK, *BEGUN_INSIDE) if inside else OTHERS_AT_WORK
    return next((who for ask in asked if (who := ask()) is not None), None)


def is_machinery(code: CodeType) -> bool:
    """Whether a frame is one of another tracer's, or of a compiler's: all that it calls is left alone."""
    return code.co_filename.startswith(tuple(MACHINERY)) and code.co_name not in NO_MACHINERY


def decided_by_function(code: CodeType, function: Any) -> bool | None:
    """What `SHARED` says of the frame; None where the code alone decides."""
    return next((answer for ask in SHARED if (answer := ask(code, function)) is not None), None)


def is_left_alone(function: Any) -> bool:
    """Whether `SHARED` leaves alone all that happens in a call of this function."""
    return decided_by_function(function.__code__, function) is True


def is_run_as_it_is(function: Any) -> bool:
    """Whether `SHARED` has what this function calls traced, but not its own frame."""
    return decided_by_function(function.__code__, function) is False


def worth_tracing(code: CodeType) -> bool:
    """Whether a frame that the hook meets after a break is traced.

    Frames of Stator, of the standard library and of libraries given to `skip` are not: they are met when an
    operation that broke the graph runs as ordinary Python, and tracing its internals would only cost time.
    """
    name = code.co_filename
    if name.startswith((_HERE, "<")):
        return not name.startswith(_HERE) and not name.startswith(("<frozen", "<stator"))
    if code in WANTED or any(name.startswith(path) for path in TRACED):
        return True
    return not is_library(code)


def want(code: CodeType) -> None:
    """The frame is what is to be compiled: it is traced though it is a library's."""
    if is_library(code) and not worth_tracing(code) and not is_machinery(code):
        WANTED.keep(code, True)
        set_code_policy(code, CodePolicy.TRACE)


def skip(*beginnings: str) -> None:
    """Files whose paths begin so are of libraries."""
    _SKIPPED.extend(beginnings)
    is_library_file.cache_clear()


def is_library(code: CodeType) -> bool:
    """Whether code is the standard library's, or in a file given to `skip`: no line that a user would look at."""
    return is_library_file(code.co_filename)


@functools.lru_cache(maxsize=4096)  # of what is executed as text each has a name of its own
def is_library_file(name: str) -> bool:
    """The same of a file."""
    if name.startswith(tuple(_SKIPPED)):
        return True
    return name.startswith(_STDLIB) and not is_installed(name) and os.sep + "test" + os.sep not in name


def is_users(name: str) -> bool:
    """Whether a file is the user's own: in no library, and in no package that was installed."""
    return not (name.startswith((_HERE, "<frozen", "<stator")) or is_installed(name) or is_library_file(name))


def users_frame() -> FrameType | None:
    """The innermost frame of the user's own that is being executed."""
    at: FrameType | None = sys._getframe(1)
    while at is not None and not is_users(at.f_code.co_filename):
        at = at.f_back
    return at


def is_installed(name: str) -> bool:
    """Whether a file is of a package that was installed."""
    return any(part in name for part in _SITE)


def is_foreign(code: CodeType) -> bool:
    """Whether code is of a library that knows nothing of graphs: the standard one, or an installed package."""
    name = code.co_filename
    if name.startswith((_HERE, *COMPUTED_BY)):
        return False
    return is_installed(name) or is_library_file(name) or name.startswith("<frozen")


def computes(cls: type) -> bool:
    """Whether graphs are made of objects of the class."""
    return issubclass(cls, tuple(COMPUTING))


def is_called_back(args: list[Any]) -> bool:
    """Whether C code calls the frame in the middle of what it does (`forward` in `Function.apply`)."""
    return bool(args) and issubclass(type(args[0]), tuple(CALLED_BACK))  # isinstance would ask `__class__`


def runs_whole(code: CodeType) -> bool:
    """Whether nothing that happens inside of a call of the code is traced."""
    return code in LEFT or any(ask(code) for ask in WHOLE)
