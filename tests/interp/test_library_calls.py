# needs: torch
"""Library functions that compute nothing of the graph: a break inside of one is a break at the user's call of it."""

import heapq
import importlib.util
import os
import sqlite3
import sys
import tempfile
import time

import pytest
import torch

import stator

SOURCE = '''
import threading, time, torch

class Bar:
    """As a progress bar."""
    alive = 0
    lock = threading.RLock()

    def __init__(self, items=()):
        self.items, self.n, self.shown = items, 0, []
        self.began = time.perf_counter()
        with self.lock:
            Bar.alive += 1

    def __iter__(self):
        try:
            for item in self.items:
                self.update()
                yield item
        finally:
            self.close()

    def update(self):
        self.n += 1
        with self.lock:
            self.refresh()

    def refresh(self):
        self.last = time.perf_counter()
        with self.lock:
            self.shown.append(self.n)
            self.width = width(f"{self.n} of {len(self.shown)}")
        self.last = time.perf_counter()

    def postfix(self, **values):
        self.values = {key: f"{value:.2f}" if isinstance(value, float) else str(value) for key, value in values.items()}
        self.refresh()

    def close(self):
        self.refresh()
        self.refresh()

    def __del__(self):
        with self.lock:
            Bar.alive -= 1

def width(text):
    return sum(2 if ord(letter) > 255 else 1 for letter in text)

def scale(x):
    y = x * 2
    time.perf_counter()
    return y * 3

def called_back(function):
    time.perf_counter()
    function()
    time.perf_counter()
'''


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    file = tmp_path_factory.mktemp("lib") / "site-packages" / "bars.py"
    file.parent.mkdir()
    file.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("bars", file)
    module = sys.modules["bars"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["bars"]


def over_a_bar(x, bars):
    shown = []
    for number in bars.Bar([1, 2, 3]):
        x = x.sin() * number
    shown.append(bars.Bar.alive)
    return x, shown


def with_values(x, bars):
    bar = bars.Bar()
    for number in range(3):
        x = x.sin() * number
        bar.update()
        bar.postfix(loss=x.sum().item(), number=number)
    bar.close()
    return x, bar.shown, bar.values


def ran(function, size, bars):
    x = torch.linspace(0, 1, size, requires_grad=True)
    result, *rest = function(x, bars)
    result.sum().backward()
    return result.tolist(), x.grad.tolist(), *rest


def told(function, *args, **options):
    before = stator.stats()
    function(*args, **options)
    return stator.stats().diff(before)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [over_a_bar, with_values])
def test_results(program, backend, library):
    compiled = stator.compile(program, backend=backend)
    for size in (3, 4, 5):
        assert ran(compiled, size, library) == ran(program, size, library)


@pytest.mark.parametrize(("program", "breaks"), [(over_a_bar, 4), (with_values, 5)])
def test_breaks_are_at_the_lines_of_the_user(program, breaks, library):
    done = told(ran, stator.compile(program, backend="eager"), 3, library)
    assert len(done.breaks) <= breaks
    assert {record.where.rpartition(":")[0] for record in done.breaks} == {__file__}
    assert "SB0122" in {record.code for record in done.breaks} or program is over_a_bar
    assert done.graphs >= 2


def test_what_a_library_does_for_itself_is_not_compiled(library):
    """Each text that a bar shows would be another case of `width`: a trace each, and a warning."""

    def step(x):
        bar.update()
        return x + 1

    bar, compiled = library.Bar(), stator.compile(step, backend="eager")
    done = [told(compiled, torch.ones(3)) for _ in range(30)]
    assert {record.code for part in done for record in part.breaks} == {"SB0122"}
    assert not any(part.recompiles for part in done)
    assert sum(part.frames for part in done[10:]) == 0
    assert bar.shown == list(range(1, 31))
    assert bar.width == len("30 of 30")


