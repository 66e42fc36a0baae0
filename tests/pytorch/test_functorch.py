"""Transforms of `torch.func` in compiled functions: one graph, with eager's results and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

import stator
from tests.pytorch.programs import agree

WEIGHT = torch.linspace(-1.0, 1.0, 3)
PARAMETER = torch.nn.Parameter(torch.linspace(0.5, 1.5, 3))
LINEAR = torch.nn.Linear(3, 2)

jvp(torch.sin, (WEIGHT,), (WEIGHT,))  # which warns the first time
backends = pytest.mark.parametrize("backend", ["eager", "aot_eager"])


class Square(torch.autograd.Function):
    """With a scale, so that its backward is not that of `x * x`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a: Any, scale: float) -> Any:
        return a * a

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * ctx.saved_tensors[0] * g * ctx.scale, None


def x(n: int = 4) -> Any:
    return torch.randn(n, 3)


def pulled(a: Any) -> Any:
    out, pull = vjp(lambda y: (y * 2 * WEIGHT).sin(), a)
    return out, pull(torch.ones_like(out)), pull(out.detach())


def pulled_by_name(a: Any) -> Any:
    """The gradients are computed as the options say: what comes of that is seen in the results' own gradients."""
    out, pull = vjp(lambda y: (y * 2 * WEIGHT).sin(), a)
    with torch.no_grad():
        linked = pull(cotangents=out, create_graph=True)
    return pull(out, True, False), linked, pull(cotangents=out, retain_graph=False)


def pulled_with_aux(a: Any) -> Any:
    out, pull, aux = vjp(lambda y, z: ({"out": y.sin() * z}, [y + 1, z]), a, a + 1, has_aux=True)
    return out, pull({"out": torch.ones_like(a)}), aux


def linearized(a: Any) -> Any:
    out, push = linearize(lambda y: y.sin() * WEIGHT, a)
    return out, push(a), push(a * 2)


def without_gradients_inside(a: Any) -> Any:
    def loss(y: Any) -> Any:
        with torch.no_grad():
            c = y**2
        return (y - c).sum()

    return grad(loss)(a)


def without_gradients_outside(a: Any) -> Any:
    with torch.no_grad():
        return grad(lambda y: (y**2).sum())(a)


def per_sample(a: Any) -> Any:
    parameters = {name: p.detach() for name, p in LINEAR.named_parameters()}

    def loss(p: Any, row: Any) -> Any:
        return functional_call(LINEAR, p, (row[None],)).square().sum()

    return vmap(grad(loss), in_dims=(None, 0))(parameters, a)


MODELS = [torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)) for _ in range(3)]


def ensemble(a: Any) -> Any:
    parameters, buffers = stack_module_state(MODELS)
    return vmap(lambda p, b, a: functional_call(MODELS[0], (p, b), (a,)), in_dims=(0, 0, None))(parameters, buffers, a)


