"""`while_loop`, `scan`, `map` and `associative_scan`: the body is a graph of one round."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import stator
from tests.pytorch.gradients import BACKENDS, alike, each_once

backends = pytest.mark.parametrize("backend", BACKENDS)


def rows(n: int) -> Any:
    return (torch.linspace(0.1, 0.9, 3 * n).view(n, 3).requires_grad_(),)


def plain_rows(n: int) -> Any:
    return (rows(n)[0].detach(),)


def program(make: Any) -> Any:
    """Builds a program of a function of `x` and of a weight, a leaf whose gradient is compared."""

    def built() -> Any:
        w = torch.tensor([1.0, 2.0, 0.5], requires_grad=True)
        return lambda x: make(x, w), [w]

    return built


def ticks() -> Any:
    return torch.zeros((), dtype=torch.long)


def cond_in_scan(x: Any, w: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        carry = torch.cond(x.sum() > 1, lambda c: c + x * w, lambda c: c * w, (carry,))
        return carry, carry * x

    return scan(step, torch.ones(3), x * 2)


def scan_in_cond(x: Any, w: Any) -> Any:
    summed = lambda x: scan(lambda c, r: (c + r * w, c * r), torch.ones(3), x)[0]  # noqa: E731
    return torch.cond(x.sum() > 0, summed, lambda x: x.sum(0) * w, (x,))


def cond_in_scan_in_cond(x: Any, w: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: cond_in_scan(x, w)[0], lambda x: x.sum(0) * w, (x,))


CAPTURED: dict[str, Any] = {
    "while": lambda x, w: while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * w), (ticks(), x * 2)),
    "while, by what is computed": lambda x, w: while_loop(lambda y: y.sum() < 50, lambda y: (y * 2 + w,), (x * 2,)),
    "while, structures": lambda x, w: while_loop(
        lambda i, d: i < 2,
        lambda i, d: (i + 1, {"a": d["a"] + d["b"][0], "b": [d["b"][0] * w]}),
        (ticks(), {"a": x, "b": [x + 1]}),
    ),
    "scan": lambda x, w: scan(lambda c, x: (c + x * w, c * x), torch.ones(3), x * 2),
    "scan, reversed": lambda x, w: scan(lambda c, x: (c + x * w, c * x), torch.ones(3), x, reverse=True),
    "scan, another dimension": lambda x, w: scan(lambda c, x: (c + x.sum() * w, c * 2), torch.ones(3), x, dim=1),
    "scan, structures": lambda x, w: scan(
        lambda c, xs: ({"s": c["s"] + xs[0] * w}, (xs[1] * 2, c["s"] * 1)), {"s": torch.ones(3)}, (x, x + 1)
    ),
    "map": lambda x, w: map_(lambda x, y: x.sin() + y * w, x, torch.ones(3)),
    "map, structures": lambda x, w: map_(lambda d: (d["a"] * w, [d["b"].sum()]), {"a": x, "b": x + 1}),
    "cond in scan": cond_in_scan,
    "scan in cond": scan_in_cond,
    "sizes inside": lambda x, w: scan(lambda c, y: (c + y * x.shape[0], c * w), torch.ones(3), x * 2),
}

#: forward only: torch has no gradients for them on all versions
FORWARD: dict[str, Any] = {
    "while, a number": lambda x, w: while_loop(lambda i, y: i < x.shape[0], lambda i, y: (i + 1, y + i), (0, x * 2)),
    "associative": lambda x, w: associative_scan(lambda a, b: a * b + a, x + 0, 0),
    "associative, structures": lambda x, w: associative_scan(
        lambda a, b: {"u": a["u"] * b["u"], "v": a["v"] + b["v"] * b["u"]}, {"u": x + 0, "v": x * 2}, 1, reverse=True
    ),
    "associative, generic": lambda x, w: associative_scan(lambda a, b: a * b, x + 0, 0, combine_mode="generic"),
}


#: what torch's own scan cannot do: gradients where its function captures a symbolic size, and where AOTAutograd finds
#: that the backward pass of a nested operator gives one of its inputs
UNDIFFERENTIABLE = {"scan, another dimension": BACKENDS, "sizes inside": BACKENDS}
UNDIFFERENTIABLE |= {"cond in scan": ("aot_eager",), "scan in cond": ("aot_eager",)}


@pytest.mark.parametrize(("inputs", "backend"), each_once(plain_rows, rows))
@pytest.mark.parametrize("name", CAPTURED)
def test_bodies_are_graphs(name: str, inputs: Any, backend: str) -> None:
    undifferentiable = inputs is rows and backend in UNDIFFERENTIABLE.get(name, ())
    if undifferentiable and backend == "aot_eager":
        inputs, undifferentiable = plain_rows, False
    breaks = None if undifferentiable else 0
    alike(program(CAPTURED[name]), inputs, backend=backend, calls=1, breaks=breaks, tolerance=1e-5)


def test_operators_nest_more_than_once() -> None:
    alike(program(cond_in_scan_in_cond), rows, calls=1, breaks=0, tolerance=1e-5)


@pytest.mark.parametrize("name", ["scan, another dimension", "cond in scan"])
def test_what_has_no_backward_pass_breaks_and_is_right(name: str) -> None:
    alike(program(CAPTURED[name]), rows, backend="aot_eager", sizes=(3,), calls=1, tolerance=1e-5)


@backends
@pytest.mark.parametrize("name", FORWARD)
def test_bodies_without_gradients(name: str, backend: str) -> None:
    alike(program(FORWARD[name]), plain_rows, backend=backend, calls=1, breaks=0, tolerance=1e-5)


def test_one_node_holds_the_body() -> None:
    seen: list[Any] = []
    function, _ = program(CAPTURED["scan"])()
    stator.compile(function, backend=lambda gm, _: seen.append(gm) or gm.forward)(plain_rows(3)[0])
    (node,) = [node for node in seen[0].graph.nodes if node.target is torch.ops.higher_order.scan]
    body, init, xs, free = node.args
    assert body.op == "get_attr" and (len(init), len(xs), len(free)) == (1, 1, 1)


def test_a_loop_that_never_runs() -> None:
    make = program(lambda x, w: while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, y * w), (ticks(), x * 2)))
    alike(make, plain_rows, sizes=(3,), breaks=0)


LEFT: dict[str, tuple[Any, str]] = {
    "another size": (
        lambda x, w: while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y.sum(0)), (ticks(), x * 2)),
        "was given",
    ),
    "another type": (
        lambda x, w: while_loop(lambda i, y: i < 3, lambda i, y: (i + 1.0, y * 2), (ticks(), x * 2)),
        "was given",
    ),
    "what it carries is given on": (
        lambda x, w: while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y), (ticks(), x * 2)),
        "gives one of its inputs",
    ),
    "no condition": (
        lambda x, w: while_loop(lambda i, y: y, lambda i, y: (i + 1, y * 2), (ticks(), x * 2)),
        "boolean",
    ),
    "a write to what is carried": (
        lambda x, w: scan(lambda c, x: (c.add_(x), x * 2), torch.ones(3), x * 2),
        "writes to a tensor",
    ),
    "a write to what is captured": (
        lambda x, w: map_(lambda row: row + w.detach().add_(1), x),
        "writes to a tensor",
    ),
    "not pointwise": (lambda x, w: associative_scan(lambda a, b: a + b.sum(), x + 0, 0), "on its own"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_torch(name: str) -> None:
    function, why = LEFT[name]
    stats = alike(program(function), plain_rows, sizes=(3,), calls=1)
    assert stats.breaks[0].code == "SB0208" and why in stats.breaks[0].reason
    # What torch's own tracer holds behind the break has finalizers.
    assert {b.code for b in stats.breaks} <= {"SB0208", "SB0404"}


def test_compiled_by_inductor() -> None:
    alike(program(CAPTURED["scan"]), plain_rows, backend="inductor", sizes=(3,), calls=1, breaks=0, tolerance=1e-5)
