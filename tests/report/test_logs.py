"""`STATOR_LOGS` and `set_logs`: which artifacts there are, what they tell, and that they cost nothing while off."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import stator
from stator.errors import ConfigError
from stator.report.artifacts import ARTIFACTS
from stator.report.events import EVENTS
from stator.report.logs import Logs, from_environment
from stator.report.torch_logs import TorchLogs
from tests.needs import HAS_TORCH

LESS, MORE = logging.WARNING, logging.DEBUG
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="needs a graph")


@pytest.fixture(autouse=True)
def _off_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(Path(__file__).parents[2])
    yield
    stator.set_logs()


def breaking(thing: object) -> object:
    stator.graph_break()
    return thing * 2  # type: ignore[operator]


def with_tensor() -> Callable[[], object]:
    import torch

    ones = torch.ones(2, 3)
    return lambda: stator.compile(breaking, backend="eager", isolate_recompiles=True)(ones)


def numbers() -> object:
    compiled = stator.compile(breaking, backend="eager", isolate_recompiles=True)
    return compiled("a"), compiled("b")


def shown(caplog: pytest.LogCaptureFixture, run: Callable[[], object], **on: bool | int) -> str:
    stator.set_logs(**on)
    caplog.clear()
    run()
    assert {record.name.removeprefix("stator.") for record in caplog.records} <= set(on)
    return "\n".join(record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("artifact", "less", "plain", "more"),
    [
        ("graph_breaks", "SB0301: graph_break() was called", "what to do: remove", "stator.graph_break()"),
        ("recompiles", "`thing` was 'a', is 'b'", "SB0601: breaking is compiled again", "return thing * 2"),
        ("guards", "guards", "thing == 'a'  # ", "hands over"),
        ("bytecode", "instructions", "LOAD_GLOBAL", "LOAD_ATTR"),
        ("residual", "lines", "def breaking(", "return"),
        ("trace", "compiled, no graph (", "guards (", "tracing"),
    ],
)
def test_artifacts_without_torch(
    caplog: pytest.LogCaptureFixture, artifact: str, less: str, plain: str, more: str
) -> None:
    texts = {length: shown(caplog, numbers, **{artifact: length}) for length in (LESS, True, MORE)}
    assert less in texts[LESS] and plain in texts[True] and plain in texts[MORE] and more in texts[MORE]
    assert len(texts[LESS]) < len(texts[True]) <= len(texts[MORE])


@needs_torch
@pytest.mark.parametrize(
    ("artifact", "less", "plain", "more"),
    [
        ("graph", "graph for eager: 1 operations", "call_function[target=operator.mul]", "call_function"),
        ("graph_code", "thing * 2", 'mul: "f32[2, 3]"', 'mul: "f32[2, 3][3, 1]cpu"'),
        ("graph_sizes", "thing: (2, 3)", "mul: (2, 3)", "strides (3, 1)"),
    ],
)
def test_artifacts_of_graphs(caplog: pytest.LogCaptureFixture, artifact: str, less: str, plain: str, more: str) -> None:
    run = with_tensor()
    texts = {length: shown(caplog, run, **{artifact: length}) for length in (LESS, True, MORE)}
    assert less in texts[LESS] and plain in texts[True] and more in texts[MORE]
    assert len(texts[LESS]) < len(texts[True]) <= len(texts[MORE])


def test_each_artifact_has_its_test() -> None:
    tests = (test_artifacts_without_torch, test_artifacts_of_graphs)
    marks = [mark for test in tests for mark in test.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    assert {row[0] for mark in marks for row in mark.args[1]} == set(ARTIFACTS)


@needs_torch
def test_the_names_are_those_of_torch() -> None:
    import torch._logging._internal

    theirs = torch._logging._internal.log_registry.artifact_names
    assert set(ARTIFACTS) - theirs == {"residual", "trace"}


def test_one_event_is_told_once_with_a_count_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    stator.set_logs(graph_breaks=True)
    for _ in range(30):
        stator.compile(breaking, backend="eager", isolate_recompiles=True)("a")
    firsts = [record.getMessage().splitlines()[0] for record in caplog.records]
    assert firsts == [
        "[graph_breaks] SB0301: graph_break() was called: no message",
        "[graph_breaks] SB0301: graph_break() was called: no message (10 times)",
    ]


def test_the_environment() -> None:
    from_environment({"STATOR_LOGS": "graph_breaks, +guards,-trace"})
    [logs] = [listener for listener in EVENTS.all if isinstance(listener, Logs)]
    assert {name: logs.length(name) for name in ARTIFACTS if logs.length(name) is not None} == {
        "graph_breaks": 0,
        "guards": 1,
        "trace": -1,
    }
    from_environment({"STATOR_LOGS": "all"})
    [logs] = [listener for listener in EVENTS.all if isinstance(listener, Logs)]
    assert all(logs.length(name) == 0 for name in ARTIFACTS)


def test_what_is_off_again_is_not_asked_for() -> None:
    """A long loop that is compiled for each number of rounds is told to who does not see the recompiles anyway."""
    stator.set_logs(recompiles=True, trace=True)
    stator.set_logs(trace=True)
    levels = {name: logging.getLogger(f"stator.{name}").level for name in ("recompiles", "trace")}
    assert levels == {"recompiles": logging.NOTSET, "trace": logging.INFO}


def test_set_logs_replaces_what_was_set() -> None:
    stator.set_logs(graph_breaks=True)
    stator.set_logs(all=True, guards=False)
    [logs] = [listener for listener in EVENTS.all if isinstance(listener, Logs)]
    assert logs.length("guards") is None and logs.length("graph_breaks") == 0


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [("graph_brakes", "did you mean 'graph_breaks'"), ("xyz", "known: graph_breaks, recompiles, guards")],
)
def test_an_unknown_name_is_refused_with_the_nearest(wrong: str, advice: str) -> None:
    with pytest.raises(ConfigError, match=advice):
        stator.set_logs(**{wrong: True})
    with pytest.raises(ConfigError, match=f"STATOR_LOGS.*{advice}"):
        from_environment({"STATOR_LOGS": f"+{wrong}"})


def test_a_value_must_be_a_level() -> None:
    with pytest.raises(ConfigError, match="a level of logging is wanted"):
        stator.set_logs(guards="debug")  # type: ignore[arg-type]


def test_nobody_listens_while_they_are_off() -> None:
    before = EVENTS.all
    assert TorchLogs in map(type, before) and Logs not in map(type, before)
    stator.set_logs(guards=True)
    assert Logs in map(type, EVENTS.all)
    stator.set_logs()
    assert EVENTS.all == before


def called_in(run: Callable[[], object]) -> list[str]:
    """The Python functions that are entered in a call."""
    entered: list[str] = []

    def note(frame: types.FrameType, event: str, arg: object) -> None:
        if event == "call":
            entered.append(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return entered


def test_a_call_that_an_entry_fits_enters_nothing_of_the_reports() -> None:
    compiled = stator.compile(lambda number: number + 1, backend="eager")
    stator.set_logs(all=logging.DEBUG)
    compiled(1)
    logged = called_in(lambda: compiled(1))
    stator.set_logs()
    assert logged == called_in(lambda: compiled(1))
    assert not [file for file in logged if f"{os.sep}report{os.sep}" in file and file != __file__]


def test_a_process_is_told_to_log_by_its_environment() -> None:
    program = "import stator; stator.compile(lambda: stator.graph_break('why'), backend='eager')()"
    environment = {**os.environ, "STATOR_LOGS": "graph_breaks"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "SB0301: graph_break() was called: why" in done.stderr
