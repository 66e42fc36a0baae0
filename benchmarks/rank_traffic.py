"""What `check_ranks` asks of the store for one frame, by the number of ranks: bytes and round trips of each, counted.

    python benchmarks/rank_traffic.py                 2, 64 and 1,024 ranks
    python benchmarks/rank_traffic.py --ranks 4096

All ranks are in this process, each with the session that it would have, one after the other in torch's fake process
group; the store is a dict that counts. Beside it stand two other ways, computed of the same posts: each rank reads what
every other has written (flat), and posts go up a binary tree and the answer down.
"""

from __future__ import annotations

import argparse
import datetime
import math
import time
from typing import Any

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

import stator
from stator.pytorch.ranks.board import Board
from stator.pytorch.ranks.digest import Digest, Post, digest_of
from stator.pytorch.ranks.inquiry import Inquiry
from stator.pytorch.ranks.session import Session
from stator.report.events import EVENTS, Compiled, Listener


class Counting:
    """A store, and what has been sent to it and got from it."""

    timeout = datetime.timedelta(seconds=1)

    def __init__(self) -> None:
        self.content: dict[str, Any] = {}
        self.trips, self.bytes = 0, 0

    def _count(self, *texts: str) -> None:
        self.trips += 1
        self.bytes += sum(map(len, texts))

    def compare_set(self, key: str, expected: str, text: str) -> bytes:
        found: str = self.content.setdefault(key, text)
        self._count(key, text, found)
        return found.encode()

    def set(self, key: str, text: str) -> None:
        self.content[key] = text
        self._count(key, text)

    def check(self, keys: list[str]) -> bool:
        self._count(*keys)
        return self.content.keys() >= set(keys)

    def multi_get(self, keys: list[str]) -> list[str]:
        found = [self.content[key] for key in keys]
        self._count(*keys, *found)
        return found

    def add(self, key: str, more: int) -> int:
        self.content[key] = self.content.get(key, 0) + more
        self._count(key, "8 bytes.")
        return int(self.content[key])


class OneLook(Session):
    """A rank's session, which looks once whether the others have come: here they come one after the other."""

    def __init__(self, rank: int, store: Counting) -> None:
        self.rank, self.board, self.name = rank, Board(store), dist.group.WORLD.group_name
        self.watcher: Any = argparse.Namespace(waits=None)

    def numbers(self) -> dict[str, int]:
        return {self.name: 0}

    def _wait(self, inquiry: Inquiry, order: int) -> None:
        self.board.count(inquiry.key)


class Digests(Listener):
    """Keeps what is told of frames that have been compiled."""

    def __init__(self) -> None:
        self.found: list[Digest] = []

    def compiled(self, event: Compiled) -> None:
        assert event.entry is not None
        self.found.append(digest_of(event.code, event.entry, []))


def digest(collectives: int) -> Digest:
    """Of a function with so many collectives."""

    def step(x: torch.Tensor) -> torch.Tensor:
        for _ in range(collectives):
            x = x + 1
            dist.all_reduce(x)
        return x

    digests = Digests()
    EVENTS.all += (digests,)
    stator.compile(step, backend="eager", fullgraph=True)(torch.ones(3))
    EVENTS.all = tuple(each for each in EVENTS.all if each is not digests)
    return digests.found[0]


def measure(ranks: int) -> None:
    """Print a row for each number of collectives."""
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    for collectives in (1, 48):
        told, store = digest(collectives), Counting()
        first = 0
        started = time.perf_counter()
        for rank in range(ranks):
            OneLook(rank, store)._agree(told)
            first = first or store.bytes
        seconds = (time.perf_counter() - started) / ranks
        post = len(Post(ranks, told.collectives, told.ends).dump())
        levels = math.ceil(math.log2(ranks))
        print(
            f"{ranks:6} ranks, {collectives:2} collectives: {store.trips / ranks:4.1f} round trips,"
            f" {(store.bytes - first) / max(ranks - 1, 1) / 1e3:7.2f} KB a rank ({first / 1e3:.1f} KB the first),"
            f" {store.bytes / 1e6:8.2f} MB in all, {seconds * 1e3:.2f} ms a rank;"
            f" flat {post * ranks / 1e3:8.1f} KB a rank, {post * ranks * ranks / 1e6:9.1f} MB;"
            f" tree {2 * post / 1e3:5.1f} KB, {2 * levels} levels"
        )
    dist.destroy_process_group()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 64, 1024], help="how many")
    for ranks in parser.parse_args().ranks:
        measure(ranks)


if __name__ == "__main__":
    main()
