"""`torch.vmap` in compiled functions: one node, of the graph of one example."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import stator
from tests.pytorch.programs import agree

backends = pytest.mark.parametrize("backend", ["eager", "aot_eager"])
WEIGHT = torch.arange(12.0).view(3, 4)


def x(n: int = 3) -> Any:
    return torch.randn(n, 4)


def nested(a: Any) -> Any:
    causal = torch.vmap(torch.vmap(lambda i, j: (i <= j) & (a[0, 0] > 0), in_dims=(None, 0)), in_dims=(0, None))
    return causal(torch.arange(4), torch.arange(5))


def filled(row: Any) -> Any:
    made = row.clone()
    made[0] = 1.0
    return made.mul_(2)


MAPPED: dict[str, Any] = {
    "a reduction": lambda a: torch.vmap(lambda row: (row * 2).sum())(a),
    "a function of torch's": lambda a: torch.vmap(torch.dot)(a, a + 1),
    "dimensions": lambda a: torch.vmap(lambda r, s: r * s, in_dims=(1, None), out_dims=1)(a, a[:, 0]),
    "negative dimensions": lambda a: torch.vmap(lambda r: r + 1, in_dims=-1, out_dims=-1)(a),
    "several results": lambda a: torch.vmap(lambda r: (r + 1, [r.mean(), r.sum()]))(a),
    "structures": lambda a: torch.vmap(lambda p, q: p[0] * p[1] + q, in_dims=([0, None], 0))([a, a[0]], a),
    "outer tensors": lambda a: torch.vmap(lambda r: r @ WEIGHT.t() + a.sum())(a),
    "a result of the outside": lambda a: torch.vmap(lambda r: WEIGHT[0])(a),
    "keywords": lambda a: torch.vmap(lambda r, s: r * s)(a, s=2.0),
    "dicts": lambda a: torch.vmap(lambda d: {"sum": d["p"].sum() + d["q"]})({"p": a, "q": a[:, 0]}),
    "dicts with dimensions": lambda a: torch.vmap(lambda d: d["p"] * d["q"], ({"p": 0, "q": None},))({"p": a, "q": a}),
    "random numbers": lambda a: torch.vmap(lambda r: r + torch.rand(4), randomness="different")(a),
    "the same random numbers": lambda a: torch.vmap(lambda r: torch.dropout(r, 0.5, True), randomness="same")(a),
    "a write to an example": lambda a: torch.vmap(lambda r: r.add_(1))(a * 1),
    "writes to what it makes": lambda a: torch.vmap(filled)(a),
    "chunks": lambda a: torch.vmap(lambda r: r.sum(), chunk_size=2)(a),
    "cond": lambda a: torch.vmap(lambda r: torch.cond(r.sum() > 0, lambda r: r * 2, lambda r: r - 1, (r,)))(a),
    "nested": nested,
}


@backends
@pytest.mark.parametrize("name", MAPPED)
def test_mapped_functions(name: str, backend: str) -> None:
    agree(lambda: (MAPPED[name], (x(),)), backend=backend, graphs=1, rtol=1e-5)


def test_gradients_pass_through() -> None:
    for backend in ("eager", "aot_eager"):
        make = lambda: (MAPPED["outer tensors"], (x().requires_grad_(),))  # noqa: E731
        agree(make, grad=True, backend=backend, rtol=1e-5)


def jacobian(a: Any, chunk: int | None = None, **options: Any) -> Any:
    y = (a**3).sum(1)
    rows = torch.vmap(lambda v: torch.autograd.grad(y, a, v, **options)[0], chunk_size=chunk)(torch.eye(len(y)))
    return rows.sin() if options else (rows, (a * 2).sum())


@backends
@pytest.mark.parametrize("program", [jacobian, lambda a: jacobian(a, 2, retain_graph=True, create_graph=True)])
def test_gradients_of_what_is_computed_outside(program: Any, backend: str) -> None:
    agree(lambda: (program, (x().requires_grad_(),)), grad=True, backend=backend, graphs=1, rtol=1e-5)


def test_sizes_may_vary_and_be_zero() -> None:
    stator.reset()
    compiled = stator.compile(lambda a: torch.vmap(lambda r: r * 2)(a), backend="eager", fullgraph=True)
    for n in (3, 4, 5, 6, 0):
        a = x(n)
        assert torch.equal(compiled(a), a * 2)
    assert stator.stats().graphs == 3


LEFT: dict[str, Any] = {
    "a branch": lambda a: torch.vmap(lambda r: r.sum() if r.sum() > 0 else r.mean())(a),
    "sizes that differ": lambda a: torch.vmap(torch.dot)(a, a[:2]),
    "a number": lambda a: torch.vmap(lambda r: 3)(a),
    "no random numbers allowed": lambda a: torch.vmap(lambda r: r + torch.rand(4))(a),
    "dimensions of other structures": lambda a: torch.vmap(lambda r: r, in_dims=((0, 1),))(a),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_torch(name: str) -> None:
    stats = agree(lambda: (LEFT[name], (x(),)), breaks=1)
    assert stats.breaks[0].code == "SB0208" and "torch.func.vmap" in stats.breaks[0].reason


@backends
def test_the_function_is_called_once_so_its_effects_are_performed(backend: str) -> None:
    def make() -> Any:
        seen: list[int] = []

        def program(a: Any) -> Any:
            return torch.vmap(lambda r: (seen.append(r.shape[0]), r + 1)[1])(a), list(seen)

        return program, (x(),)

    agree(make, backend=backend)


@backends
def test_writes_reach_the_tensors_outside(backend: str) -> None:
    def make() -> Any:
        total = torch.zeros(())
        return lambda a: (torch.vmap(lambda r: (total.add_(1), r * total)[1])(a), total), (x(),)

    agree(make, backend=backend, graphs=1)
    agree(lambda: (lambda a: torch.vmap(lambda r: r.add_(1))(a), (x(),)), backend=backend, graphs=1)


def test_a_tensor_that_escapes_leaves_the_call_to_torch() -> None:
    def make() -> Any:
        seen: list[Any] = []

        def program(a: Any) -> Any:
            result = torch.vmap(lambda r: (seen.append(r * 2), r + 1)[1])(a)
            return result, len(seen), type(seen[0])

        return program, (x(),)

    agree(make, breaks=None)


def test_inductor() -> None:
    agree(lambda: (MAPPED["outer tensors"], (x(),)), backend="inductor", rtol=1e-5)
