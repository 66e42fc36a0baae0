"""Ranks that would run different collectives raise one error, each of them; what differs otherwise is none."""

from __future__ import annotations

import datetime
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from benchmarks.rank_traffic import Counting
from stator.pytorch.ranks.board import Board
from stator.pytorch.ranks.digest import Collective
from stator.pytorch.ranks.inquiry import HOST, Inquiry
from stator.pytorch.ranks.session import Session
from stator.pytorch.ranks.watcher import Watcher
from tests.pytorch.distributed.divergence import HARMFUL, HARMLESS
from tests.pytorch.distributed.ranks import Ranks


@pytest.mark.parametrize("name", HARMFUL)
def test_ranks_that_differ_raise_alike(ranks: Ranks, tmp_path: Path, name: str) -> None:
    ranks.check("differs", name, str(tmp_path / "store"))


@pytest.mark.parametrize("name", HARMLESS)
def test_what_changes_no_collective_is_no_error(ranks: Ranks, tmp_path: Path, name: str) -> None:
    ranks.check("agrees", name, str(tmp_path / "store"))


def test_no_thread_is_in_the_store_when_a_session_has_ended() -> None:
    """Python's end would abort the process: a thread that comes back from C++ then is unwound."""
    inside = threading.Event()

    class Slow(Board):
        def count(self, key: str, more: int = 0) -> int:
            inside.set()
            threading.Event().wait(0.2)
            return super().count(key, more)

    watcher = Watcher(0, Slow(dist.HashStore()), dict, lambda failure: None, lambda: None)
    watcher.start()
    assert inside.wait(10)
    watcher.stop()
    assert not watcher.is_alive()


def test_a_rank_that_asks_for_many_needs_few_round_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a thousand may ask where the others are."""
    monkeypatch.setattr("stator.pytorch.ranks.inquiry._members", lambda group: [*range(1024)])
    store = Counting()
    state = {"news": 0, "host": "", "pid": 1, "over": False, "waits": ["0", 0], "numbers": {"0": 0}, "doing": None}
    for rank in range(1023):  # one has compiled nothing so far
        Board(store).write(f"state {rank}", state)
    store.trips = 0
    inquiry = Inquiry(Board(store), 0, Collective("all_reduce", "0", "sum", 3, False, "step.py:3"), {"0": 0})
    assert inquiry.ask() is None and inquiry.missing == [1023]
    assert store.trips < 40


HERE = {"host": HOST, "pid": os.getpid(), "over": False}


@pytest.mark.parametrize("state", [HERE, {**HERE, "pid": 2**30}, {**HERE, "host": "elsewhere"}, None])
def test_who_ends_waits_for_those_that_live_and_compare(state: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stator.pytorch.ranks.session._ALONE", 0.1)
    monkeypatch.setattr("stator.pytorch.ranks.session._END", 0.6)
    store, session = dist.HashStore(), Session.__new__(Session)
    session.board, session.rank, session.size, session.failure, session.told = Board(store), 0, 2, None, True
    session.watcher = Watcher(0, Board(store), dict, lambda failure: None, lambda: None)
    if state is not None:
        session.board.write("state 1", state)
    session.watcher.start()
    begin = time.monotonic()
    session.finish()
    waited = time.monotonic() - begin > 0.5
    assert waited == (state is not None and state["pid"] == os.getpid())


class Ending:
    """A store whose rank ends when another has told it, once, that it is over."""

    timeout = datetime.timedelta(seconds=1)

    def __init__(self) -> None:
        self.asked = 0

    def add(self, key: str, more: int) -> int:
        self.asked += 1
        if self.asked > 1:
            raise RuntimeError("Broken pipe")
        return 1


def test_a_rank_that_ends_last_does_not_need_the_store() -> None:
    """The rank that keeps it ends as soon as it has seen that all are over."""
    session = Session.__new__(Session)
    session.board, session.size, session.failure, session.told = Board(Ending()), 2, None, False
    session.watcher = Watcher(1, Board(dist.HashStore()), dict, lambda failure: None, lambda: None)
    session.watcher.start()
    session.finish()
    assert not session.watcher.is_alive()
