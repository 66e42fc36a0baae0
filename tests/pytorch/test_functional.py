"""Function transforms, calls with other parameters, contexts, random state: as eager, traced or left alone."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.programs import agree


def leaf(*shape: int) -> Any:
    return torch.randn(*(shape or (3, 4)), requires_grad=True)


def net() -> Any:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def transforms(x: Any) -> Any:
    f = lambda v: (v * v).sum()  # noqa: E731
    return torch.func.vmap(torch.sin)(x), torch.func.grad(f)(x), torch.func.jvp(f, (x,), (x,)), torch.func.vjp(f, x)[0]


def contexts(x: Any) -> Any:
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
    with torch.inference_mode():
        c = x.detach() + 1
    with torch.set_grad_enabled(False):
        d = x + 1
    with torch.autocast("cpu", dtype=torch.bfloat16):
        e = x @ x.T
        with torch.autocast("cpu", enabled=False):
            g = x @ x.T
    with torch.autograd.profiler.record_function("label"), contextlib.nullcontext():
        h = x.sin()
    return a, b, c.sum().item(), d, e, g, h, torch.is_grad_enabled()


@torch.no_grad()
def decorated(x: Any) -> Any:
    return x * 2, torch.is_grad_enabled()


@torch.inference_mode()
def inferred(x: Any) -> Any:
    return x.detach() * 2


def seeded(x: Any) -> Any:
    torch.manual_seed(5)
    a = torch.rand(3)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        b = torch.rand(3)
    return a, b, torch.rand(3), torch.randint(0, 9, (2,)), torch.randperm(4), torch.bernoulli(x.sigmoid().detach())


def generators(x: Any) -> Any:
    own = torch.Generator().manual_seed(3)
    return torch.rand(3, generator=own), torch.randn_like(x.detach()), x.detach().normal_().sum()


def drop(x: Any) -> Any:
    return nn.functional.dropout(x, 0.5), nn.functional.dropout(x, 0.5, training=False), nn.functional.gumbel_softmax(x)


def engine(x: Any) -> Any:
    y = (x * 2).sin()
    y.sum().backward(retain_graph=True)
    (g,) = torch.autograd.grad(y.sum(), x)
    return y.detach() + g, x.grad


def hooks(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return y.exp()


def kept_gradient(x: Any) -> Any:
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    return y.grad


PROGRAMS = {
    f.__name__: f
    for f in (transforms, contexts, decorated, inferred, seeded, generators, drop, engine, hooks, kept_gradient)
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    PROGRAMS[name](leaf())  # torch's warnings on first use
    stats = agree(lambda: (PROGRAMS[name], (leaf(),)), breaks=None, grad=name in ("hooks", "drop"))
    print(name, stats.graphs, [(b.code, b.reason, b.where, b.count) for b in stats.breaks])


def test_functional_call() -> None:
    def make() -> Any:
        module = net()
        params = {k: v.detach() * 2 for k, v in module.named_parameters()}
        return (lambda x: torch.func.functional_call(module, params, (x,))), (leaf(),)

    stats = agree(make, breaks=None, grad=True)
    print(stats.breaks)


@pytest.mark.parametrize(
    "wrap",
    [
        nn.utils.parametrizations.spectral_norm,
        nn.utils.parametrizations.weight_norm,
        nn.utils.parametrizations.orthogonal,
        nn.utils.weight_norm,
        nn.utils.spectral_norm,
    ],
)
def test_parametrized(wrap: Any) -> None:
    stats = agree(lambda: (nn.Sequential(wrap(nn.Linear(4, 4)), nn.ReLU()), (leaf(),)), breaks=None, grad=True, calls=3)
    print(wrap.__name__, stats.graphs, stats.breaks, stats.recompile_log)


def test_parametrization_of_the_user() -> None:
    class Symmetric(nn.Module):
        def forward(self, w: Any) -> Any:
            return w.triu() + w.triu(1).T

    def make() -> Any:
        layer = nn.Linear(4, 4)
        nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
        return layer, (leaf(),)

    agree(make, grad=True)

    def cached() -> Any:
        layer, args = make()

        def run(x: Any) -> Any:
            with nn.utils.parametrize.cached():
                return layer(x) + layer(x)

        return run, args

    agree(cached, grad=True, breaks=None)


def test_pytrees() -> None:
    import torch.utils._pytree as pytree

    def run(x: Any) -> Any:
        tree = {"a": [x, x + 1], "b": (x * 2, {"c": 3})}
        flat, spec = pytree.tree_flatten(tree)
        back = pytree.tree_unflatten([t * 2 for t in flat], spec)
        return back, pytree.tree_map(lambda t: t + 1, tree), len(flat)

    stats = agree(lambda: (run, (leaf(),)), breaks=None)
    print(stats.breaks)


def test_einops() -> None:
    einops = pytest.importorskip("einops")

    def run(x: Any) -> Any:
        a = einops.rearrange(x, "(b c) d -> b d c", c=3)
        b = einops.einsum(x, x, "a b, c b -> a c")
        return a, b, einops.reduce(x, "a b -> a", "mean"), einops.repeat(x, "a b -> a b r", r=2)

    agree(lambda: (run, (leaf(),)), grad=True)
    stator.reset()
    compiled = stator.compile(run, backend="eager", fullgraph=True)
    for n in (3, 6, 9, 12):
        assert torch.equal(compiled(x := leaf(n, 4))[0], run(x)[0])
    assert stator.stats().frames == 2