def test_a_function_of_the_program_that_computes_nothing_is_not_compiled():
    """It is called by C code that cannot be traced, with another text each time."""

    def described(text):
        return sum(ord(letter) for letter in text)

    def step(x, text):
        time.sleep(0)  # after which the program goes on
        return x + sorted([text], key=described).index(text)

    compiled = stator.compile(step, backend="eager")
    done = [told(compiled, torch.ones(3), f"step {number}") for number in range(12)]
    assert not any("described" in record.where for part in done for record in part.recompile_log)
    assert {record.code for part in done for record in part.breaks} <= {"SB0101", "SB0501"}


def test_the_call_is_named(library):
    def step(x):
        y = x + 1
        bar.update()
        return y * 2

    bar = library.Bar()
    with pytest.raises(stator.GraphBreakError, match=r"SB0122: a library's code cannot be traced: call of Bar\.update"):
        stator.compile(step, backend="eager", fullgraph=True)(torch.ones(2))


def test_a_library_that_computes_is_gone_on_with(library):
    done = told(stator.compile(lambda x: library.scale(x) + 1, backend="eager"), torch.ones(3))
    assert [record.code for record in done.breaks] == ["SB0101"]
    assert done.ops == 3  # and not one less: what is behind the break is compiled


def test_what_a_library_calls_back_is_compiled(library):
    def step(x):
        library.called_back(lambda: seen.append(x.sin()))
        return x + 1

    seen = []
    done = told(stator.compile(step, backend="eager"), torch.ones(3))
    assert torch.equal(seen[0], torch.ones(3).sin())
    assert done.ops == 2


def test_the_standard_library():
    def step(x):
        with tempfile.TemporaryDirectory() as folder:
            y = x + len(folder) * 0
        return y * 2

    done = told(stator.compile(step, backend="eager"), torch.ones(3))
    assert {record.where.rpartition(":")[0] for record in done.breaks} == {__file__}
    assert len(done.breaks) <= 3


def test_where_is_the_line_of_the_user(library):
    def step(x):
        return library.scale(x) + 1

    (record,) = told(stator.compile(step, backend="eager"), torch.ones(3)).breaks
    assert record.where == f"{__file__}:{step.__code__.co_firstlineno + 1}"
    assert record.inside == f"{library.__file__}:{library.scale.__code__.co_firstlineno + 2}"


def test_so_it_is_where_only_a_library_is_traced(library):
    (record,) = told(stator.compile(library.scale, backend="eager"), torch.ones(3)).breaks
    assert record.where.startswith(f"{__file__}:")
    assert record.inside == f"{library.__file__}:{library.scale.__code__.co_firstlineno + 2}"


def test_names_are_those_of_the_program(library, tmp_path):
    def step(x):
        connection = sqlite3.connect(":memory:")
        return x + len([name for _, _, files in os.walk(tmp_path) for name in files]), connection

    def loop(x, bar):
        for _ in bar:
            x = x + 1
        return x

    done = told(stator.compile(step, backend="eager"), torch.ones(3))
    reasons = {record.reason for record in done.breaks}
    assert "call of the C function sqlite3.connect" in reasons
    assert "a library's code cannot be traced: a function of the standard library" in reasons  # os.walk, of frozen code
    (record,) = told(stator.compile(loop, backend="eager"), torch.ones(3), iter(library.Bar([1, 2]))).breaks
    assert record.reason == "use of the generator Bar.__iter__, which was made outside the compiled function"


def test_the_number_that_a_library_must_know_is_told():
    def step(x):
        scores = [(x[i].item(), i) for i in range(3)]
        heapq.heapify(scores)
        return scores[0]

    says = "call of heapify, in which a condition on a number from Tensor.item depends on the value of a tensor"
    with pytest.raises(stator.GraphBreakError) as told_of:
        stator.compile(step, backend="eager", fullgraph=True)(torch.ones(3))
    assert says in " ".join(str(told_of.value).split())
