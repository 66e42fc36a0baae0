"""What is no operation of a graph: each call is one break with its name, and what it does is what eager does."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed import c10d_logger
from torch.distributed.device_mesh import init_device_mesh

import stator


def begin(path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{path / 'store'}", rank=0, world_size=1)


@pytest.fixture(autouse=True)
def group(tmp_path: Path) -> Iterator[None]:
    """A process group of this process alone."""
    made = not dist.is_initialized()
    if made:
        begin(tmp_path)
    yield
    if made:
        dist.destroy_process_group()


def objects(x: Any) -> Any:
    made: list[Any] = [None]
    dist.all_gather_object(made, x.shape[0])
    return x * made[0]


def followed(x: Any) -> Any:
    """What autograd knows of `made` afterwards depends on the backend."""
    made = torch.empty_like(x)
    dist.reduce_scatter(made, [x.requires_grad_()])
    return made.detach() + 1


def transposed(x: Any) -> Any:
    """gloo refuses a tensor that is not contiguous."""
    y = x.expand(2, *x.shape).t()
    try:
        dist.all_reduce(y)
    except (RuntimeError, ValueError) as e:
        return x + len(str(e))
    return y


def too_small(x: Any) -> Any:
    made = torch.empty(1)
    try:
        dist.all_gather_single(made, x)
    except (RuntimeError, ValueError) as e:
        return x + len(str(e))
    return made


def forgotten(x: Any) -> Any:
    y = x * 2
    dist.all_reduce(y, async_op=True)
    dist.barrier()
    return y + 1


def returned(x: Any) -> Any:
    y = x * 2
    return y, dist.all_reduce(y, async_op=True)


def kept(x: Any) -> Any:
    y = x * 2
    work = dist.all_reduce(y, async_op=True)
    work.wait()
    return y, work


def waited_behind_a_break(x: Any) -> Any:
    y = x * 2
    work = dist.all_reduce(y, async_op=True)
    z = x.sin()
    stator.graph_break()
    work.wait()
    return y + z


def asked(x: Any) -> Any:
    y = x * 2
    work = dist.all_reduce(y, async_op=True)
    work.wait()
    return y if work.is_completed() else x


def written_through(x: Any) -> Any:
    """It gives the tensor that it is given, which is no other one."""
    y = functional.wait_tensor(x)
    y.add_(1)
    return x * 2


def sent_with_a_factor(x: Any) -> Any:
    y = x * 2
    try:
        dist.all_reduce(y, op=dist.ReduceOp.PREMUL_SUM)
    except (RuntimeError, ValueError, TypeError) as e:
        return x + len(str(e)[:10])
    return y


CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "objects": (objects, "torch.distributed.all_gather_object"),
    "barrier": (lambda x: (dist.barrier(), x + 1)[1], "torch.distributed.barrier"),
    "followed": (followed, "what autograd records of it"),
    "transposed": (transposed, "a tensor is not contiguous"),
    "too_small": (too_small, "is not made of rows"),
    "written_through": (written_through, "the tensor existed before the graph"),
    "factor": (sent_with_a_factor, "torch.distributed.all_reduce"),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_one_break_with_its_name(name: str, backend: str) -> None:
    program, reason = CALLS[name]
    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for n in (3, 4, 5):
        x = torch.randn(n)
        assert torch.equal(compiled(x.clone()), program(x.clone()))
    found = stator.stats().breaks
    assert {record.code for record in found} == {"SB0211"} and reason in found[0].reason
    assert len({record.where for record in found}) == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [forgotten, returned, kept, waited_behind_a_break, asked])
def test_a_handle_that_leaves_the_graph_is_made_by_python(program: Callable[[Any], Any], backend: str) -> None:
    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for n in (3, 4, 5):
        x = torch.randn(n)
        got, expected = compiled(x), program(x)
        if isinstance(got, tuple):
            assert type(got[1]) is type(expected[1])
            assert got[1].wait() and expected[1].wait()
            got, expected = got[0], expected[0]
        assert torch.equal(got, expected)
    assert "torch.distributed.all_reduce" in stator.stats().breaks[0].reason


# -- while tracing ----------------------------------------------------------------------------------------------------


def of_a_number(x: Any) -> Any:
    total, parts = torch.tensor(x.shape[0] * 1.0), [torch.zeros(())]
    dist.all_reduce(total)
    dist.all_gather(parts, torch.tensor(2.0))
    dist.reduce(parts[0], 0)
    return x * total * parts[0] * functional.all_reduce(torch.tensor(3.0), "sum", dist.group.WORLD)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_tracing_sends_nothing(backend: str) -> None:
    """Another rank may be running what it has traced before."""

    def sent() -> int:
        return dist.group.WORLD._get_sequence_number_for_group()

    compiled = stator.compile(of_a_number, backend=backend, fullgraph=True)
    for n in (3, 3, 4, 5):
        before = sent()
        assert torch.equal(compiled(torch.ones(n)), torch.full((n,), n * 6.0))
        assert sent() == before + 4


# -- what is constant -------------------------------------------------------------------------------------------------


def facts(x: Any) -> Any:
    world = dist.group.WORLD
    name = dist.get_backend(), dist.is_initialized(), dist.get_process_group_ranks(world)
    return x * dist.get_world_size() + dist.get_rank() + dist.get_global_rank(world, 0), name


def of_mesh(x: Any, mesh: Any) -> Any:
    group = mesh["dp"].get_group()
    numbers = mesh.size(), mesh.ndim, mesh.get_local_rank("dp"), mesh.get_coordinate(), mesh.mesh_dim_names
    y = x * mesh.size()
    dist.all_reduce(y, group=group)
    return y + mesh.get_rank(), numbers, dist.get_world_size(group), mesh.mesh.tolist()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_ranks_and_sizes_are_constants(backend: str) -> None:
    compiled = stator.compile(facts, backend=backend, fullgraph=True)
    for n in (3, 4, 5):
        x = torch.randn(n)
        got, expected = compiled(x), facts(x)
        assert torch.equal(got[0], expected[0]) and got[1] == expected[1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_meshes_are_constants(backend: str) -> None:
    compiled = stator.compile(of_mesh, backend=backend, fullgraph=True)
    for dims in ((1,), (1, 1)):
        mesh = init_device_mesh("cpu", dims, mesh_dim_names=("dp", "tp")[: len(dims)])
        for n in (3, 4):
            x = torch.randn(n)
            got, expected = compiled(x, mesh), of_mesh(x, mesh)
            assert torch.equal(got[0], expected[0]) and got[1:] == expected[1:]


def test_a_group_that_is_made_again_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # pytest listens to loggers that do not propagate: it would break the graph, and keep what the records hold.
    monkeypatch.setattr(c10d_logger._c10d_logger, "handlers", [logging.NullHandler()])

    def reduced(x: Any) -> Any:
        y = x * 2
        dist.all_reduce(y)
        return y + dist.get_world_size(), dist.group.WORLD

    stator.reset()
    compiled = stator.compile(reduced, backend="eager", fullgraph=True)
    x = torch.ones(3)
    first, group = compiled(x)
    assert group is dist.group.WORLD
    gone = weakref.ref(group)
    del group
    dist.destroy_process_group()
    with pytest.raises((ValueError, RuntimeError)):
        compiled(x)
    (tmp_path / "again").mkdir()
    begin(tmp_path / "again")
    second, group = compiled(x)
    assert torch.equal(first, second) and group is dist.group.WORLD and group is not gone()
    gc.collect()
    assert gone() is None