def adapted(a: Any) -> Any:
    def loss(p: Any, a: Any) -> Any:
        return functional_call(LINEAR, p, (a,)).square().mean()

    parameters = dict(LINEAR.named_parameters())
    for _ in range(2):
        gradients = grad(loss)(parameters, a)
        parameters = {name: p - 0.1 * gradients[name] for name, p in parameters.items()}
    return loss(parameters, a)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda a: grad(lambda y: (y.sin() ** 2 * WEIGHT).sum())(a) * 2,
    "grad of a parameter": lambda a: grad(lambda y: (y * PARAMETER).sin().sum())(a).sum(),
    "grad of a dict": lambda a: grad(lambda d: (d["p"] * d["q"][0]).sum())({"p": a, "q": [a + 1]}),
    "argnums": lambda a: grad(lambda p, q, k=1: (p * q * k).sum(), argnums=(0, 1))(a, a + 1, k=3),
    "in another order": lambda a: grad(lambda p, q: (p * p * q).sum(), argnums=(-1, 0))(a, a + 1),
    "jacobians in another order": lambda a: torch.func.jacrev(lambda p, q: p * p * q, argnums=(1, 0))(a, a + 1),
    "the last argument": lambda a: grad(lambda p, q: (p * q).sum(), argnums=-1)(a, a + 1),
    "grad and value": lambda a: grad_and_value(lambda y: ((y**2).sum(), {"aux": y + 1}), has_aux=True)(a),
    "grad of grad": lambda a: grad(lambda y: grad(lambda z: (z**3 * y).sum())(y).sum())(a),
    "grad inside no_grad": without_gradients_outside,
    "no_grad inside grad": without_gradients_inside,
    "vjp": pulled,
    "vjp with options": pulled_by_name,
    "vjp with aux": pulled_with_aux,
    "jvp": lambda a: jvp(lambda y: y.cos() * y * PARAMETER, (a,), (a + 1,)),
    "jvp with aux": lambda a: jvp(lambda y: (y.cos(), y), (a,), (a,), has_aux=True),
    "jacrev": lambda a: jacrev(lambda y: (y.sin(), y**2))(a[0]),
    "jacrev in chunks": lambda a: jacrev(lambda y: y.sin() * WEIGHT, chunk_size=2)(a[0]),
    "jacfwd": lambda a: jacfwd(lambda y: y.sin() * WEIGHT)(a[0]),
    "hessian": lambda a: hessian(lambda y: (y.sin() ** 2).sum())(a[0]),
    "jacrev of jacrev": lambda a: jacrev(jacrev(lambda y: (y.sin() ** 2).sum()))(a[0]),
    "vmap of jacrev": lambda a: vmap(jacrev(torch.sin))(a),
    "per-sample gradients": per_sample,
    "functionalize": lambda a: functionalize(lambda y: y.clone().add_(1))(a),
    "grad of functionalize": lambda a: grad(functionalize(lambda y: y.clone().mul_(y).sum()))(a),
    "grad of a Function": lambda a: grad(lambda y: Square.apply(y, 3.0).sum())(a),
    "grad of grad of a Function": lambda a: grad(lambda y: grad(lambda z: Square.apply(z, 3.0).sum())(y).sum())(a),
    "vmap of grad of a Function": lambda a: vmap(grad(lambda y: Square.apply(y, 3.0).sum()))(a),
    "jacrev of a Function": lambda a: jacrev(lambda y: Square.apply(y, 3.0))(a[0]),
    "jacobians of a module": lambda a: (vmap(jacrev(LINEAR))(a), vmap(jacfwd(LINEAR))(a)),
    "an ensemble": ensemble,
    "a step of a step": adapted,
    "jvp of vjp": lambda a: jvp(lambda y: vjp(torch.sin, y)[1](a)[0], (a,), (a,)),
    "hessian-vector product": lambda a: jvp(grad(lambda y: (y**3).sum()), (a,), (a,)),
    "vmap in grad": lambda a: grad(lambda y: vmap(torch.dot)(y, y).sum())(a),
}


@backends
@pytest.mark.parametrize("name", PROGRAMS)
def test_transforms_are_captured(name: str, backend: str) -> None:
    agree(lambda: (PROGRAMS[name], (x(),)), backend=backend, graphs=1, rtol=1e-5)


@backends
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_pass_through(name: str, backend: str) -> None:
    agree(lambda: (PROGRAMS[name], (x().requires_grad_(),)), backend=backend, grad=True, rtol=1e-5)


@backends
def test_linearize(backend: str) -> None:
    a = x()
    stator.reset()
    # In eager torch warns about a graph that it makes on the way.
    torch.testing.assert_close(stator.compile(linearized, backend=backend, fullgraph=True)(a), linearized(a))
    assert stator.stats().graphs == 1


