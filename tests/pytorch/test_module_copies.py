"""Copies of compiled modules, and of modules that hold compiled functions and modules."""

from __future__ import annotations

import copy
import dataclasses
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import stator
from stator._core import Compiled
from stator.pytorch.modules.compiled_module import is_compiled_module


def activation(x: Any) -> Any:
    return x.relu() + 1


class Net(nn.Module):
    def __init__(self, backend: str = "eager") -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.inner = stator.compile(nn.Linear(2, 2), backend=backend)
        self.activation = stator.compile(activation, backend=backend)
        self.own = stator.compile(self.through, backend=backend)

    def through(self, x: Any) -> Any:
        return self.linear(x) * 2

    def forward(self, x: Any) -> Any:
        return self.activation(self.inner(self.linear(x)))


def saved(module: Any) -> Any:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def pickled(module: Any) -> Any:
    return pickle.loads(pickle.dumps(module))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("way", [copy.deepcopy, pickled, saved])
def test_a_copy_shares_nothing(way: Callable[[Any], Any], compiled: bool, backend: str) -> None:
    model: Any = Net(backend)
    if compiled:
        model = stator.compile(model, backend=backend)
    x = torch.randn(3, 2, requires_grad=True)
    expected = model(x)
    made = way(model)
    assert type(made) is type(model) and is_compiled_module(made) is compiled and is_compiled_module(made.inner)
    assert type(made.activation) is Compiled and made.activation is not model.activation
    assert torch.equal(made(x), expected) and torch.equal(made.own(x), model.own(x))
    assert list(made.state_dict()) == list(model.state_dict())
    mine = {id(t) for t in [*made.parameters(), *made.buffers()]}
    assert len(mine) == 4 and mine.isdisjoint(id(t) for t in model.parameters())
    made(x).sum().backward()
    assert all(p.grad is None for p in model.parameters()) and made.linear.weight.grad is not None
    with torch.no_grad():
        made.linear.weight.zero_()
    assert torch.equal(model(x), expected) and not torch.equal(made(x), expected)
    assert torch.equal(made.own(x), made.through(x))


def test_a_shallow_copy_shares_parameters() -> None:
    model = stator.compile(Net(), backend="eager")
    made = copy.copy(model)
    assert is_compiled_module(made) and made._orig_mod is not model._orig_mod
    assert [*map(id, made.parameters())] == [*map(id, model.parameters())]
    x = torch.ones(1, 2)
    assert torch.equal(made(x), model(x))
    assert made._stator_region is not model._stator_region


def test_a_module_that_refers_to_its_own_compiled_module() -> None:
    model = nn.Linear(2, 2)
    compiled = stator.compile(model, backend="eager")
    object.__setattr__(model, "compiled", compiled)
    for way in (copy.deepcopy, pickled):
        made = way(compiled)
        assert made.compiled is made and made._orig_mod is not model
        original = way(model)
        assert original.compiled._orig_mod is original


def test_loaded_state() -> None:
    model, other = (stator.compile(Net(), backend="eager") for _ in range(2))
    other.load_state_dict(saved(model.state_dict()))
    x = torch.ones(1, 2)
    assert torch.equal(model(x), other(x))


def test_copied_inside_of_a_compiled_function() -> None:
    model = stator.compile(Net(), backend="eager")

    def program(x: Any) -> Any:
        made = copy.deepcopy(model)
        return made(x), made.linear.weight is model.linear.weight

    result, shared = stator.compile(program, backend="eager")(torch.ones(1, 2))
    assert torch.equal(result, model(torch.ones(1, 2))) and not shared


def best_weights(x: torch.Tensor, net: nn.Module, kept: dict[str, Any]) -> torch.Tensor:
    y = net(x)
    kept["best"] = copy.deepcopy(net.state_dict())
    return y * 2


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(2, 2)
        self.other = nn.Linear(2, 2)
        self.other.weight = self.one.weight
        self.register_buffer("seen", torch.zeros(3))
        self.register_buffer("part", self.seen[1:])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        return self.other(self.one(x))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("make", "breaks"), [(lambda: nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), 0), (Tied, 1)]
)
def test_a_copy_of_the_best_weights(make: Callable[[], nn.Module], breaks: int, backend: str) -> None:
    torch.manual_seed(0)
    net = make()
    other = copy.deepcopy(net)
    compiled = stator.compile(best_weights, backend=backend)
    kept, expected = dict[str, Any](), dict[str, Any]()
    for rows in (2, 3, 5):
        x, y = (torch.ones(rows, 2, requires_grad=True) for _ in range(2))
        result, plain = compiled(x, net, kept), best_weights(y, other, expected)
        assert torch.equal(result, plain)
        mine, theirs = kept["best"], expected["best"]
        assert list(mine) == list(theirs) and mine._metadata == theirs._metadata
        assert all(torch.equal(mine[name], theirs[name]) and not mine[name].requires_grad for name in theirs)
        result.sum().backward()
        plain.sum().backward()
        assert torch.equal(x.grad, y.grad)  # type: ignore[arg-type]
        for parameters in (net.parameters(), other.parameters()):
            with torch.no_grad():
                next(parameters).mul_(2)
        assert all(torch.equal(mine[name], theirs[name]) for name in theirs), "as they were when they were kept"
        for state in (mine, theirs):  # whether two names are of one storage
            first = next(iter(state.values())).fill_(7)
            assert first.eq(7).all()
        assert all(torch.equal(mine[name], theirs[name]) for name in theirs)
    assert bool(stator.stats().graph_breaks) == bool(breaks)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_copy_of_what_is_detached_and_of_what_it_was(backend: str) -> None:
    def both(p: nn.Parameter, made: torch.Tensor) -> Any:
        y = made * 2
        z = y.detach()
        first = copy.deepcopy([p.detach(), p])
        second = copy.deepcopy((z, y.t() if y.dim() == 2 else y.detach()))
        third = copy.deepcopy(y.detach())
        first[0].add_(1)
        second[0].add_(1)
        return first, second, third.t(), z

    compiled = stator.compile(both, backend=backend)
    for rows in (2, 3, 5):
        p, x = nn.Parameter(torch.ones(rows, 2)), torch.arange(2.0 * rows).view(rows, 2)
        results, expected = compiled(p, x), both(p, x)
        assert str(results) == str(expected)
        assert results[2].stride() == expected[2].stride()


@dataclasses.dataclass
class Cache:
    keys: torch.Tensor
    steps: int = 0
    sizes: list[int] = dataclasses.field(default_factory=list)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_copy_that_cannot_be_captured_is_one_break(backend: str) -> None:
    """Not one in each of the calls inside, whose memo has other ids for keys each time."""

    def step(x: torch.Tensor, cache: Cache) -> Any:
        y = x * 2
        cache.steps += 1
        cache.sizes.append(len(x))
        kept = dataclasses.asdict(cache)
        return y + kept["keys"].sum(), kept["sizes"]

    compiled = stator.compile(step, backend=backend)
    for rows in (2, 2, 3, 3, 3, 5, 2, 3, 5):
        caches = [Cache(torch.arange(8.0)[3:]) for _ in range(2)]  # a view: its storage holds more
        (found, sizes), (expected, others) = compiled(torch.ones(rows), caches[0]), step(torch.ones(rows), caches[1])
        assert torch.equal(found, expected) and sizes == others and caches[0].sizes == sizes
    assert {brk.reason.split(" meets")[0] for brk in stator.stats().breaks} == {"call of copy.deepcopy"}
    assert len(stator.stats().recompile_log) <= 4
