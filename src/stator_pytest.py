"""A plugin for pytest: tests that fail where a graph breaks, and a census of a whole run.

    def test_it(assert_no_graph_break): ...

    @pytest.mark.graph_breaks(at_most=1)
    def test_another(): ...

    pytest --stator-census=census.json

It is no part of the package `stator`, which pytest would import in every run: that happens when one of them is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from stator.report.census import Difference
    from stator.report.events import Broke

_MARK, _FIXTURE, _OPTION = "graph_breaks", "assert_no_graph_break", "--stator-census"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the option."""
    text = "count breaks, graphs and recompiles of the run: compare with FILE, or write it if it does not exist"
    parser.getgroup("stator").addoption(_OPTION, metavar="FILE", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker, and counts from here on if that is asked for."""
    config.addinivalue_line("markers", f"{_MARK}(at_most=N): the test fails if the graph breaks more often")
    path = config.getoption(_OPTION)
    if path:
        config.pluginmanager.register(CensusOfRun(Path(path), str(config.rootpath)), "stator-census")


@pytest.fixture
def assert_no_graph_break() -> None:
    """The test fails if a graph breaks, or a frame is given up, in what it compiles."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Listens during a test that allows so many breaks and no more."""
    most = _most(item)
    if most is None:
        yield
        return
    from stator.report import messages
    from stator.report.events import Listener, listening

    class Breaks(Listener):
        def __init__(self) -> None:
            self.texts: list[str] = []

        def broke(self, event: Broke) -> None:
            self.texts.append(str(messages.broke(event)))

    breaks = Breaks()
    with listening(breaks):
        yield
    if len(breaks.texts) > most:
        told = "\n\n".join(breaks.texts)
        pytest.fail(f"{len(breaks.texts)} graph breaks, {most} allowed\n\n{told}", pytrace=False)


def _most(item: pytest.Item) -> int | None:
    """How many breaks a test allows; None for any number."""
    if _FIXTURE in getattr(item, "fixturenames", ()):
        return 0
    mark = item.get_closest_marker(_MARK)
    if mark is None:
        return None
    if mark.args or list(mark.kwargs) != ["at_most"] or type(mark.kwargs["at_most"]) is not int:
        raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.{_MARK}(at_most=N) takes a number")
    most: int = mark.kwargs["at_most"]
    return most


class CensusOfRun:
    """The census of a run, saved or compared at its end."""

    def __init__(self, path: Path, folder: str) -> None:
        from stator.report.census import Census, CensusTaker
        from stator.report.events import EVENTS

        self._path = path
        self._taker = CensusTaker(folder)
        self._earlier = Census.load(path) if path.exists() else None
        self._difference: Difference | None = None
        EVENTS.all += (self._taker,)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        """Compares, which may fail the run."""
        from stator.report.events import EVENTS

        EVENTS.all = tuple(listener for listener in EVENTS.all if listener is not self._taker)
        census = self._taker.census()
        if self._earlier is None:
            self._path.write_text(census.to_json(), encoding="utf-8")
        else:
            self._difference = census.against(self._earlier)
            if self._difference.worse and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        yield

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Says what came of it."""
        terminalreporter.section("Stator's census")
        told = f"written to {os.fspath(self._path)}" if self._difference is None else str(self._difference)
        terminalreporter.line(told)
