"""`torch.autograd.Function`: results, gradients, and what happens to inputs, on backends that trace and that do not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

import stator
from tests.pytorch.programs import agree


class StraightThrough(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return (x * scale).round() / scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * (x.abs() < ctx.scale), None


class Reverse(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, strength: float) -> Any:
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if ctx.strength == 0:
            return torch.zeros_like(grad), None
        return -ctx.strength * grad, None


class Same(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 3


class Several(Function):
    """Two tensors in, three things out; an intermediate result and a result are saved."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        product = a * b
        total = product.exp()
        ctx.save_for_backward(a, b, total)
        ctx.product = product
        ctx.mark_non_differentiable(mask := total > 1)
        return total, mask, "text"

    @staticmethod
    def backward(ctx: Any, grad: Any, mask_grad: Any, text_grad: Any) -> Any:
        a, b, total = ctx.saved_tensors
        assert ctx.needs_input_grad[0]
        return grad * total * b + ctx.product * 0, grad * total * a if ctx.needs_input_grad[1] else None


class InPlace(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


class Split(Function):
    """The form with `setup_context`, and a default argument."""

    @staticmethod
    def forward(x: Any, power: int = 3) -> Any:
        return x**power

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.power = inputs
        ctx.save_for_backward(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * ctx.power * x ** (ctx.power - 1), None


class Counting(Function):
    calls: list[int] = []

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        Counting.calls.append(1)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        Counting.calls.append(2)
        return grad * 2


class Wrong(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad, grad


class MaybeNone(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        return (a if a is not None else 0) * 2 + (b * 3 if b is not None else 0)


class Keeping(MaybeNone):
    """What it has computed once it uses for the other gradients."""

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        if not hasattr(ctx, "kept"):
            ctx.kept = (a if a is not None else b) * 2
        return ctx.kept


class Weighted(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, w)
        positive = x > 0
        ctx.mark_non_differentiable(positive)
        return x * w, positive, x * 3

    @staticmethod
    def backward(ctx: Any, a: Any, none: Any, b: Any) -> Any:
        x, w = ctx.saved_tensors
        assert none is None
        of_x = None if a is None else a * w
        if b is not None:
            of_x = b * 3 if of_x is None else of_x + b * 3
        return of_x, None if a is None else (a * x).sum(0)


class Sorted(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        values, places = x.sort()
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        return values, places

    @staticmethod
    def backward(ctx: Any, grad: Any, none: Any) -> Any:
        assert none is None
        if grad is None:
            return None
        (places,) = ctx.saved_tensors
        return torch.zeros_like(grad).scatter(0, places, grad)


class Stopped(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None


class UsesParameter(Function):
    scale = torch.full((3,), 2.0, requires_grad=True)

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * UsesParameter.scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * UsesParameter.scale


def leaf(*shape: int) -> Any:
    return torch.randn(*(shape or (3,)), requires_grad=True)


PROGRAMS: dict[str, Any] = {
    "straight through": lambda x: StraightThrough.apply(x * 2, 0.5).square(),
    "reverse": lambda x: Reverse.apply(x * 2, 0.5) + 1,
    "view of the argument, changed": lambda x: Reverse.apply(x * 2, 0.0).exp(),
    "the argument itself": lambda x: (Same.apply(x * 2), Same.apply(x)),
    "several": lambda x: Several.apply(x, x.sin()),
    "same tensor twice": lambda x: Several.apply(x, x)[0],
    "in place": lambda x: InPlace.apply(x * 1).sin(),
    "split": lambda x: (Split.apply(x), Split.apply(x, 2)),
    "captured parameter": lambda x: UsesParameter.apply(x).sin(),
    "nested": lambda x: Reverse.apply(StraightThrough.apply(x, 2.0), 0.1) * StraightThrough.apply(x, 3.0),
    "expanded gradient": lambda x: StraightThrough.apply(x, 2.0).sum(),
    "part of the results": lambda x: Several.apply(x, x.detach())[0],
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, backend: str) -> None:
    agree(lambda: (PROGRAMS[name], (leaf(),)), grad=True, backend=backend)


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_gradient(name: str) -> None:
    agree(lambda: (PROGRAMS[name], (torch.randn(3),)))
    agree(lambda: (torch.no_grad()(PROGRAMS[name]), (leaf(),)))


def test_argument_of_the_function_changed_in_place() -> None:
    agree(lambda: (lambda x: (InPlace.apply(x), x), (torch.randn(3),)))
    agree(lambda: (lambda x: (lambda y: (InPlace.apply(y), y))(x * 1), (leaf(),)), grad=True)


def test_effects_of_backward_are_not_lost() -> None:
    def make() -> Any:
        Counting.calls.clear()
        return (lambda x: (Counting.apply(x), list(Counting.calls)), (leaf(),))

    agree(make, grad=True, breaks=None, calls=3)


@pytest.mark.parametrize("function", [Wrong, Keeping])
def test_what_is_left_to_python(function: Any) -> None:
    agree(lambda: (lambda x: function.apply(x), (leaf(),)), grad=True, breaks=1)


#: of which results of `Weighted` gradients come
COMBINATIONS = {
    "first": lambda a, b: a.sin(),
    "last": lambda a, b: b.sin(),
    "both": lambda a, b: a * b,
    "none": lambda a, b: (a + b).detach(),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", COMBINATIONS)
def test_gradients_of_several_results_that_may_be_none(name: str, backend: str) -> None:
    def run(x: Any, w: Any) -> Any:
        a, positive, b = Weighted.apply(x, w)
        return COMBINATIONS[name](a, b), positive

    compiled = stator.compile(run, backend=backend, fullgraph=True)
    for n in (2, 2, 4):
        outcomes = []
        for function in (run, compiled):
            x, w = torch.linspace(-1, 1, 3 * n).reshape(n, 3).requires_grad_(), torch.ones(3, requires_grad=True)
            out, positive = function(x, w)
            if out.requires_grad:
                out.sum().backward()
            outcomes.append((out.detach(), positive, x.grad, w.grad))
        torch.testing.assert_close(outcomes[1], outcomes[0])


def test_gradients_of_results_that_leave_the_graph() -> None:
    compiled = stator.compile(Weighted.apply, backend="eager", fullgraph=True)
    for use in (0, 2):
        x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
        compiled(x, w)[use].sum().backward()
        assert (w.grad is None) is (use == 2)


weighted = Weighted.apply


class Holds(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.function = Weighted.apply

    def forward(self, x: Any, w: Any) -> Any:
        return self.function(x, w)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", [lambda x, w: weighted(x, w), Holds(), Weighted.apply])
def test_apply_that_was_looked_up_before(function: Any, backend: str) -> None:
    compiled = stator.compile(function, backend=backend, fullgraph=True)
    for n in (2, 2, 4):
        gradients = []
        for run in (function, compiled):
            x, w = torch.ones(n, 3, requires_grad=True), torch.ones(3, requires_grad=True)
            a, _, b = run(x, w)
            (a * b).sum().backward()
            gradients.append((x.grad, w.grad))
        torch.testing.assert_close(*gradients)


def test_second_derivative() -> None:
    def run(x: Any) -> Any:
        return StraightThrough.apply(x.sin(), 2.0).square().sum()

    results = []
    for fn in (run, stator.compile(run, backend="eager", fullgraph=True)):
        x = torch.linspace(-1, 1, 5, requires_grad=True)
        (grad,) = torch.autograd.grad(fn(x), x, create_graph=True)
        results.append(torch.autograd.grad(grad.sum(), x)[0])
    assert torch.equal(*results)


def test_sizes_that_vary() -> None:
    compiled = stator.compile(PROGRAMS["several"], backend="eager", fullgraph=True)
    for n in (3, 4, 5):
        x, y = leaf(n), leaf(n)
        y.data.copy_(x.data)
        compiled(x)[0].sum().backward()
        PROGRAMS["several"](y)[0].sum().backward()
        assert torch.equal(x.grad, y.grad)
    assert stator.stats().frames == 2


def test_autocast() -> None:
    class Linear(Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: Any) -> Any:
            x, w = ctx.saved_tensors
            return grad @ w.T.to(grad.dtype), x.T.to(grad.dtype) @ grad

    def run(x: Any, w: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return Linear.apply(x, w) * 2

    agree(lambda: (run, (leaf(2, 3), leaf(3, 2))), grad=True)
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("stop", [False, True])
def test_a_gradient_that_may_be_none(stop: bool, backend: str) -> None:
    def program(x: Any) -> Any:
        values, places = Sorted.apply(x * 2)
        return (Stopped.apply(values) if stop else values) * 3, places

    for n in (3, 5, 4):
        ours, theirs = (torch.linspace(1, 0, n, requires_grad=True) for _ in range(2))
        expected, compiled = program(theirs), stator.compile(program, backend=backend, fullgraph=True)(ours)
        assert all(map(torch.equal, expected, compiled)) and not compiled[1].requires_grad
        expected[0].sum().backward()
        compiled[0].sum().backward()
        assert (ours.grad is None) is (theirs.grad is None) is stop
        assert stop or torch.equal(ours.grad, theirs.grad)


class Square(Function):
    """Has all that transforms of torch.func ask for."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return 2 * ctx.saved_tensors[0] * gradient

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return 2 * ctx.saved_tensors[0] * tangent


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.func.jvp(Square.apply, (x,), (torch.ones_like(x),)),
        lambda x: torch.func.jvp(lambda y: Square.apply(y).sin(), (x,), (x * 2,)),
        lambda x: (torch.func.jacfwd(Square.apply)(x),),
    ],
)
def test_inside_of_what_is_differentiated_forwards(program: Any, backend: str) -> None:
    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for size in (3, 4, 6):
        found = []
        for run in (program, compiled):
            x = torch.arange(1.0, 1.0 + size, requires_grad=True)
            results = run(x)
            total = sum(i * y.sum() for i, y in enumerate(results, 1))
            found.append([*results, *torch.autograd.grad(total, x)])
        torch.testing.assert_close(found[1], found[0])
    assert stator.stats().graph_breaks == 0


def test_a_backward_that_acts_outside_is_told_with_what_helps() -> None:
    seen = []

    class Noting(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(grad.norm())
            return grad * 2

    def program(x: Any) -> Any:
        return Noting.apply(x).sum()

    with pytest.raises(stator.GraphBreakError) as caught:
        stator.compile(program, backend="eager", fullgraph=True)(torch.ones(3, requires_grad=True))
    assert caught.value.reason.endswith("Noting.apply cannot be captured: its backward acts on objects outside of it")
    assert caught.value.hint.startswith("let backward only compute")
    assert not seen
