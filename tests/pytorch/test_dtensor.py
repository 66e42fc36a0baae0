"""Distributed tensors in one process: traced as other wrappers are, with placements as constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    init_device_mesh,
)
from torch.distributed.tensor.experimental import implicit_replication
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module
from torch.distributed.tensor.parallel import loss as losses

import stator
from tests.pytorch.programs import assert_same


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[Any]:
    """The mesh of this process alone."""
    stator.reset()
    made = not dist.is_initialized()
    if made:
        dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    if made:
        dist.destroy_process_group()


def shown(made: Any) -> Any:
    """What is to be compared: distributed tensors by their placements and what they hold here."""
    if isinstance(made, tuple):
        return tuple(map(shown, made))
    return (made.placements, made.device_mesh, made.to_local()) if isinstance(made, DTensor) else made


def whole(made: Any) -> Any:
    return made.full_tensor() if isinstance(made, DTensor) else made


def redistributed(mesh: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        made = DTensor.from_local(x, mesh, [Shard(0)], run_check=False) * 2
        return made.redistribute(mesh, [Replicate()]).to_local()

    return f


def summed(mesh: Any) -> Callable[..., Any]:
    return lambda x: DTensor.from_local(x, mesh, [Partial()]).redistribute(mesh, [Replicate()]).to_local().sin()


def asked(mesh: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        made = DTensor.from_local(x, mesh, [Shard(0)]) * 2
        placement = made.placements[0]
        if made.placements == (Shard(0),) and placement.is_shard() and isinstance(placement, Shard):
            made = made + placement.dim + made.device_mesh.ndim
        assert Shard(1) != Replicate() and hash(Shard(1)) == hash(Shard(dim=1)) and Partial("max").reduce_op == "max"
        return made.to_local(), str(placement)

    return f


def without_gradients(mesh: Any) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        made = DTensor.from_local(x, mesh, [Replicate()])
        with torch.no_grad():
            return (made * 2).to_local(), made._local_tensor + 1

    return f


def full(mesh: Any) -> Callable[..., Any]:
    return lambda x: DTensor.from_local(x, mesh, [Shard(0)]).sum(0).full_tensor()


def linear(mesh: Any) -> Callable[..., Any]:
    layer = distribute_module(nn.Linear(3, 4), mesh)
    return lambda x: layer(DTensor.from_local(x, mesh, [Replicate()])).to_local()


def parallel(mesh: Any) -> Callable[..., Any]:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    return parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


def given_back(mesh: Any) -> Callable[..., Any]:
    """Results hold the mesh, which the graph is given."""

    def f(x: Any) -> Any:
        made = DTensor.from_local(x, mesh, [Shard(0)])
        return made * 2, made, made.redistribute(mesh, [Replicate()])

    return f


PROGRAMS = [redistributed, summed, asked, without_gradients, full, linear, parallel, given_back]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_a_program_on_distributed_tensors_is_one_graph(mesh: Any, make: Callable[..., Any], backend: str) -> None:
    program = make(mesh)
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for rows in (4, 5, 7):
        x, y = (torch.arange(3.0 * rows).reshape(rows, 3).requires_grad_() for _ in range(2))
        wanted, found = program(x), compiled(y)
        assert_same(shown(found), shown(wanted), f"{rows} rows", rtol=1e-5)
        if make is not without_gradients:
            for made in (wanted, found):
                parts = [
                    part for part in (made if isinstance(made, tuple) else (made,)) if isinstance(part, torch.Tensor)
                ]
                sum(whole(part).sum() for part in parts).backward()  # type: ignore[union-attr]
            torch.testing.assert_close(y.grad, x.grad)
    assert stator.stats().graphs <= 2


def test_inductor_compiles_one(mesh: Any) -> None:
    program = parallel(mesh)
    x = torch.randn(4, 3)
    torch.testing.assert_close(stator.compile(program, backend="inductor", fullgraph=True)(x), program(x))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_distributed_tensors_are_inputs_and_results(mesh: Any, backend: str) -> None:
    def f(d: Any) -> Any:
        return (d * 2).sin()

    compiled = stator.compile(f, backend=backend, fullgraph=True)
    for rows in (4, 5, 7):
        given = distribute_tensor(torch.randn(rows, 3), mesh, [Shard(0)])
        found = compiled(given)
        assert found.placements == f(given).placements
        torch.testing.assert_close(found.to_local(), f(given).to_local())
    assert stator.stats().graphs <= 3  # their sizes are part of how they are taken apart


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_they_go_on_behind_a_break(mesh: Any, backend: str) -> None:
    def f(x: Any) -> Any:
        made = DTensor.from_local(x, mesh, [Shard(0)])
        stator.graph_break()
        return (made * 2).full_tensor()

    compiled = stator.compile(f, backend=backend)
    for rows in (4, 5, 7):
        x = torch.randn(rows, 3, requires_grad=True)
        found = compiled(x)
        found.sum().backward()
        assert torch.equal(found, x * 2) and torch.equal(x.grad, torch.full_like(x, 2.0))


def steps(mesh: Any, compile: Callable[..., Any]) -> list[Any]:
    """What training steps show that are compiled with their backward pass, clipping and optimizer."""
    torch.manual_seed(0)
    model = parallel(mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        for scale in (1, 2):
            loss = model(x * scale).square().mean()
            loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        gradients = [whole(parameter.grad).clone() for parameter in model.parameters()]
        optimizer.step()
        return loss.detach(), whole(norm), *gradients

    step = compile(step)
    made = [step(torch.arange(3.0 * rows).reshape(rows, 3) / rows) for rows in (4, 4, 5, 7)]
    return [*made, tuple(whole(parameter).detach() for parameter in model.parameters())]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_training_step_is_one_graph(mesh: Any, backend: str) -> None:
    found = steps(mesh, lambda step: stator.compile(step, backend=backend, fullgraph=True))
    assert_same(found, steps(mesh, lambda step: step), "steps", rtol=1e-5)
    assert stator.stats().graphs <= 3  # the first makes the momenta, and then the sizes vary


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients_in_the_memory_of_others_are_left_to_torch(mesh: Any, backend: str) -> None:
    """The gradient of a sum holds what came to it."""

    def f(x: Any) -> Any:
        weight.grad = None
        (DTensor.from_local(x, mesh, [Shard(0)]) + weight).to_local().backward(x)
        return weight.grad.to_local() * 1

    weight = nn.Parameter(distribute_tensor(torch.ones(4, 3), mesh, [Shard(0)]))
    compiled = stator.compile(f, backend=backend)
    for _ in range(3):
        x = torch.randn(4, 3)
        assert torch.equal(compiled(x), x)
    assert {record.code for record in stator.stats().breaks} == {"SB0205"}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_nobody_asks_for_the_gradient_of_a_result(mesh: Any, backend: str) -> None:
    def f(x: Any) -> Any:
        made = DTensor.from_local(x, mesh, [Shard(0)]).sin()
        return made * 2, x.cos(), made.sum(), made.to_local() + 1

    compiled = stator.compile(f, backend=backend, fullgraph=True)
    for rows, asked in ((4, 0), (5, 1), (7, 2), (7, 3), (8, 0)):
        x, y = (torch.arange(3.0 * rows).reshape(rows, 3).requires_grad_() for _ in range(2))
        for given, function in ((x, f), (y, compiled)):
            whole(function(given)[asked]).sum().backward()
        torch.testing.assert_close(y.grad, x.grad)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_what_it_holds_is_a_view_of_what_has_been_written(mesh: Any, backend: str) -> None:
    """As where tensor-parallel modules are in DDP: autograd knows nothing of the view, and asks when it is saved."""

    def train(compile: Callable[..., Any]) -> list[Any]:
        torch.manual_seed(0)
        weight, other = nn.Parameter(torch.randn(3, 3)), nn.Parameter(torch.randn(3))
        spread = DTensor.from_local(weight, mesh, [Replicate()])
        f = compile(lambda x: (DTensor.from_local(x * other, mesh, [Replicate()]) * spread).to_local().sin())
        found = []
        for rows in (3, 3, 5, 2):
            made = f(torch.arange(9.0 * rows).view(rows, 3, 3) / 9 / rows)
            made.sum().backward()
            found += [made.detach(), *(p.grad.clone() for p in (weight, other))]
            with torch.no_grad():
                for parameter in weight, other:
                    parameter -= 0.1 * parameter.grad
        return found

    found = train(lambda f: stator.compile(f, backend=backend, fullgraph=True))
    torch.testing.assert_close(found, train(lambda f: f), rtol=1e-4, atol=1e-5)
    assert stator.stats().graphs == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_results_hold_real_meshes(mesh: Any, backend: str) -> None:
    """torch remembers placements by equal meshes: neither those of before nor a backend's stand-ins get out."""

    def f(x: Any) -> Any:
        return (DTensor.from_local(x, outer["inner"], [Shard(0)]) * 5).sin()

    outer = init_device_mesh("cpu", (1, 1), mesh_dim_names=("outer", "inner"))
    for _ in range(2):
        stator.reset()
        for rows in (4, 5):
            x = torch.randn(rows, 3, requires_grad=True)
            found = stator.compile(f, backend=backend, fullgraph=True)(x)
            found.to_local().sum().backward()
            torch.testing.assert_close(x.grad, 5 * (5 * x.detach()).cos())
            gradient = f(x).cos()
            assert type(found.device_mesh) is type(gradient.device_mesh) is type(mesh)


