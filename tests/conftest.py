"""Collection without torch, and a clean slate for every test.

What needs torch is collected away where torch is missing: the folders tests/pytorch and tests/backends, files
whose first line is `# needs: torch`, and tests marked `needs_torch`.

Inductor compiles one case of each test; all of them with STATOR_INDUCTOR=all, as in `make whole` and `make matrix`.
"""

import contextlib
import gc
import os
import sys
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
        away = [] if os.environ.get("STATOR_INDUCTOR") == "all" else _compiled_again(items)
    if away:
        config.hook.pytest_deselected(items=away)
        left = set(away)
        items[:] = [item for item in items if item not in left]


def _compiled_again(items: list[pytest.Item]) -> list[pytest.Item]:
    """Of the cases of each test that Inductor compiles all but the first: they take an eighth of all time."""
    first: dict[str, pytest.Item] = {}
    inductors = [item for item in items if "inductor" in item.name]
    return [item for item in inductors if first.setdefault(item.nodeid.partition("[")[0], item) is not item]


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
def fresh_stator() -> Iterator[None]:
    """No test sees what another compiled, and each draws the same random numbers in every run."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)
    yield
    getattr(stator, "reset", lambda: None)()
