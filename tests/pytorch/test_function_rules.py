"""Functions with a `jvp` or a `vmap` of their own, under transforms of torch.func and in forward mode."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function, forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

import stator
from tests.pytorch.programs import agree


class Scaled(Function):
    """Its derivatives are not those of what it computes: forwards three times as large, backwards twice."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a: Any, scale: float) -> Any:
        return a.sin() * scale

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.scale = inputs[1]
        ctx.save_for_backward(inputs[0], output)
        ctx.save_for_forward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * ctx.saved_tensors[0].cos() * ctx.scale, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, none: Any) -> Any:
        a, out = ctx.saved_tensors
        return 3 * tangent * a.cos() * ctx.scale + out * (none is None)


class Old(Function):
    """The context is set up in `forward`; tangents that are not there are None."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)
        return a * b, a + b

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        a, b = ctx.saved_tensors
        g, h = (0 if g is None else g), (0 if h is None else h)
        return g * b + h, g * a + h

    @staticmethod
    def jvp(ctx: Any, s: Any, t: Any) -> Any:
        a, b = ctx.saved_tensors
        if s is None:
            return 5 * t * a, t
        return s * b, (s if t is None else s + t)


class Mapped(Function):
    """Gives twice what it computes where it is mapped."""

    @staticmethod
    def forward(a: Any, b: Any) -> Any:
        return a * b

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return 7 * g * b, g * a

    @staticmethod
    def vmap(info: Any, in_dims: Any, a: Any, b: Any) -> Any:
        a = a.expand(info.batch_size, *a.shape) if in_dims[0] is None else a.movedim(in_dims[0], 0)
        b = b.expand(info.batch_size, *b.shape) if in_dims[1] is None else b.movedim(in_dims[1], 0)
        return 2 * Mapped.apply(a, b) + (info.randomness == "same"), 0


class Bare(Function):
    """Allows no mapping."""

    @staticmethod
    def forward(a: Any) -> Any:
        return a.sin()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class BareOld(Bare):
    @staticmethod
    def forward(ctx: Any, a: Any) -> Any:  # type: ignore[override]
        return a.sin()

    setup_context = Function.setup_context


def dual(function: Any, a: Any, *others: Any) -> Any:
    with forward_ad.dual_level():
        made = function(forward_ad.make_dual(a, a + 1), *others)
        made = made if isinstance(made, tuple) else (made,)
        return [tuple(forward_ad.unpack_dual(value)) for value in made]


FORWARDS: dict[str, Any] = {
    "jvp": lambda a: jvp(lambda y: Scaled.apply(y, 2.0).exp(), (a,), (a * 3,)),
    "jacfwd": lambda a: jacfwd(lambda y: Scaled.apply(y, 2.0))(a[0]),
    "forwards over backwards": lambda a: hessian(lambda y: Scaled.apply(y, 2.0).sum())(a[0]),
    "mapped": lambda a: jvp(vmap(lambda y: Scaled.apply(y, 2.0)), (a,), (a,)),
    "a level": lambda a: dual(lambda y: Scaled.apply(y, 2.0) * 2, a),
    "a level, one of two": lambda a: dual(Old.apply, a, a * 2),
    "a level, the other of two": lambda a: dual(lambda y: Old.apply(a * 2, y)[0], a),
    "a level, both": lambda a: dual(lambda y: Old.apply(y, y * 2), a),
}
MAPPED: dict[str, Any] = {
    "both": lambda a: vmap(Mapped.apply)(a, a + 1),
    "the first": lambda a: vmap(Mapped.apply, in_dims=(0, None))(a, a[0]),
    "the second, elsewhere": lambda a: vmap(lambda r: Mapped.apply(a[:, 0], r) * 3, in_dims=1, randomness="same")(a),
    "twice": lambda a: vmap(vmap(Mapped.apply))(a, a + 1),
    "no batch": lambda a: vmap(lambda r: r * Mapped.apply(a, a))(a[0]),
    "gradients inside": lambda a: vmap(grad(lambda r: Mapped.apply(r, r).sum()))(a),
    "gradients outside": lambda a: grad(lambda y: vmap(Mapped.apply)(y, y).sum())(a),
    "backwards, without a rule": lambda a: jacrev(Bare.apply)(a[0]) * a,
    "backwards": lambda a: jacrev(lambda y: Mapped.apply(y, y * 2))(a[0]),
}


@pytest.mark.parametrize(("backend", "requires_grad"), [("eager", False), ("aot_eager", True)])
@pytest.mark.parametrize("program", [*FORWARDS.values(), *MAPPED.values()], ids=[*FORWARDS, *MAPPED])
def test_rules_are_traced(program: Any, requires_grad: bool, backend: str) -> None:
    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for size in (3, 4, 6):
        found = []
        for run in (program, compiled):
            a = torch.linspace(0.1, 0.9, size * size).reshape(size, size).requires_grad_(requires_grad)
            results = torch.utils._pytree.tree_leaves(run(a))
            total = sum(r.sum() for r in results if r.requires_grad)
            assert bool(torch.is_tensor(total)) is requires_grad
            found.append([*results, *(torch.autograd.grad(total, a) if requires_grad else ())])
        torch.testing.assert_close(found[1], found[0])
    assert stator.stats().graph_breaks == 0, stator.stats().breaks


def caught(function: Any, a: Any) -> Any:
    try:
        return vmap(function)(a)
    except RuntimeError as e:
        return a * 2, str(e)[:40]


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("function", [Bare, BareOld])
def test_what_torch_refuses_to_map(function: Any, requires_grad: bool) -> None:
    agree(lambda: (lambda a: caught(function.apply, a), (torch.ones(3, 2, requires_grad=requires_grad),)), breaks=1)