def test_another_placement_is_another_graph(mesh: Any) -> None:
    def f(d: Any, placement: Any) -> Any:
        return d.redistribute(placements=[placement]).to_local() * (2 if placement.is_shard() else 3)

    compiled = stator.compile(f, backend="eager", fullgraph=True)
    for before, after in ((Shard(0), Shard(1)), (Shard(0), Replicate()), (Replicate(), Shard(1)), (Shard(1), Shard(1))):
        given = distribute_tensor(torch.ones(4, 4), mesh, [before])
        torch.testing.assert_close(compiled(given, after), f(given, after))


def test_the_inside_of_a_result_is_part_of_the_graph(mesh: Any) -> None:
    def f(d: Any) -> Any:
        made = d + 1
        return made._spec.placements, made._local_tensor * 2, made._local_tensor is made._local_tensor, d._spec.mesh

    compiled = stator.compile(f, backend="eager", fullgraph=True)
    for rows in (4, 7):
        given = distribute_tensor(torch.ones(rows, 3), mesh, [Shard(0)])
        placements, inner, same, of = compiled(given)
        assert placements == (Shard(0),) and same and of is mesh
        torch.testing.assert_close(inner, torch.full((rows, 3), 4.0))


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return whole(function(*args))
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_handles_operations_is_guarded(mesh: Any, backend: str, first: bool) -> None:
    """Contexts of torch's change it. What was compiled inside of one is not used outside, nor the other way round."""

    def add(x: Any, y: Any) -> Any:
        return (x + y).sin()

    compiled = stator.compile(add, backend=backend)
    for n in (2, 3, 5):
        x, y = distribute_tensor(torch.randn(n, 2), mesh, [Shard(0)]), torch.randn(n, 2)
        for inside in (first, not first):
            if inside:
                with implicit_replication():
                    assert torch.equal(outcome(compiled, x, y), outcome(add, x, y))
            else:
                assert "mixed torch.Tensor and DTensor" in outcome(compiled, x, y)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_table_of_handlers_is_guarded(mesh: Any, backend: str) -> None:
    """Losses that are computed in parallel take plain targets."""
    compiled = stator.compile(nn.functional.cross_entropy, backend=backend)
    for n in (4, 5, 6):
        x, target = distribute_tensor(torch.randn(n, 6), mesh, [Shard(1)]), torch.arange(n)
        assert "mixed torch.Tensor and DTensor" in outcome(compiled, x, target)
        x.requires_grad_()
        gradients = []
        for function in (nn.functional.cross_entropy, compiled):
            with loss_parallel():
                function(x, target).backward()
            gradients.append(whole(x.grad).clone())
            x.grad = None
        torch.testing.assert_close(*gradients)
        assert "mixed torch.Tensor and DTensor" in outcome(compiled, x.detach(), target)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_handlers_that_the_program_sets_are_called(mesh: Any, backend: str, monkeypatch: Any) -> None:
    """The table is changed when the graph has run: what it is for is no operation of that graph."""
    softmax = torch.ops.aten._log_softmax.default
    handler = losses.customized_loss_ops[softmax]
    calls: list[Any] = []

    def counting(*args: Any) -> Any:
        calls.append(args[0])
        return handler(*args)

    monkeypatch.setitem(losses.customized_loss_ops, softmax, counting)

    def f(x: Any, target: Any) -> Any:
        y = x * 2
        with loss_parallel():
            return nn.functional.cross_entropy(y, target)

    compiled = stator.compile(f, backend=backend)
    for n in (4, 5, 6):
        x = distribute_tensor(torch.randn(n, 6), mesh, [Shard(1)])
        target = distribute_tensor(torch.arange(n), mesh, [Replicate()])
        calls.clear()
        found = whole(compiled(x, target))
        # A backend that takes the tensors apart calls handlers while it compiles.
        assert len(calls) >= 1 or backend != "eager"
        torch.testing.assert_close(found, whole(f(x, target)))
    assert any("has been changed by the program" in record.reason for record in stator.stats().breaks)


