"""Collection without torch, and a clean slate for every test.

What needs torch is collected away where torch is missing: the folders tests/pytorch and tests/backends, files
whose first line is `# needs: torch`, and tests marked `needs_torch`.

What Inductor compiles takes a third of all time. With STATOR_INDUCTOR=sample, as in `make test`, it compiles one case
of each test of backends, and one test in every sixth of the other files; all in `make inductor` and `make whole`.
"""

import contextlib
import gc
import logging
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import stator
from tests.needs import FOLDERS, HAS_TORCH, needs_torch

#: what a trace leaves is checked for consistency after each trace of each test (stator/codegen/ir_check.py)
stator.config.check_ir = True


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if HAS_TORCH:
        return None
    if collection_path.is_dir():
        return True if collection_path.name in FOLDERS else None
    return True if collection_path.suffix == ".py" and needs_torch(collection_path) else None


@pytest.hookimpl(trylast=True)  # when all that was asked for by name is selected
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    away = [item for item in items if item.get_closest_marker("needs_torch")]
    if HAS_TORCH:
        away = _left_out(items) if os.environ.get("STATOR_INDUCTOR") == "sample" else []
    if away:
        config.hook.pytest_deselected(items=away)
        left = set(away)
        items[:] = [item for item in items if item not in left]


def _left_out(items: list[pytest.Item]) -> list[pytest.Item]:
    """What Inductor does not compile: chosen by the files' names, that other tests change nothing of it."""
    first: dict[str, pytest.Item] = {}
    left = []
    for item in items:
        path = item.nodeid.partition("::")[0]
        of_backends = path.startswith("tests/backends/")
        group = item.nodeid.partition("[")[0] if of_backends else path
        if "inductor" in item.name and (first.setdefault(group, item) is not item or not (of_backends or _drawn(path))):
            left.append(item)
    return left


def _drawn(path: str) -> bool:
    return zlib.crc32(path.encode()) % 6 == 0


def pytest_collection_finish() -> None:
    """Collecting garbage does not go through all tests, and all that they have imported, again and again.

    What only the collector leads to is looked for before: the list of the functions that search for codecs.
    """
    with contextlib.suppress(LookupError):
        stator.compile(lambda text: text.encode("none such"), backend="eager")("text")
    stator.reset()
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """What the interpreter destroys when it ends is collected then: nanobind counts what is left."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def unwatched_collector() -> Iterator[None]:
    """Collections are not told to the test tools: that breaks a graph. Hypothesis listens from its first test on."""
    told, gc.callbacks[:] = gc.callbacks[:], []
    yield
    gc.callbacks[:] = told


@pytest.fixture(autouse=True)
def no_structured_trace() -> None:
    """torch writes one of each compile to a logger that has handlers, a fifth of the time that compiling takes; pytest
    gives some to each logger that does not propagate."""
    trace = logging.getLogger("torch.__trace")
    trace.propagate = True
    trace.parent = None  # whose handler, torch's, would show the first record
    trace.handlers[:] = [handler for handler in trace.handlers if not type(handler).__module__.startswith("_pytest")]


@pytest.fixture(autouse=True)
def fresh_stator() -> Iterator[None]:
    """No test sees what another compiled, and each draws the same random numbers in every run."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)
    yield
    getattr(stator, "reset", lambda: None)()
