"""`torch.cond` and `switch`: the branches are graphs, one node chooses, and gradients flow through the chosen one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.gradients import BACKENDS, alike, each_once, plain, vector

try:
    from torch._higher_order_ops.switch import switch
except ImportError:  # torch 2.13
    switch = None

backends = pytest.mark.parametrize("backend", BACKENDS)


def program(make: Any) -> Any:
    """Builds a program of a function of `x` and of a weight, a leaf whose gradient is compared."""

    def built() -> Any:
        w = torch.full((), 3.0, requires_grad=True)
        return lambda x: make(x, w), [w]

    return built


def module() -> Any:
    torch.manual_seed(0)
    inner = nn.Linear(1, 1)

    def forward(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: inner(x[:, None]), lambda x: inner(x[:, None]) - 1, (x,))

    return forward, list(inner.parameters())


def nested(x: Any, w: Any) -> Any:
    inner = lambda x: torch.cond(x[0] > 1, lambda x: x * w, lambda x: x - w, (x,))  # noqa: E731
    return torch.cond(x.sum() > 0, inner, lambda x: x / w, (x,))


def in_the_callers_frame(x: Any, w: Any) -> Any:
    y = x * 2

    def more(x: Any) -> Any:
        return x * y + w

    return torch.cond(x.sum() > 0, more, lambda x: x - y, (x,)) + y


CAPTURED: dict[str, Any] = {
    "what is captured": program(lambda x, w: torch.cond(x.sum() > 0, lambda x: x * w, lambda x: x - w, (x,)) * 2),
    "locals": program(in_the_callers_frame),
    "parameters": module,
    "no operands": program(lambda x, w: torch.cond(x.sum() < 0, lambda: x * w, lambda: x - w)),
    "structures": program(
        lambda x, w: torch.cond(x.sum() > 0, lambda d: {"a": [d["k"] * w]}, lambda d: {"a": [d["k"] - w]}, ({"k": x},))
    ),
    "a condition of sizes": program(lambda x, w: torch.cond(x.shape[0] > 3, lambda x: x * w, lambda x: x - w, (x,))),
    "sizes inside": program(
        lambda x, w: torch.cond(x.sum() > 0, lambda x: x * x.shape[0], lambda x: x.new_ones(x.shape[0]) * w, (x,))
    ),
    "a known condition": program(lambda x, w: torch.cond(True, lambda x: x * w, lambda x: [x], (x,))),
    "nested": program(nested),
    "a view of what it makes": program(
        lambda x, w: torch.cond(x.sum() > 0, lambda x: (x * w).view(-1, 1), lambda x: (x - w).view(-1, 1), (x,))
    ),
    "a write to what it makes": program(
        lambda x, w: torch.cond(x.sum() > 0, lambda x: (x * w).add_(1), lambda x: x - w, (x,))
    ),
    "mapped": program(
        lambda x, w: torch.vmap(lambda r: torch.cond(r > 1, lambda r: r.sin(), lambda r: r * w, (r,)))(x)
    ),
}


@pytest.mark.parametrize(("inputs", "backend"), each_once(plain, vector))
@pytest.mark.parametrize("name", CAPTURED)
def test_branches_are_graphs(name: str, inputs: Any, backend: str) -> None:
    alike(CAPTURED[name], inputs, backend=backend, calls=1, breaks=0, tolerance=1e-6)


def test_one_node_holds_both_branches() -> None:
    seen: list[Any] = []
    compiled = stator.compile(CAPTURED["what is captured"]()[0], backend=lambda gm, _: seen.append(gm) or gm.forward)
    compiled(torch.ones(3))
    (node,) = [node for node in seen[0].graph.nodes if node.target is torch.ops.higher_order.cond]
    _, true, false, operands = node.args
    assert true.op == false.op == "get_attr"
    assert [operand.op for operand in operands] == ["placeholder", "placeholder"]


@backends
def test_ints_may_differ(backend: str) -> None:
    def make() -> Any:
        def number(x: Any) -> Any:
            y, n = torch.cond(x.sum() > 0, lambda x: (x + 1, 3), lambda x: (x - 1, 4), (x,))
            return y * n, n

        return number, []

    for inputs in (plain, lambda n: (-plain(n)[0],)):
        alike(make, inputs, backend=backend, breaks=0)


def test_the_other_branch_is_taken_by_the_same_entry() -> None:
    function, _ = CAPTURED["what is captured"]()
    stator.reset()
    compiled = stator.compile(function, backend="eager", fullgraph=True)
    for x in (torch.ones(3), -torch.ones(3)):
        assert torch.equal(compiled(x), function(x))
    assert stator.stats().graphs == 1


#: the reason names what torch refuses, too: it raises in eager
LEFT: dict[str, tuple[Any, str]] = {
    "an operand is given": (lambda x, w: (lambda x: x, lambda x: x - w), "gives one of its inputs"),
    "a tensor twice": (lambda x, w: (lambda x: [x * w] * 2, lambda x: [x - w, x + w]), "more than once"),
    "another structure": (lambda x, w: (lambda x: {"a": x * w}, lambda x: [x - w]), "another structure"),
    "another kind": (lambda x, w: (lambda x: x * w, lambda x: 3), "gives"),
    "a write to an operand": (lambda x, w: (lambda x: x.add_(1), lambda x: x - w), "writes to a tensor"),
    "an error": (lambda x, w: (lambda x: x * w, lambda x: x[None, 0, 0, 0]), "raises"),
}


@backends
@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_torch(name: str, backend: str) -> None:
    functions, why = LEFT[name]
    make = program(lambda x, w: torch.cond(x.sum() > 0, *functions(x, w), (x * 2,)))
    stats = alike(make, backend=backend, sizes=(3,), calls=1)
    assert {b.code for b in stats.breaks} == {"SB0208"} and why in stats.breaks[0].reason


def test_objects_around_are_not_changed_by_both() -> None:
    def made_here(x: Any) -> Any:
        seen = [0]
        return torch.cond(
            x.sum() > 0, lambda x: (seen.append(1), x + 1)[1], lambda x: (seen.append(2), x)[1], (x,)
        ), seen

    def variable(x: Any) -> Any:
        n = 0

        def counted(x: Any) -> Any:
            nonlocal n
            n += 1
            return x + 1

        return torch.cond(x.sum() > 0, counted, lambda x: x - 1, (x,)), n

    def iterator(x: Any) -> Any:
        items = iter([1, 2, 3])
        return torch.cond(x.sum() > 0, lambda x: x + next(items), lambda x: x - next(items), (x,)), next(items)

    def generator(x: Any) -> Any:
        g = torch.Generator().manual_seed(1)
        draw = lambda: torch.rand(3, generator=g)  # noqa: E731
        return torch.cond(x.sum() > 0, lambda x: x + draw(), lambda x: x - draw(), (x,)), draw()

    for function in (made_here, variable, iterator, generator):
        stats = alike(lambda function=function: (function, []), plain, sizes=(3,), calls=1)
        assert "changes objects" in stats.breaks[0].reason


def test_gradients_that_no_node_can_give() -> None:
    def make() -> Any:
        w = torch.ones(3, 3, requires_grad=True)
        return lambda x: torch.cond(x.sum() > 0, lambda x: x @ w, lambda x: x - w.sum(), (x,)), [w]

    alike(make, backend="eager", sizes=(3,), breaks=0)
    stats = alike(make, backend="aot_eager", sizes=(3,))
    assert "backward pass" in stats.breaks[0].reason


@pytest.mark.skipif(switch is None, reason="torch 2.13 has no switch")
@backends
@pytest.mark.parametrize("inputs", [plain, vector])
def test_switch(inputs: Any, backend: str) -> None:
    def chosen(x: Any, w: Any) -> Any:
        branches = (lambda x: x.sin(), lambda x: x * w, lambda x: x - w)
        return switch(x.sum().long(), branches, (x,)), switch(1, branches, (x,))

    alike(program(chosen), inputs, backend=backend, breaks=0, tolerance=1e-6)


def test_compiled_by_inductor() -> None:
    alike(CAPTURED["what is captured"], plain, backend="inductor", sizes=(3,), calls=1, breaks=0, tolerance=1e-5)