def replicated_inside(x: Any, target: Any) -> Any:
    with implicit_replication():
        y = x * torch.ones(6)
    return y.sin()


def replicated_and_differentiated(x: Any, target: Any) -> Any:
    with implicit_replication():
        loss = (x * torch.arange(6.0)).sin().sum()
        loss.backward()
    return loss.detach()


def loss_inside(x: Any, target: Any) -> Any:
    y = x * 2
    with loss_parallel():
        loss = nn.functional.cross_entropy(y, target)
    return loss * 2


def differentiated_inside(x: Any, target: Any) -> Any:
    y = x * 2
    with loss_parallel():
        loss = nn.functional.cross_entropy(y, target)
        loss.backward()
    return loss.detach()


def in_both(x: Any, target: Any) -> Any:
    with loss_parallel(), implicit_replication():
        loss = nn.functional.cross_entropy(x * torch.ones(6), target)
        loss.backward()
    return loss.detach() + 1


INSIDE = (replicated_inside, replicated_and_differentiated, loss_inside, differentiated_inside, in_both)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", INSIDE)
def test_contexts_that_are_entered_inside_are_part_of_the_graph(mesh: Any, program: Any, backend: str) -> None:
    """Also where the caller asks for gradients in such a context, or for none."""
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for n in (4, 4, 5, 6):
        for ask in (False, True):
            found = []
            for function in (program, compiled):
                torch.manual_seed(n)
                x = distribute_tensor(torch.randn(n, 6), mesh, [Shard(1)]).requires_grad_()
                made = function(x, torch.arange(n))
                if ask and made.requires_grad:
                    with loss_parallel(), implicit_replication():
                        made.sum().backward()
                found.append((whole(made).detach(), None if x.grad is None else whole(x.grad)))
                assert not DTensor._op_dispatcher._allow_implicit_replication
                assert not losses.customized_loss_ops.keys() & DTensor._op_dispatcher._custom_op_handlers.keys()
            torch.testing.assert_close(*found)
    assert stator.stats().graphs <= 3


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_break_inside_of_such_a_context(mesh: Any, backend: str) -> None:
    def f(x: Any, target: Any) -> Any:
        with loss_parallel(), implicit_replication():
            y = x * torch.ones(6)
            stator.graph_break()
            loss = nn.functional.cross_entropy(y, target)
            loss.backward()
        return loss.detach()

    compiled = stator.compile(f, backend=backend)
    for n in (4, 5, 6):
        found = []
        for function in (f, compiled):
            torch.manual_seed(n)
            x = distribute_tensor(torch.randn(n, 6), mesh, [Shard(1)]).requires_grad_()
            found.append((whole(function(x, torch.arange(n))), whole(x.grad)))
            assert not DTensor._op_dispatcher._allow_implicit_replication
            assert not losses.customized_loss_ops.keys() & DTensor._op_dispatcher._custom_op_handlers.keys()
        torch.testing.assert_close(*found)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_such_a_context_ends_where_an_error_leaves_it(mesh: Any, backend: str) -> None:
    def f(x: Any, y: Any) -> Any:
        with implicit_replication():
            return (x * torch.ones(6)) @ y

    compiled = stator.compile(f, backend=backend)
    for n in (4, 5):
        x = distribute_tensor(torch.randn(n, 6), mesh, [Shard(1)])
        for rows in (6, 7):
            assert_same(outcome(compiled, x, torch.ones(rows, 2)), outcome(f, x, torch.ones(rows, 2)), str(rows))
            assert not DTensor._op_dispatcher._allow_implicit_replication
