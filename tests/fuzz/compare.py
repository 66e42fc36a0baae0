"""Runs a program eagerly and traced, each in a world of its own, and compares all that can be seen of them."""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import signal
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import stator
from stator.errors import GraphBreakError
from tests.fuzz.describe import MODULE, Description, describe

FILE = "<program>"
#: Lines that a program may execute.
FUEL = 400
#: Seconds that tracing may take.
PATIENCE = 30
#: The code of breaks at a host exception inside the tracer: a defect of it.
HOST_ERROR = "SB0405"


class Difference(AssertionError):
    """Traced, a program did something else than eagerly."""


class Unfit(Exception):
    """No program to compare: it does not compile, does not end, or does not do the same twice."""


class Stopped(BaseException):
    """A program has used up its fuel, or the tracer its time."""


@dataclass(frozen=True)
class Mode:
    """One way of running a program; `at` is the instruction at which to break, 0 for none."""

    name: str
    fullgraph: bool = False
    at: int = 0


def modes(positions: list[int]) -> list[Mode]:
    return [
        Mode("with breaks"),
        Mode("as one graph", fullgraph=True),
        *(Mode(f"break at {n}", at=n) for n in positions),
    ]


def check(source: str, positions: list[int]) -> dict[str, str]:
    """Run the program in every mode; the code of the break, if any, that each mode met.

    Raises:
        Difference: a mode differs from eager. Unfit: there is nothing to compare.
    """
    code = compiled(source)
    expected = eagerly(code)
    met: dict[str, str] = {}
    for mode in modes(positions):
        stator.reset()
        with time_limit(mode, source):
            seen = traced(code, mode)
        breaks = stator.stats().breaks
        internal = [b for b in breaks if b.code == HOST_ERROR]
        if internal:
            raise Difference(f"{mode.name}: a defect of the tracer\n    {internal[0].reason} at {internal[0].where}")
        if isinstance(seen, GraphBreakError):
            met[mode.name] = seen.code
            if seen.code == HOST_ERROR:
                raise Difference(f"{mode.name}: a defect of the tracer\n    {seen}")
            continue
        met[mode.name] = breaks[0].code if breaks else ""
        for step, (want, have) in enumerate(zip(expected, seen)):
            if want != have and is_steady(code, expected):
                raise Difference(f"{mode.name}, call {step + 1}:\n{difference(want, have)}")
    return met


def is_steady(code: CodeType, expected: list[Description]) -> bool:
    """Whether the program always does the same: the order of a set, which goes by addresses, shows in few runs only."""
    if any(seen.by_address for seen in expected):
        return False
    return all(world(code, lambda program: program) == expected for _ in range(12)) and elsewhere(code) == expected


def elsewhere(code: CodeType) -> list[Description]:
    """The same while others take the memory that the program's objects leave: no two come to lie at one address."""
    kept: list[object] = []

    def take(frame: object, event: str, arg: object) -> Callable[..., Any]:
        kept.extend([Mode("", False, 0), [], {}, (event,), *map(bytes, range(0, 480, 16))])  # of every size
        return take

    before = sys.gettrace()
    sys.settrace(take)
    try:
        return world(code, lambda program: program)
    finally:
        sys.settrace(before)


def compiled(source: str) -> CodeType:
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
    try:
        return compile(source, FILE, "exec")
    except SyntaxError as e:
        raise Unfit(f"{e.msg}: {e.text}") from None


def eagerly(code: CodeType) -> list[Description]:
    try:
        with fuel():
            first = world(code, lambda program: program)
    except Stopped:
        raise Unfit("it does not end") from None
    except MemoryError:
        raise Unfit("it takes too much memory") from None
    if world(code, lambda program: program) != first:
        raise Unfit("it does not do the same twice")
    return first


def traced(code: CodeType, mode: Mode) -> list[Description] | GraphBreakError:
    def wrap(program: Callable[..., Any]) -> Callable[..., Any]:
        compiled = stator.compile(program, backend="eager", fullgraph=mode.fullgraph)
        if mode.at:
            compiled._stator_region.forced[None] = mode.at
        return compiled

    try:
        return world(code, wrap)
    except GraphBreakError as e:
        return e


def world(code: CodeType, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> list[Description]:
    """The program's module made anew, and what was seen after each call, and after its iterators were used up."""
    module = sys.modules[MODULE] = types.ModuleType(MODULE)
    space = vars(module)
    output = io.StringIO()
    seen: list[Description] = []
    with contextlib.redirect_stdout(output):
        try:
            exec(code, space)
            calls = list(space["calls"]())
            program = wrap(space["program"])
        except Exception as e:
            raise Unfit(f"its module raises {e!r}") from None
        for args in calls:
            outcome = call(program, args)
            seen.append(describe(outcome, args, space, output.getvalue()))
        rest = [drained(iterator) for iterator in seen[-1].iterators]
        seen.append(describe(rest, calls, space, output.getvalue()))
    return seen


def call(program: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return ("returned", program(*args))
    except GraphBreakError:
        raise
    except Exception as e:
        return ("raised", e)
    except (GeneratorExit, KeyboardInterrupt, SystemExit) as e:
        return ("raised", e)


def drained(iterator: Iterator[Any]) -> Any:
    try:
        return list(itertools.islice(iterator, 12))
    except Exception as e:
        return e


def difference(want: Description, have: Description) -> str:
    pairs = itertools.zip_longest(want.facts, have.facts, fillvalue="(nothing)")
    lines = [f"    eager:  {w}\n    traced: {h}" for w, h in pairs if w != h]
    return "\n".join(lines[:4])


@contextlib.contextmanager
def fuel() -> Iterator[None]:
    left = FUEL

    def step(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal left
        if event == "line" and frame.f_code.co_filename == FILE:
            left -= 1
            if left < 0:
                raise Stopped
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        yield
    finally:
        sys.settrace(before)


@contextlib.contextmanager
def time_limit(mode: Mode, source: str) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    except Stopped:
        raise Difference(f"{mode.name}: no end after {PATIENCE} seconds") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
