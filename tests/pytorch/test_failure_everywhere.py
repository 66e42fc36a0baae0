"""Each program of apptests/ with tensors, with each operation of its graphs made to fail in turn.

What came before is done, handlers run, and the exception leaves from the program's own lines: as in eager execution
with the same operation made to fail. `STATOR_FAILURES=all` tries every operation; else a spread of them.
"""

from __future__ import annotations

import contextlib
import io
import os
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

import stator
from apptests import app_steps, app_tensors
from stator.bytecode import runtime
from tests.pytorch.failing_operations import Tool, failing_in_python
from tests.test_apptests import same

MOST = 1000 if os.environ.get("STATOR_FAILURES") == "all" else 12


def programs(module: ModuleType) -> list[Any]:
    return [value for name, value in vars(module).items() if name.startswith(("app_", "drawing_")) and callable(value)]


class World:
    """What lives in a program's module: it is as it was before each run."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.kept = self.look()

    def look(self) -> dict[str, Any]:
        """Copies of everything that a program may change."""
        return {
            name: seen
            for name, value in vars(self.module).items()
            if name[:2] != "__" and (seen := _look(value)) is not None
        }

    def reset(self) -> None:
        """Put everything back, in place."""
        torch.manual_seed(0)
        for name, kept in self.kept.items():
            _put_back(getattr(self.module, name), kept)


def _look(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, torch.nn.Module):
        tensors = [t.detach().clone() for t in (*value.parameters(), *value.buffers())]
        return [tensors, [dict(m.__dict__) for m in value.modules()]]
    if isinstance(value, list):
        return list(value)
    if isinstance(value, dict):
        return {k: _look(v) if isinstance(v, torch.Tensor) else v for k, v in value.items()}
    if type(value).__module__.startswith("apptests."):
        return {k: _look(v) if isinstance(v, torch.Tensor) else v for k, v in vars(value).items()}
    return None


def _plain(seen: list[Any]) -> list[Any]:
    """What can be compared of a module."""
    tensors, attributes = seen
    return [tensors, [{k: v for k, v in each.items() if type(v) in (int, float, bool, str)} for each in attributes]]


def _put_back(value: Any, kept: Any) -> None:
    with torch.no_grad():
        if isinstance(value, torch.Tensor):
            value.copy_(kept)
        elif isinstance(value, torch.nn.Module):
            for tensor, old in zip((*value.parameters(), *value.buffers()), kept[0], strict=True):
                tensor.copy_(old)
            for module, attributes in zip(value.modules(), kept[1], strict=True):
                module.__dict__.update(attributes)
        elif isinstance(value, list):
            value[:] = kept
        elif isinstance(value, dict):
            value.update(kept)
        else:
            for name, old in kept.items():
                if isinstance(old, torch.Tensor):
                    getattr(value, name).copy_(old)
                else:
                    setattr(value, name, old)


def shown(run: Callable[[], Any], world: World) -> tuple[Any, list[Any]]:
    """Whether it failed, and everything that shows of a run."""
    world.reset()
    out = io.StringIO()
    result: Any
    failed = None
    try:
        with contextlib.redirect_stdout(out):
            result = run()
    except Exception as error:
        failed = error
        own = world.module.__file__
        entries = traceback.extract_tb(error.__traceback__)
        lines = [f"{entry.name}: {entry.line}" for entry in entries if entry.filename == own]
        result = [type(error).__name__, error.args, lines]
    left = {name: seen for name, seen in world.look().items() if name not in ("BLOCK", "NET")}
    modules = [_plain(world.look()[name]) for name in ("BLOCK", "NET") if hasattr(world.module, name)]
    random = torch.rand(2)
    return failed, [result, out.getvalue(), left, modules, random, torch.is_grad_enabled()]


def spread(count: int) -> list[int]:
    """Which of so many operations are made to fail."""
    chosen = range(1, count + 1)
    return list(chosen) if count <= MOST else [chosen[i * (count - 1) // (MOST - 1)] for i in range(MOST)]


def check(program: Any, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One operation after the other fails, in a graph and in ordinary Python."""
    module = app_steps if program.__module__.endswith("app_steps") else app_tensors
    world = World(module)
    tool = Tool(backend)
    monkeypatch.setattr(runtime, "untraced", tool.again)
    compiled = stator.compile(program, backend=tool, options={"recompile_limit": 2000})
    for _ in range(2):
        tool.start()
        assert same(shown(program, world)[1], shown(compiled, world)[1])
    for number in spread(tool.count):
        tool.start(number)
        _, got = shown(compiled, world)
        assert tool.failed is not None
        key, count, _ = tool.failed
        tool.start()
        _, expected = shown(failing_in_python(program, key, count), world)
        assert same(expected, got), (number, key, count, expected, got)
    world.reset()


EVERY = programs(app_steps) + programs(app_tensors)


@pytest.mark.parametrize("program", EVERY, ids=lambda p: p.__name__)
def test_eager(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check(program, "eager", monkeypatch)


@pytest.mark.parametrize("program", programs(app_steps), ids=lambda p: p.__name__)
def test_aot_eager(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check(program, "aot_eager", monkeypatch)
