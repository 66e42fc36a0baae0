"""The table: each operator and transform, given functions that capture, write, nest and depend on sizes.

Each cell is called at three sizes, with `eager` and `aot_eager` in turn (with both if STATOR_FACTS=all); results and
all gradients are those of eager, and there is no break. Where torch has no gradients for an operator it is called
without; `OTHERWISE` has the cells that torch cannot compute in eager.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._higher_order_ops import wrap as wraps
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.foreach_map import foreach_map
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.map import map as map_
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.strict_mode import strict_mode
from torch._higher_order_ops.while_loop import while_loop
from torch.compiler import nested_compile_region
from torch.func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from torch.utils.checkpoint import checkpoint

import stator
from tests.pytorch.gradients import BACKENDS, alike
from tests.pytorch.higher_order.test_cond import switch
from tests.pytorch.higher_order.test_loops import plain_rows, rows, ticks
from tests.pytorch.old_torch import OLD_TORCH

Body = Callable[[Any], Any]
Given = Callable[[Body, Any], Any]

backends = pytest.mark.parametrize("backend", BACKENDS)

#: what gives a function of rows, or of all of them, to an operator
OPERATORS: dict[str, Given] = {
    "cond": lambda f, x: torch.cond(x.sum() > 0, f, lambda x: f(x) * 2, (x,)),
    "while_loop": lambda f, x: while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, f(y)), (ticks(), x * 1))[1],
    "scan": lambda f, x: scan(lambda c, r: (f(c), f(r)), torch.ones(3), x * 1),
    "map": lambda f, x: map_(f, x),
    "associative_scan": lambda f, x: associative_scan(lambda a, b: f(a) * b, x * 1, 0, combine_mode="generic"),
    "foreach_map": lambda f, x: foreach_map(lambda xs: [f(x) for x in xs], [x, x + 1]),
    "hints_wrapper": lambda f, x: hints_wrapper(f, (x,), {}, hints={"k": 1}),
    "strict_mode": lambda f, x: strict_mode(f, (x,)),
    "wrap": lambda f, x: wraps.wrap(f, x),
    "invoke_subgraph": lambda f, x: nested_compile_region(f)(x),
    "checkpoint": lambda f, x: checkpoint(f, x, use_reentrant=False),
}
if switch is not None:
    OPERATORS["switch"] = lambda f, x: switch(x.sum().long().clamp(0, 1), (f, lambda x: f(x) * 2), (x,))

TRANSFORMS: dict[str, Given] = {
    "vmap": lambda f, x: vmap(f)(x),
    "grad": lambda f, x: grad(lambda y: f(y).sum())(x),
    "grad_and_value": lambda f, x: grad_and_value(lambda y: f(y).sum())(x),
    "vjp": lambda f, x: (lambda out, pull: (out, pull(out)))(*vjp(f, x)),
    "jvp": lambda f, x: jvp(f, (x,), (x + 1,)),
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "hessian": lambda f, x: hessian(lambda y: f(y).sum())(x),
    "linearize": lambda f, x: (lambda out, push: (out, push(x)))(*linearize(f, x)),
    "functionalize": lambda f, x: functionalize(f)(x),
}

#: functions, of the tensors and modules that they capture
BODIES: dict[str, Callable[[Any, Any, Any], Body]] = {
    "a captured tensor": lambda x, w, module: lambda r: (r * w).sin(),
    "parameters": lambda x, w, module: lambda r: module(r).sin(),
    "a captured size": lambda x, w, module: lambda r: r.sin() * x.shape[0] * r.shape[-1],
    "a write to what it makes": lambda x, w, module: lambda r: (r * w).add_(1).sin(),
    "a transform": lambda x, w, module: lambda r: grad(lambda q: (q * w).sin().sum())(r) + r * w,
    "an operator": lambda x, w, module: lambda r: torch.cond(r.sum() > 0, lambda q: q * w, lambda q: q.sin(), (r,)),
}

#: torch has no backward pass for them, or none on all versions
WITHOUT_BACKWARD = {"while_loop", "associative_scan", "foreach_map", "hints_wrapper", "strict_mode", "linearize"}

#: torch 2.13 asks a batched tensor with symbolic sizes for its offset, and fails
BROKEN_ON_OLD_TORCH = {"jacfwd", "hessian"}

#: torch runs them with gradients of zero for the transform, or not at all; where it refuses them, they are broken
OTHERWISE = {("cond", "a transform"), ("switch", "a transform"), ("map", "a transform"), ("map", "a captured size")}
REFUSED_BY_TORCH = {("scan", "a captured size"), ("checkpoint", "a transform")}


def cell(given: Given, body: str) -> Any:
    """Builds the program of a cell, and the leaves whose gradients are compared."""

    def built() -> Any:
        torch.manual_seed(0)
        module = torch.nn.Linear(3, 3)
        w = torch.tensor([1.0, 2.0, 0.5], requires_grad=True)
        leaves = [w, *module.parameters()]
        return lambda x: given(BODIES[body](x, w, module), x), leaves

    return built


#: torch's operators have rules for no transform but vmap. Inside of vmap and associative_scan eager compiles an
#: operator with torch's own tracer, which fails in a process that has made collectives
CELLS = [
    (name, body)
    for name in [*OPERATORS, *TRANSFORMS]
    for body in BODIES
    if body != "an operator" or (name in OPERATORS and name != "associative_scan")
]


def in_turn() -> list[tuple[str, str, str]]:
    """The cells with a backend each, the next one with the other."""
    pairs = [(*cell, backend) for cell in CELLS for backend in BACKENDS]
    return pairs if os.environ.get("STATOR_FACTS") == "all" else [pairs[2 * i + i % 2] for i in range(len(CELLS))]


@pytest.mark.parametrize(("name", "body", "backend"), in_turn())
def test_cells(name: str, body: str, backend: str) -> None:
    make = cell((OPERATORS | TRANSFORMS)[name], body)
    if (name, body) in OTHERWISE:
        right_all_the_same(name, body, backend)
    elif name in WITHOUT_BACKWARD:
        frozen = lambda: _frozen(make)  # noqa: E731
        alike(frozen, plain_rows, backend=backend, calls=1, breaks=0, tolerance=1e-5)
    else:
        broken = (name, body) in REFUSED_BY_TORCH or (OLD_TORCH and name in BROKEN_ON_OLD_TORCH)
        breaks = None if broken else 0
        alike(make, rows, backend=backend, calls=1, breaks=breaks, tolerance=1e-5)


def right_all_the_same(name: str, body: str, backend: str) -> None:
    """The operator gives what the function itself does for positive rows, and the same gradients."""
    for n in (3, 5):
        outcomes = []
        for given in (OPERATORS[name], lambda f, x: f(x) * (2 if name == "switch" else 1)):
            function, leaves = cell(given, body)()
            (x,) = rows(n)
            compiled = (
                stator.compile(function, backend=backend, fullgraph=True) if given is OPERATORS[name] else function
            )
            result = compiled(x)
            outcomes.append((result, torch.autograd.grad(result.sum(), (x, *leaves), allow_unused=True)))
        torch.testing.assert_close(*outcomes)


def _frozen(make: Any) -> Any:
    function, leaves = make()
    for leaf in leaves:
        leaf.requires_grad_(False)
    return function, leaves


#: the operators that may call their function never, or many times (associative_scan is traced through)
REFUSING = [
    *("cond", "while_loop", "scan", "map", "foreach_map", "hints_wrapper", "strict_mode"),
    *(["switch"] if switch is not None else []),
]


@pytest.mark.parametrize("name", REFUSING)
@pytest.mark.parametrize("what", ["a tensor", "an object"])
def test_writes_outside_are_refused(name: str, what: str) -> None:
    def build() -> Any:
        total, seen = torch.zeros(3), [0]

        def writing(r: Any) -> Any:
            if what == "a tensor":
                total.add_(1)
            else:
                seen.append(1)
            return r * 2

        return lambda x: OPERATORS[name](writing, x), []

    stats = alike(build, plain_rows, sizes=(3,), calls=1)
    assert {b.code for b in stats.breaks} == {"SB0208"}
    assert ("writes to a tensor" if what == "a tensor" else "changes objects") in stats.breaks[0].reason


@backends
@pytest.mark.parametrize(
    "name", ["wrap", "invoke_subgraph", "associative_scan", "vmap", "grad", "vjp", "jvp", "linearize"]
)
def test_one_call_performs_its_writes(name: str, backend: str) -> None:
    def build() -> Any:
        total, seen = torch.zeros(3), [0]

        def writing(r: Any) -> Any:
            seen.append(len(seen))
            return r * 2 + total.add_(1)

        return lambda x: ((OPERATORS | TRANSFORMS)[name](writing, x), total * 1, list(seen)), []

    alike(build, plain_rows, backend=backend, calls=1, tolerance=1e-6)
