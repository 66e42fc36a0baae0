"""Functions of torch.distributed in compiled functions: each call is one break, and what it does is what eager does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

import stator


@pytest.fixture(autouse=True)
def group(tmp_path: Path) -> Iterator[None]:
    """A process group of this process alone."""
    made = not dist.is_initialized()
    if made:
        dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    if made:
        dist.destroy_process_group()


def reduced(x: Any) -> Any:
    y = x * 2
    dist.all_reduce(y)
    return y + 1


def gathered(x: Any) -> Any:
    made = torch.empty_like(x)
    dist.all_gather_into_tensor(made, x * 3)
    return made + 1


def objects(x: Any) -> Any:
    made: list[Any] = [None]
    dist.all_gather_object(made, x.shape[0])
    return x * made[0]


def waited_for(x: Any) -> Any:
    made = torch.empty_like(x)
    work = dist.all_gather_into_tensor(made, x, async_op=True)
    y = x.sin()
    work.wait()
    return made + y


CALLS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "torch.distributed.all_reduce": (reduced, 1),
    "torch.distributed.all_gather_into_tensor": (gathered, 1),
    "torch.distributed.all_gather_object": (objects, 1),
    "torch.distributed.barrier": (lambda x: (dist.barrier(), x + 1)[1], 1),
    "torch.distributed.get_world_size": (lambda x: x * dist.get_world_size(), 1),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_one_break_with_its_name(name: str, backend: str) -> None:
    program, breaks = CALLS[name]
    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for n in (3, 4, 5):
        x = torch.randn(n)
        assert torch.equal(compiled(x), program(x))
    found = stator.stats().breaks
    assert {record.code for record in found} == {"SB0211"} and name in found[0].reason
    assert len({record.where for record in found}) == breaks


def test_what_only_reads_is_traced() -> None:
    stator.reset()
    compiled = stator.compile(lambda x: x + 1 if dist.is_initialized() else x, backend="eager", fullgraph=True)
    assert torch.equal(compiled(torch.zeros(2)), torch.ones(2))


def test_an_asynchronous_collective_is_waited_for_where_the_program_says() -> None:
    stator.reset()
    x = torch.randn(3)
    assert torch.equal(stator.compile(waited_for, backend="eager")(x), waited_for(x))
    assert stator.stats().graph_breaks == 2
