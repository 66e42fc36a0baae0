"""The frame hook beside another evaluation function: below it, above it, and between two installations of it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stator import _core

SOURCE = Path(__file__).with_name("evaluator.c")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("c++")
    assert compiler, "the core needs a compiler, and so do its tests"
    made = tmp_path_factory.mktemp("evaluator") / "evaluator.so"
    headers = Path(sysconfig.get_path("include"))
    # Debian's pyconfig.h has its other half in the folder above.
    command = [compiler, "-x", "c", "-shared", "-fPIC", f"-I{headers}", "-idirafter", str(headers.parent), str(SOURCE)]
    subprocess.run([*command, "-o", str(made)], check=True, timeout=120)
    return ctypes.PyDLL(str(made))


@pytest.fixture
def other(library: Any) -> Iterator[Any]:
    assert library.is_alone()
    yield library
    library.take_away()
    nothing()
    assert library.is_alone()


def nothing() -> None:
    """A frame, at which a hook that has no thread left takes itself away."""


@pytest.fixture
def asked(on_miss: Callable[[Any], None]) -> list[str]:
    """The names of the frames that the hook has met."""
    names: list[str] = []

    def handler(region: Any, function: Any, code: Any, args: Any) -> None:
        names.append(code.co_name)

    on_miss(handler)
    return names


def leaf(x: Any) -> Any:
    if x is None:
        raise KeyError("leaf")
    return [x]


def compiled(function: Any) -> Any:
    return _core.Compiled(function, _core.Region())


def test_over_another_one(other: Any, asked: list[str]) -> None:
    other.put_over(1)
    before = other.frames_seen()

    def program(x: Any) -> Any:
        return leaf(x)

    assert compiled(program)(3) == [3]
    assert asked == ["program", "leaf"] and other.frames_seen() > before
    assert other.is_on_top()


@pytest.mark.parametrize("passing", [1, 0])
def test_another_one_is_put_over_it_and_taken_away(other: Any, asked: list[str], passing: int) -> None:
    def program(x: Any) -> Any:
        other.put_over(passing)
        first = leaf(x)
        other.take_away()
        return first + leaf(x)

    assert compiled(program)(3) == [3, 3]
    assert asked == (["program", "leaf", "leaf"] if passing else ["program", "leaf"])
    assert not _core.hook_installed()


def test_another_one_stays_over_it(other: Any, asked: list[str]) -> None:
    function = compiled(leaf)

    def program(x: Any) -> Any:
        other.put_over(1)
        return leaf(x) + function(x)

    outer = compiled(program)
    for _ in range(3):
        assert outer(3) == [3, 3]
        assert leaf(3) == [3]
    assert asked == ["program", "leaf", "leaf"] * 3 and other.is_on_top()


def test_another_one_is_put_over_it_anew(other: Any, asked: list[str]) -> None:
    """As torch._dynamo's is, when another thread begins with what it has compiled: each then has the other below."""
    other.put_over(1)

    def program(x: Any) -> Any:
        first = leaf(x)
        other.put_over(1)
        return first + leaf(x)

    assert compiled(program)(3) == [3, 3]
    assert asked == ["program", "leaf", "leaf"]


def test_a_circle_ends(other: Any, asked: list[str]) -> None:
    """Two installations of each, one over the other, in two threads."""
    other.put_over(1)
    inside, done = threading.Event(), threading.Event()

    def waits(x: Any) -> Any:
        inside.set()
        done.wait(20)
        return leaf(x)

    results: list[Any] = []
    function = compiled(waits)
    thread = threading.Thread(target=lambda: results.append(function(1)))
    thread.start()
    assert inside.wait(20)
    other.put_over(1)
    assert compiled(leaf)(2) == [2]
    other.take_away()
    assert compiled(leaf)(3) == [3]
    other.put_over(1)
    done.set()
    thread.join(20)
    assert not thread.is_alive() and results == [[1]]


def test_exceptions_pass_through_both(other: Any, asked: list[str]) -> None:
    def program(x: Any) -> Any:
        other.put_over(1)
        try:
            leaf(None)
        except KeyError as e:
            return e.args, leaf(x)
        finally:
            leaf(x)

    assert compiled(program)(3) == (("leaf",), [3])
    with pytest.raises(KeyError, match="leaf"):
        compiled(leaf)(None)


def test_generators_pass_through_both(other: Any, asked: list[str]) -> None:
    def numbers(n: int) -> Iterator[Any]:
        for i in range(n):
            yield leaf(i)

    def program(n: int) -> Any:
        other.put_over(1)
        return sum(numbers(n), [])

    assert compiled(program)(3) == [0, 1, 2]


def test_the_program_itself_runs_while_another_tracer_is_active(other: Any, asked: list[str]) -> None:
    active: list[Any] = [None]
    before = _core.set_other_tracer(lambda: active[-1])
    try:
        function = compiled(leaf)
        active.append("tracing")
        assert function(1) == [1] and asked == ["leaf"]  # no other evaluation function: it is not asked
        other.put_over(1)
        assert function(1) == [1] and asked == ["leaf"]
        active.append(None)
        assert function(1) == [1] and asked == ["leaf", "leaf"]
    finally:
        _core.set_other_tracer(before)


FORK = """
import os, threading, warnings
from stator import _core

warnings.simplefilter("ignore")
inside, done = threading.Event(), threading.Event()

def waits():
    inside.set()
    done.wait(20)

def forks():
    child = os.fork()
    if child == 0:
        return None
    return os.waitpid(child, 0)[1]

thread = threading.Thread(target=_core.Compiled(waits, _core.Region()))
thread.start()
inside.wait(20)
status = _core.Compiled(forks, _core.Region())()
if status is None:
    os._exit(7 if _core.hook_installed() else 0)
done.set()
thread.join()
print(os.waitstatus_to_exitcode(status), _core.hook_installed())
"""


def test_the_child_of_a_fork_knows_of_no_other_threads() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["0", "False"], done.stderr
