"""What users are told: one form, their own names, file and line, a next step, and no name that is not theirs."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import stator
from stator.errors.message import Message, short_path
from stator.report import messages
from stator.report.events import Broke, Listener, listening
from stator.report.stats import RecompileRecord
from tests.needs import HAS_TORCH

HERE = "tests/report/test_messages.py"


class Told(Listener):
    """Keeps the messages."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def broke(self, event: Broke) -> None:
        self.texts.append(str(messages.broke(event)))

    def recompiled(self, record: RecompileRecord) -> None:
        self.texts.append(str(messages.recompiled(record)))


def told(function: Callable[..., object], *calls: tuple[object, ...], **options: object) -> list[str]:
    """The messages of a function that is called with these arguments."""
    compiled = stator.compile(function, backend="eager", **options)  # type: ignore[call-overload]
    with listening(Told()) as listener:
        for args in calls:
            compiled(*args)
    assert isinstance(listener, Told)
    return listener.texts


def inner(number: int) -> int:
    stator.graph_break(
        "look here",
    )
    return number


def outer(number: int) -> int:
    return inner(number) + 1


def twice(thing: object) -> object:
    return thing * 2  # type: ignore[operator]


def rest(things: Iterator[object]) -> list[object]:
    return [thing for thing in things]  # noqa: C416


def counted(thing: object) -> object:
    return len(rest(each for each in "ab")), twice(thing)


def given_up(thing: object) -> int:
    import sys

    return sys.getrefcount(thing)


def line(function: Callable[..., object], offset: int) -> str:
    return f"{HERE}:{function.__code__.co_firstlineno + offset}"


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])


def test_a_break_is_told_with_the_stack_and_carets() -> None:
    [text] = told(outer, (1,))
    assert text.splitlines() == [
        "SB0301: graph_break() was called: look here",
        f"  {line(outer, 1)} in outer",
        "      return inner(number) + 1",
        "             ^^^^^^^^^^^^^",
        f"  {line(inner, 1)} in inner",
        "      stator.graph_break(",
        "      ^^^^^^^^^^^^^^^^^^^",
        "  meanwhile: this runs as ordinary Python, and a new graph begins behind it",
        "  what to do: remove the call to capture one graph",
        "  more: stator why SB0301",
    ]


def test_an_error_says_the_same() -> None:
    with pytest.raises(stator.GraphBreakError) as caught:
        stator.compile(outer, backend="eager", fullgraph=True)(1)
    lines = str(caught.value).splitlines()
    assert lines[1] == f"  {line(outer, 1)} in outer" and lines[-1] == "  more: stator why SB0301"
    assert "the call is not made" in str(caught.value)


def test_the_traceback_of_an_error_has_the_programs_frames_alone() -> None:
    def frames() -> set[str]:
        with pytest.raises(stator.GraphBreakError) as caught:
            stator.compile(outer, backend="eager", fullgraph=True)(1)
        return {Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)}

    assert frames() == {Path(__file__).name}
    with stator.config.patch(verbose=True):
        assert "compile_frame.py" in frames()


def test_a_recompile_says_what_has_changed_where_it_matters() -> None:
    [text] = told(twice, ("a",), ("b",))
    assert text.startswith("SB0601: twice is compiled again: `thing` was 'a', is 'b'\n")
    assert line(twice, 1) in text and "return thing * 2" in text


def test_a_frame_given_up_is_told_where_and_with_the_advice_of_its_reason() -> None:
    [text] = told(given_up, ("a",))
    assert text.startswith("SB0404: given_up runs as ordinary Python: sys.getrefcount")
    assert line(given_up, 3) in text and "count references" in text


def test_the_limit_tells_all_changes() -> None:
    compiled = stator.compile(twice, backend="eager", recompile_limit=2, fullgraph=True)
    compiled("a"), compiled("b")
    with pytest.raises(stator.RecompileLimitError) as caught:
        compiled("c")
    assert str(caught.value).startswith("SB0501: twice was compiled 2 times (recompile_limit)\n")
    assert "  - `thing` was 'a', is 'b'\n  - `thing` was 'b', is 'c'\n" in str(caught.value)


