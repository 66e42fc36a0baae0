"""What belongs to a compiled callable goes with it: code, classes, modules, graphs, generated source."""

from __future__ import annotations

import collections
import dataclasses
import gc
import json
import linecache
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import stator

X = torch.ones(2, 2)
BACKENDS = ("eager", "aot_eager")
SCENARIOS: list[Callable[[str], tuple[Any, ...]]] = []


@pytest.fixture(autouse=True)
def only_what_is_new() -> None:
    """The collector looks at what the test has made, and not each time at all that earlier tests have left."""
    gc.collect()
    gc.freeze()


def scenario(function: Callable[[str], tuple[Any, ...]]) -> Callable[[str], tuple[Any, ...]]:
    SCENARIOS.append(function)
    return function


def run(program: Any, backend: str, *args: Any) -> Any:
    compiled = stator.compile(program, backend=backend)
    compiled(*args)
    compiled(*args)
    return compiled


def from_text(text: str) -> Any:
    scope: dict[str, Any] = {"stator": stator}
    exec(text, scope)
    return scope["f"]


@scenario
def code_with_a_break(backend: str) -> tuple[Any, ...]:
    f = from_text("def f(x):\n y = x + 1\n stator.graph_break()\n return [y * k for k in (1, 2)]")
    return f, f.__code__, run(f, backend, X)


def calls_another(g: Any, x: Any) -> Any:
    return g(x) + 1


@scenario
def code_broken_below_code_that_stays(backend: str) -> tuple[Any, ...]:
    f = from_text("def f(x):\n y = x + 1\n stator.graph_break()\n return y * 2")
    return f, f.__code__, run(calls_another, backend, f, X)


@scenario
def code_given_up(backend: str) -> tuple[Any, ...]:
    f = from_text("def f(x):\n import sys\n for _ in range(2):\n  x = x + len(sys._getframe().f_locals)\n return x")
    return f, f.__code__, run(f, backend, X)


@scenario
def classes(backend: str) -> tuple[Any, ...]:
    class Scale:
        __slots__ = ("__weakref__", "by")

        def __init__(self, by: Any) -> None:
            self.by = by

        def __call__(self, x: Any) -> Any:
            return x * self.by

    existing = Scale(3)

    def program(x: Any) -> Any:
        return existing(x), Scale(x).by, isinstance(existing, Scale)

    return Scale, existing, program, run(program, backend, X)


@scenario
def containers(backend: str) -> tuple[Any, ...]:
    pair = collections.namedtuple("pair", "a b")  # type: ignore[name-match]  # noqa: PYI024

    @dataclasses.dataclass(frozen=True)
    class Key:
        a: int

    class OwnList(list[Any]):
        pass

    known = {Key(1), Key(2)}

    def program(x: Any) -> Any:
        return pair(x, x + 1).b, {Key(1): x}[Key(1)], Key(1) in known, OwnList([x])[0]

    return pair, Key, OwnList, program, run(program, backend, X)


@scenario
def exceptions(backend: str) -> tuple[Any, ...]:
    class Own(Exception):
        pass

    def program(x: Any) -> Any:
        try:
            raise Own(x)
        except Own as e:
            return e.args[0] * 2

    return Own, program, run(program, backend, X)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        return self.linear(x).relu()


@scenario
def modules(backend: str) -> tuple[Any, ...]:
    class Own(Layer):
        def forward(self, x: Any) -> Any:
            y = super().forward(x)
            stator.graph_break()
            return y + 1

    model = Own()
    compiled = run(model, backend, X)
    compiled(X).sum().backward()
    return Own, model, compiled, type(compiled), model.linear.weight


@scenario
def a_step_that_breaks_at_backward(backend: str) -> tuple[Any, ...]:
    model = torch.nn.Linear(3, 3)

    def step(x: Any) -> None:
        model(x).sum().backward()

    run(step, backend, torch.ones(2, 3))
    return model, step


@scenario
def marked_functions(backend: str) -> tuple[Any, ...]:
    @stator.allow_in_graph
    def twice(x: Any) -> Any:
        return x * 2

    @stator.assume_constant_result
    def three() -> int:
        return 3

    def program(x: Any) -> Any:
        return twice(x) * three()

    return twice, three, program, run(program, backend, X)


@scenario
def recompiled(backend: str) -> tuple[Any, ...]:
    def program(x: Any, k: Any) -> Any:
        return x * x.shape[0] + k

    compiled = stator.compile(program, backend=backend)
    for size in (2, 3, 4):
        compiled(torch.ones(size), 1.5)
    return program, compiled


@scenario
def in_a_thread(backend: str) -> tuple[Any, ...]:
    made = []

    def work() -> None:
        def program(x: Any) -> Any:
            return x * 2

        made.extend([program, run(program, backend, X)])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return (*made, thread)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", SCENARIOS, ids=lambda make: make.__name__)
def test_nothing_is_left_of_what_was_compiled(make: Any, backend: str) -> None:
    make(backend)  # what a first use imports and remembers stays
    gc.collect()
    lines = set(linecache.cache)
    alive = [(repr(item), weakref.ref(item)) for item in make(backend)]
    gc.collect()
    gc.collect()
    assert [text for text, ref in alive if ref() is not None] == []
    graphs = [name for name in set(linecache.cache) - lines if name.startswith(("<stator", "<eval_with_key"))]
    # A graph of a backward pass is made when that begins: torch.fx keeps two texts of it for good.
    assert len(graphs) <= (4 if make in (modules, a_step_that_breaks_at_backward) and backend != "eager" else 0)


def again_and_again(backend: str) -> dict[str, int]:
    """How many objects of which class 40 rounds leave behind."""

    def program(x: Any) -> Any:
        y = x * 2
        stator.graph_break()
        return y + 1

    def rounds(count: int) -> collections.Counter[str]:
        for _ in range(count):
            stator.compile(program, backend=backend)(X)
        gc.collect()
        return collections.Counter(type(item).__qualname__ for item in gc.get_objects())

    rounds(20)
    before = rounds(5)
    return dict(rounds(40) - before)


@pytest.mark.parametrize("backend", BACKENDS)
def test_compiling_again_and_again_leaves_nothing(backend: str) -> None:
    # In a process of its own: pytest keeps what a backend logs.
    command = [sys.executable, __file__, backend]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=270)
    assert ran.returncode == 0, ran.stderr
    grown = json.loads(ran.stdout)
    assert sum(grown.values()) < 40, grown


def test_a_memory_of_code_does_not_outlive_its_owner() -> None:
    from stator.bytecode.by_code import ByCode

    code = from_text("def f(x):\n return x").__code__
    gc.collect()
    known = weakref.getweakrefcount(code)
    table = ByCode[int]()
    table.keep(code, 3)
    assert weakref.getweakrefcount(code) == known + 1
    del table
    gc.collect()
    assert weakref.getweakrefcount(code) == known


if __name__ == "__main__":
    print(json.dumps(again_and_again(sys.argv[1])))
