"""What is checked of ranks that compare what they compile, each time in a process group of its own."""

from __future__ import annotations

import datetime
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist

import stator
from stator.pytorch.ranks import session
from tests.pytorch.distributed.divergence import HARMFUL, HARMLESS, arrived, line_of

#: seconds from where the ranks differ within which each must have its error
LIMIT = 5.0


@contextmanager
def new_group(store: str) -> Iterator[int]:
    """Another default group of the same processes."""
    rank, size = int(sys.argv[1]), 2
    if dist.is_initialized():
        dist.destroy_process_group()
    limit = datetime.timedelta(seconds=15)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size, timeout=limit)
    stator.compile(lambda x: x + 1, backend="eager")(torch.ones(2))  # it is imported
    dist.barrier()
    stator.reset()
    with stator.config.patch(check_ranks=True):
        yield rank


def differs(name: str, store: str) -> None:
    """The error comes on each rank, in time, and names the line."""
    program = HARMFUL[name]
    with new_group(store) as rank:
        arrived[:] = [time.monotonic()]
        try:
            program(rank)
            session.finish()
        except stator.RankDivergenceError as error:
            seconds = time.monotonic()
            seconds -= _last_arrival(store, rank)
            assert error.where == f"divergence.py:{line_of(program)}", str(error)
            assert f"divergence.py:{line_of(program)}" in str(error) and len(error.values) == 2
            assert set(error.values) == {0, 1} and "rank 0: " in str(error) and "rank 1: " in str(error)
            assert seconds < LIMIT, f"{seconds:.1f} seconds"
            if os.environ.get("SHOW"):
                print(f"{name} rank {rank} {seconds:.1f} s: {error}", file=sys.stderr)
        else:
            raise AssertionError("no error")
        finally:
            session.finish()


def _last_arrival(store: str, rank: int) -> float:
    """When the last of the two came to where they differ, on the clock that all processes of a machine have."""
    other = Path(f"{store}.{1 - rank}")
    Path(f"{store}.{rank}.new").write_text(repr(arrived[-1]))
    os.rename(f"{store}.{rank}.new", f"{store}.{rank}")
    while not other.exists():
        time.sleep(0.01)
    return max(arrived[-1], float(other.read_text()))


def agrees(name: str, store: str) -> None:
    """No error, and what eager execution gives."""
    with new_group(store) as rank:
        HARMLESS[name](rank)
        session.finish()
