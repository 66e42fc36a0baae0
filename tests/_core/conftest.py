"""What the tests of the core share: a miss handler for one test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stator import _core
from stator.compiler import miss


@pytest.fixture
def on_miss() -> Iterator[Callable[[Any], None]]:
    """Sets the miss handler; after the test it is the tracer's again."""
    yield _core.set_miss_handler
    _core.set_miss_handler(miss.on_miss)
    assert not _core.hook_installed()
    assert _core.current_region() is None


@pytest.fixture
def misses(on_miss: Callable[[Any], None]) -> list[tuple[str, list[Any]]]:
    """A handler that runs everything natively and notes what it was asked, but for callbacks of a collection."""
    seen: list[tuple[str, list[Any]]] = []

    def handler(region: Any, func: Any, code: Any, args: list[Any]) -> None:
        if code.co_filename.startswith(os.path.dirname(__file__)):
            seen.append((code.co_name, args))

    on_miss(handler)
    return seen