def test_a_break_of_what_a_function_calls_that_was_compiled_too_often() -> None:
    texts = told(counted, ("a",), ("b",), ("c",), recompile_limit=2)
    [text] = {text for text in texts if text.startswith("SB0106")}
    assert "  - counted runs as ordinary Python, so this is compiled by itself: mend SB0501" in text


def test_a_recompile_that_is_forbidden() -> None:
    compiled = stator.compile(twice, backend="eager", options={"error_on_recompile": True})
    compiled("a")
    with pytest.raises(stator.errors.RecompileError) as caught:
        compiled("b")
    assert str(caught.value).startswith("SB0601: twice would be compiled again") and line(twice, 1) in str(caught.value)


@pytest.mark.skipif(not HAS_TORCH, reason="needs a graph")
def test_a_backend_that_fails() -> None:
    import torch

    def no(gm: object, inputs: object) -> None:
        raise ValueError("no good")

    with pytest.raises(stator.BackendError) as caught:
        stator.compile(twice, backend=no)(torch.ones(2))
    assert str(caught.value).startswith("SB0602: backend 'no' failed: ValueError: no good\n")
    assert line(twice, 0) in str(caught.value) and "backend='eager'" in str(caught.value)


@pytest.mark.parametrize(
    ("function", "calls"),
    [(outer, [(1,)]), (twice, [("a" * 500,), ("b\n" * 500,)]), (given_up, [("a",)])],
    ids=["break", "recompile", "given up"],
)
def test_every_message_has_place_and_next_step_and_no_name_of_ours(
    function: Callable[..., object], calls: list[tuple[object, ...]]
) -> None:
    for text in told(function, *calls):
        assert HERE in text and "what to do: " in text and "more: stator why SB" in text
        assert len(text.splitlines()) <= 20 and all(len(each) <= 80 for each in text.splitlines())
        assert not re.search(r"stator\.(?!graph_break)|src/stator|\b(Value|Lazy|Constant|FakeTensor|SymInt)\b", text)


def test_what_is_long_is_cut() -> None:
    def deep(depth: int) -> None:
        if depth % 2:
            deep(depth - 1)
        elif depth:
            deep(depth - 1)
        stator.graph_break("x" * 5000)

    [first, *_] = told(deep, (30,))
    lines = first.splitlines()
    assert len(lines) <= 20 and max(map(len, lines)) <= 80 and "calls between" in first
    assert lines[-1] == "  more: stator why SB0301" and "in deep" in lines[4]


def test_frames_of_libraries_are_left_out_unless_asked() -> None:
    import contextlib

    def closing_in() -> None:
        with contextlib.closing(Closed()):
            pass

    class Closed:
        def close(self) -> None:
            stator.graph_break()

    [text] = told(closing_in, ())
    assert "contextlib.py" not in text and "in closing_in" in text and "in Closed.close" in text
    with stator.config.patch(verbose=True):
        [text] = told(closing_in, ())
    assert "contextlib.py" in text


def test_columns_are_characters() -> None:
    def umlauts() -> object:
        return "äöü", stator.graph_break()  # type: ignore[func-returns-value]

    [text] = told(umlauts, ())
    source, caret = text.splitlines()[2:4]
    assert source[caret.index("^") : caret.rindex("^") + 1] == "stator.graph_break()"


def test_a_count_is_told() -> None:
    assert str(Message("SB0301", "so it is", count=3)).startswith("SB0301: so it is (3 times)\n")


def test_paths_are_short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert short_path(str(tmp_path / "a.py")) == "a.py"
    assert short_path("/" + "long/" * 20 + "a.py") == "…/" + "long/" * 8 + "a.py"
    assert short_path("x" * 90) == "x" * 90