@backends
@pytest.mark.parametrize("name", ["grad", "vjp", "jacrev in chunks", "per-sample gradients"])
def test_sizes_may_vary(name: str, backend: str) -> None:
    stator.reset()
    compiled = stator.compile(PROGRAMS[name], backend=backend, fullgraph=True)
    for n in (4, 5, 6, 7):
        a = x(n)
        torch.testing.assert_close(compiled(a), PROGRAMS[name](a))
    assert stator.stats().graphs <= 2


def reads_flags(a: Any) -> Any:
    def loss(y: Any, z: Any) -> Any:
        return (y * z).sum() * (2 if y.requires_grad else 3) * (5 if z.requires_grad else 7)

    return grad(loss)(a, a.detach().requires_grad_(False)), jvp(lambda y: y * (2 if y.requires_grad else 3), (a,), (a,))


def test_arguments_require_gradients_as_in_eager() -> None:
    for given in (x(), x().requires_grad_()):
        agree(lambda given=given: (reads_flags, (given,)))


@backends
def test_a_transform_that_breaks_leaves_torch_as_it_was(backend: str) -> None:
    def program(a: Any) -> Any:  # torch's derivatives of powers make zeros that no mode sees
        return vmap(hessian(lambda y: (y**3).sum()))(a)

    for n, wanted in ((4, False), (5, True)):
        make = lambda n=n, wanted=wanted: (program, (x(n).requires_grad_(wanted),))  # noqa: E731
        agree(make, backend=backend, grad=wanted, rtol=1e-5, breaks=1)


def spent(a: Any) -> Any:
    out, pull = vjp(torch.sin, a)
    return pull(out, retain_graph=False), pull(out)


LEFT: dict[str, Callable[[Any], Any]] = {
    "a branch": lambda a: grad(lambda y: y.sum() if y.sum() > 0 else -y.sum())(a),
    "no number": lambda a: grad(lambda y: y * 2)(a),
    "an argument that is no tensor": lambda a: grad(lambda y, k: (y * k).sum(), argnums=1)(a, 2.0),
    "cotangents of another structure": lambda a: vjp(lambda y: y * 2, a)[1]([a]),
    "a vjp whose graph is freed": spent,
    "no aux": lambda a: grad(lambda y: y.sum(), has_aux=True)(a),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_torch(name: str) -> None:
    agree(lambda: (LEFT[name], (x(),)), breaks=None)


def test_a_break_names_the_transform() -> None:
    stats = agree(lambda: (LEFT["a branch"], (x(),)), breaks=1)
    assert stats.breaks[0].code == "SB0208" and "torch.func.grad" in stats.breaks[0].reason


def by_value(y: Any) -> Any:
    return y.sin() if y.sum() > 0 else y.cos()


def pulled_by_value(a: Any) -> Any:
    out, pull = vjp(by_value, a)
    return pull(out)


#: how many calls of the program's there are, which are a break each
BROKEN: dict[str, tuple[Callable[[Any], Any], int]] = {
    "grad": (LEFT["a branch"], 1),
    "vjp, and the function that it gives": (pulled_by_value, 2),
    "jacrev": (lambda a: jacrev(by_value)(a), 1),
    "grad in grad": (lambda a: grad(lambda y: grad(lambda z: by_value(z).sum())(y).sum())(a), 1),
}


@pytest.mark.parametrize("name", BROKEN)
def test_breaks_are_at_the_programs_calls(name: str) -> None:
    program, calls = BROKEN[name]
    stats = agree(lambda: (program, (x(),)), breaks=calls, rtol=1e-6)
    assert all(__file__ in str(b.where) and "torch.func." in b.reason for b in stats.breaks)


def test_the_function_that_vjp_gives_cannot_leave() -> None:
    def program(a: Any) -> Any:
        return vjp(torch.sin, a)[1]

    pull = stator.compile(program, backend="eager")(x())
    assert pull(torch.ones(4, 3))[0].shape == (4, 3)


def test_inductor() -> None:
    for name in ("grad", "jvp", "per-sample gradients"):
        agree(lambda name=name: (PROGRAMS[name], (x(),)), backend="inductor", rtol=1e-4)
