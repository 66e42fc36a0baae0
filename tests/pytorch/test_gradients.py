"""No gradient is lost: what the trace cannot account for is left to Python."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as fw
from torch import nn

import stator
from stator.errors import GraphBreakError
from tests.pytorch.gradients import BACKENDS, alike

backends = pytest.mark.parametrize("backend", BACKENDS)


# -- higher-order operators -------------------------------------------------------------------------------------------


def cond_with_captured() -> Any:
    w = torch.full((), 3.0, requires_grad=True)

    def program(x: Any) -> Any:
        y = x + 1
        return torch.cond(y.sum() > 0, lambda y: y * w, lambda y: y - w, (y,)) * 2

    return program, [w]


def test_an_operator_compiled_by_itself_runs_as_in_eager() -> None:
    w = torch.ones((), requires_grad=True)
    compiled = stator.compile(torch.cond, backend="eager")
    for _ in range(2):
        y = compiled(torch.tensor(True), lambda x: x * w, lambda x: x - w, (torch.ones(3),))
        assert y.requires_grad


def test_cond_where_torch_compile_is_ours() -> None:
    stator.install()
    try:
        for call in (lambda f: f, torch.compile(backend="eager")):
            program, (w,) = cond_with_captured()
            call(program)(torch.ones(3)).sum().backward()
            assert w.grad == 12  # (1 + 1) * 3 elements * 2
    finally:
        stator.uninstall()


@backends
def test_a_marked_region_is_traced(backend: str) -> None:
    def make() -> Any:
        w = torch.ones((), requires_grad=True)

        @torch.compiler.nested_compile_region
        def region(x: Any) -> Any:
            return (x * w).sin()

        return lambda x: region(region(x)), [w]

    alike(make, backend=backend, breaks=0)


# -- new leaves -------------------------------------------------------------------------------------------------------


def factory(x: Any) -> Any:
    leaf = torch.ones(2, requires_grad=True)
    return leaf, leaf * 2


def like(x: Any) -> Any:
    leaf = torch.zeros_like(x, requires_grad=True)
    return leaf, (leaf * x).sin()


def literal(x: Any) -> Any:
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    return leaf, leaf.exp() * x.sum()


def random(x: Any) -> Any:
    leaf = torch.randn(x.shape, requires_grad=True)
    return leaf, leaf * x


def flagged(x: Any) -> Any:
    leaf = (x * 2).detach().requires_grad_()
    return leaf, leaf * x


def assigned(x: Any) -> Any:
    leaf = torch.zeros_like(x)
    leaf.requires_grad = True
    return leaf, leaf * x


def parameter(x: Any) -> Any:
    leaf = nn.Parameter(x.detach() * 2)
    return leaf, leaf * x


def without_gradients(x: Any) -> Any:
    with torch.no_grad():
        leaf = torch.ones(2, requires_grad=True)
        unused = leaf * 2
    return leaf, leaf * 3, unused


def stepped(x: Any) -> Any:
    leaf = torch.zeros_like(x, requires_grad=True)
    for _ in range(2):
        (leaf * x.detach() + leaf**2).sum().backward()
        with torch.no_grad():
            leaf -= 0.1 * leaf.grad
    return leaf, leaf.grad, leaf * x


def unused_leaf(x: Any) -> Any:
    return x * 2, torch.zeros(3, requires_grad=True)


leaves = [factory, like, literal, random, flagged, assigned, parameter, without_gradients, stepped, unused_leaf]


@backends
@pytest.mark.parametrize("program", leaves)
def test_a_new_leaf_is_the_very_leaf(program: Any, backend: str) -> None:
    alike(lambda: (program, []), backend=backend)


@backends
@pytest.mark.parametrize("program", [factory, like, literal, random, without_gradients, unused_leaf])
def test_a_new_leaf_stays_in_the_graph(program: Any, backend: str) -> None:
    alike(lambda: (program, []), sizes=(3,), breaks=0, backend=backend)


def test_a_new_leaf_under_inductor() -> None:
    alike(lambda: (factory, []), backend="inductor", sizes=(3,), tolerance=1e-5)


def test_a_tensor_of_another_kind_that_becomes_a_leaf_breaks() -> None:
    x = torch.ones(3, dtype=torch.complex64).conj()
    with pytest.raises(GraphBreakError) as caught:
        stator.compile(lambda x: x.requires_grad_() * 2, backend="aot_eager", fullgraph=True)(x)
    assert caught.value.code == "SB0209"


def test_a_new_leaf_is_one_object() -> None:
    def program(x: Any) -> Any:
        leaf = torch.ones(2, requires_grad=True)
        return leaf, leaf * 2, [leaf]

    for backend in BACKENDS:
        leaf, double, listed = stator.compile(program, backend=backend)(torch.ones(3))
        assert leaf is listed[0] and torch.autograd.grad(double.sum(), leaf)[0].tolist() == [2, 2]


# -- functions applied to wrapper subclasses --------------------------------------------------------------------------


class Wrapper(torch.Tensor):
    """A tensor around another one."""

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, requires_grad=inner.requires_grad
        )

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from torch.utils import _pytree as pytree

        args, kwargs = pytree.tree_map_only(Wrapper, lambda t: t.inner, (args, kwargs or {}))
        return pytree.tree_map_only(torch.Tensor, Wrapper, func(*args, **kwargs))


class Unwrap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, wrapped: Any) -> Any:
        return wrapped.inner.view_as(wrapped.inner)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return Wrapper(grad)


class Wrap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inner: Any) -> Any:
        return Wrapper(inner)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad.inner


@backends
def test_a_function_applied_to_a_wrapper(backend: str) -> None:
    alike(lambda: (lambda x: Unwrap.apply(Wrap.apply(x * 2) * 3).sin(), []), backend=backend)


@backends
def test_a_function_applied_to_a_wrapper_that_is_an_argument(backend: str) -> None:
    x = torch.ones(3, requires_grad=True)
    out = stator.compile(lambda w: Unwrap.apply(w).sin(), backend=backend)(Wrap.apply(x))
    out.sum().backward()
    assert x.grad is not None and torch.allclose(x.grad, torch.ones(3).cos())


# -- forward mode -----------------------------------------------------------------------------------------------------


def entered(x: Any) -> Any:
    y = x.detach() * 2
    with fw.dual_level():
        made = fw.make_dual(y, torch.ones_like(y))
        tangent = fw.unpack_dual(made.sin() * 3).tangent
    return x * 2, tangent


def entered_by_hand(x: Any) -> Any:
    fw.enter_dual_level()
    try:
        return fw.unpack_dual(fw.make_dual(x.detach(), torch.ones_like(x)) * 2).tangent + 1
    finally:
        fw.exit_dual_level()


@backends
@pytest.mark.parametrize("program", [entered, entered_by_hand])
def test_tangents_of_a_level_inside(program: Any, backend: str) -> None:
    alike(lambda: (program, []), backend=backend, breaks=0)


def test_tangents_under_inductor() -> None:
    alike(lambda: (entered, []), backend="inductor", sizes=(3,), breaks=0, tolerance=1e-6)


@backends
def test_no_tangent(backend: str) -> None:
    def program(x: Any) -> Any:
        with fw.dual_level():
            dual = fw.make_dual(x.detach(), torch.ones_like(x))
            plain, fixed = fw.unpack_dual(x * 2), fw.unpack_dual(dual.detach() * 2)
            kept = dual * 3
        return plain.primal, plain.tangent, fixed.tangent is None, kept

    alike(lambda: (program, []), backend=backend, breaks=0)


@backends
def test_a_tangent_is_written(backend: str) -> None:
    def program(x: Any, t: Any) -> Any:
        with fw.dual_level():
            fw.unpack_dual(fw.make_dual(x, t)).tangent.add_(1)
        return t * 2, t

    alike(lambda: (program, []), lambda n: (torch.ones(n), torch.zeros(n)), backend=backend)


@backends
@pytest.mark.parametrize("left", [True, False])
def test_a_break_inside_of_a_level(left: bool, backend: str) -> None:
    def program(x: Any) -> Any:
        y = x.detach() * 2
        with fw.dual_level():
            dual = fw.make_dual(y, torch.ones_like(y)).sin()
            if left:
                stator.graph_break()
            elif dual.sum() > 100:
                return y
            tangent = fw.unpack_dual(dual).tangent
        return x * 2, tangent

    stats = alike(lambda: (program, []), backend=backend)
    assert {found.code for found in stats.breaks} >= {"SB0210"}


@backends
def test_an_error_inside_of_a_level_leaves_it(backend: str) -> None:
    def program(x: Any, i: Any) -> Any:
        with fw.dual_level():
            dual = fw.make_dual(x, torch.ones_like(x))
            return fw.unpack_dual(dual[i]).tangent + 1

    compiled = stator.compile(program, backend=backend)
    with pytest.raises(IndexError):
        compiled(torch.ones(3), torch.tensor([7]))
    with pytest.raises(RuntimeError):
        fw.make_dual(torch.ones(1), torch.ones(1))  # there is no level
    assert compiled(torch.ones(3), torch.tensor([1])).tolist() == [2]


@backends
def test_a_function_of_the_programs_inside_of_a_level(backend: str) -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 20

    def program(x: Any) -> Any:
        with fw.dual_level():
            return fw.unpack_dual(Double.apply(fw.make_dual(x.detach(), torch.ones_like(x)))).tangent * x

    alike(lambda: (program, []), backend=backend)


@backends
def test_a_level_outside_is_guarded(backend: str) -> None:
    compiled = stator.compile(lambda x: x.sin() * 2, backend=backend)
    for _ in range(2):
        assert compiled(torch.zeros(3)).tolist() == [0, 0, 0]
        with fw.dual_level():
            out = compiled(fw.make_dual(torch.zeros(3), torch.ones(3)))
            tangent = fw.unpack_dual(out).tangent
            assert tangent is not None and tangent.tolist() == [2, 2, 2]
    assert stator.stats().recompiles <= 1


# -- results of one graph that are made from each other ---------------------------------------------------------------


def later_grad(x: Any) -> Any:
    y = x * 2
    z = y.sin().sum()
    stator.graph_break()
    (g,) = torch.autograd.grad(z, y, retain_graph=True, allow_unused=True)
    return y, z, g


def later_inputs(x: Any) -> Any:
    y = x * 2
    z = y.sin().sum()
    stator.graph_break()
    y.retain_grad()
    z.backward(inputs=[y], retain_graph=True)
    return y, y.grad, x.grad is None


def later_hook(x: Any) -> Any:
    y = x * 2
    z = y.sin().sum()
    stator.graph_break()
    y.register_hook(lambda g: g * 10)
    return z


def later_retained(x: Any) -> Any:
    y = x * 2
    z = y.exp() * y
    stator.graph_break()
    y.retain_grad()
    z.sum().backward()
    return y.grad, x.detach()


def penalty(z: Any, y: Any) -> Any:
    return torch.autograd.grad(z.sum(), y, retain_graph=True, allow_unused=True)[0]


def in_a_function(x: Any) -> Any:
    y = (x * 2).cos()
    z = y * y
    stator.graph_break()
    g = penalty(z, y)
    return z.sum() + g.norm()


def of_inplace_work(x: Any) -> Any:
    y = x * 2
    y.mul_(3)
    z = torch.zeros_like(x)
    z.add_(y.sin())
    stator.graph_break()
    return torch.autograd.grad(z.sum(), y, allow_unused=True)


def of_parts(x: Any) -> Any:
    a, b = (x.repeat(2) * 2).chunk(2)
    z = (a * b).sum()
    stator.graph_break()
    return torch.autograd.grad(z, [a, b], allow_unused=True)


def in_a_loop(x: Any) -> Any:
    y, grads = x * 2, []
    for _ in range(3):
        y = y.sin()
        z = (y * y).sum()
        stator.graph_break()
        grads += torch.autograd.grad(z, y, retain_graph=True, allow_unused=True)
    return y, grads


questions = [later_grad, later_inputs, later_hook, later_retained, in_a_function, of_inplace_work, of_parts, in_a_loop]


@backends
@pytest.mark.parametrize("program", questions)
def test_a_question_about_an_intermediate_is_seen_coming(program: Any, backend: str) -> None:
    alike(lambda: (program, []), backend=backend, tolerance=1e-5)


def test_a_question_under_inductor() -> None:
    alike(lambda: (later_grad, []), backend="inductor", sizes=(3,), tolerance=1e-5)


def hooked_beside_another(x: Any) -> Any:
    y = x * 3
    z = y * 1
    z.register_hook(lambda g: g * 2)
    return y, (z * 0).detach()


@backends
def test_a_hook_is_not_called_for_another_result(backend: str) -> None:
    alike(lambda: (hooked_beside_another, []), backend=backend)


def inputs_at_once(x: Any) -> Any:
    y = x * 2
    z = y.sin().sum()
    z.backward(inputs=y, retain_graph=True)
    return y, z


@backends
def test_backward_to_an_intermediate(backend: str) -> None:
    alike(lambda: (inputs_at_once, []), backend=backend, tolerance=1e-5)


def trained(x: Any) -> Any:
    out = x * 2
    loss = (out * out).sum()
    loss.backward()
    return out.detach(), loss.detach()


def test_a_training_step_is_one_graph() -> None:
    stats = alike(lambda: (trained, []), backend="aot_eager", sizes=(3,), breaks=0, tolerance=1e-5)
    assert stats.graphs == 1


def returned(x: Any) -> Any:
    y = x * 2
    return y, y.sin().sum()


@pytest.mark.parametrize("link", [True, False])
def test_results_handed_to_the_caller_are_linked_on_request(link: bool) -> None:
    with stator.config.patch(link_outputs=link):
        compiled = stator.compile(returned, backend="aot_eager")
        for n in (3, 5):
            x = torch.linspace(0, 1, n, requires_grad=True)
            y, z = compiled(x)
            (grad,) = torch.autograd.grad(z, y, retain_graph=True, allow_unused=True)
            assert (grad is not None) is link  # without it: see docs/guide/gradients.md
            z.backward()
            assert x.grad is not None and torch.allclose(x.grad, 2 * (2 * x).cos())


# -- leaves that are views --------------------------------------------------------------------------------------------


def view_without_gradients(x: Any) -> Any:
    with torch.no_grad():
        y = x.view(-1)
    return y, y * 2


def view_of_a_result(x: Any) -> Any:
    y = x * 2
    with torch.no_grad():
        v = y[1:]
        w = v * 3
    return y, v, w, v * 2


@backends
@pytest.mark.parametrize("program", [view_without_gradients, view_of_a_result])
def test_a_view_made_without_gradients_is_a_leaf(program: Any, backend: str) -> None:
    alike(lambda: (program, []), backend=backend)


@backends
@pytest.mark.parametrize("without", [torch.no_grad, torch.inference_mode])
def test_a_view_of_an_input_leaves_a_graph_that_runs_without_gradients(without: Any, backend: str) -> None:
    def parted(x: Any) -> Any:
        y = x[1:].transpose(0, 1)
        z = y * 2
        stator.graph_break()
        return y, z, y + z, x.view(-1)

    compiled = stator.compile(parted, backend=backend)
    for rows in (3, 5, 7):
        x = torch.randn(rows, 2, requires_grad=True)
        with without():
            expected, actual = parted(x), compiled(x)
        for want, have in zip(expected, actual, strict=True):
            assert torch.equal(want, have)
            assert (want.requires_grad, want.is_leaf, want._is_view()) == (
                have.requires_grad,
                have.is_leaf,
                have._is_view(),
            )
    codes = {record.code for record in stator.stats().breaks}
    assert codes == {"SB0301"} or (without is torch.inference_mode and backend == "aot_eager")


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * -2


def reversed_argument(x: Any) -> Any:
    return Reverse.apply(x)


def reversed_result(x: Any) -> Any:
    y = x * 2
    return y, Reverse.apply(y)


def reversed_view(x: Any) -> Any:
    y = x * 2
    return y, Reverse.apply(y).view(-1, 1)


def reversed_inside(x: Any) -> Any:
    return Reverse.apply(x * 2).sin()


@backends
@pytest.mark.parametrize("program", [reversed_argument, reversed_result, reversed_view, reversed_inside])
def test_a_function_whose_result_is_a_view_keeps_its_backward(program: Any, backend: str) -> None:
    stats = alike(lambda: (program, []), backend=backend, tolerance=1e-6)
    assert stats.graph_breaks == 0 or program is not reversed_inside


# -- what is saved, and written ---------------------------------------------------------------------------------------


def overwritten(x: Any, w: Any) -> Any:
    saved = (x * w).exp()
    other = (x + w).sin()
    saved.add_(1)  # its backward pass needs what was there
    return saved, other


@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
def test_a_backward_pass_that_must_fail_fails_when_it_is_asked_for(backend: str) -> None:
    compiled = stator.compile(overwritten, backend=backend, fullgraph=True)
    for size in (3, 5) if backend == "inductor" else (3, 5, 3, 7):
        ours, theirs = (torch.linspace(-1, 1, size).requires_grad_() for _ in range(2))
        w = torch.full((size,), 0.5, requires_grad=True)
        got, wanted = compiled(ours, w), overwritten(theirs, w)
        torch.testing.assert_close(got, wanted)
        got[1].sum().backward()
        wanted[1].sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad)
        for saved, _ in (got, wanted):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                saved.sum().backward()


# -- results that are read through a bit ------------------------------------------------------------------------------


@backends
def test_gradients_of_conjugates_and_negatives(backend: str) -> None:
    def program(x: Any) -> Any:
        z = torch.complex(x, x * 2).exp()
        conjugate, negative = z.conj(), z.conj().imag
        assert conjugate.is_conj() and negative.is_neg()
        return (z * conjugate).real, (negative * x).cos(), conjugate.sum().abs()

    for complete in (True, False):  # sizes that vary from the second on, and numbers
        with stator.config.patch(automatic_dynamic=complete):
            alike(lambda: (program, []), backend=backend, breaks=0, tolerance=1e-5)


# -- new leaves of sizes that vary -------------------------------------------------------------------------------------


def of_a_leaf(leaf: Any) -> Any:
    return torch.autograd.grad((leaf.exp() * leaf).sum(), leaf)[0], leaf


def in_steps(x: Any) -> Any:
    guided = x.detach().clone().requires_grad_()
    for _ in range(2):
        (slope,) = torch.autograd.grad((guided**3).sum(), guided)
        guided = (guided - 0.1 * slope).detach().requires_grad_()
    return guided


def perturbed(x: Any) -> Any:
    delta = torch.zeros_like(x, requires_grad=True)
    ((x.detach() + delta) ** 2).sum().backward()
    delta.data.add_(delta.grad.sign())
    return delta, x + delta


def gradient_penalty(x: Any) -> Any:
    between = (x.detach() * 0.3).requires_grad_()
    (slope,) = torch.autograd.grad(between.exp(), between, torch.ones(x.shape), create_graph=True)
    return (slope.norm() - 1) ** 2 + x.sum()


NEW_LEAVES: dict[str, tuple[Any, int]] = {
    "of columns": (lambda x: of_a_leaf(x.detach().view(1, -1).t().requires_grad_()), 2),
    "of more": (lambda x: of_a_leaf(torch.cat([x, x[:2]]).detach().requires_grad_()), 2),
    "of squares": (lambda x: of_a_leaf(torch.ones(x.shape[0], x.shape[0], requires_grad=True)), 2),
    "a Parameter": (lambda x: of_a_leaf(nn.Parameter(x.detach() * 2)), 2),
    "of a half": (lambda x: of_a_leaf(x[: x.shape[0] // 2].detach().clone().requires_grad_()), 2),
    "in steps": (in_steps, 2),
    "perturbed": (perturbed, 2),
    "penalty": (gradient_penalty, 2),
    "hvp": (lambda x: torch.autograd.functional.hvp(lambda a: (a**3).sum(), x, torch.ones_like(x))[1], 2),
}


@pytest.mark.parametrize("name", NEW_LEAVES)
@backends
def test_new_leaves_of_sizes_that_vary(backend: str, name: str) -> None:
    program, graphs = NEW_LEAVES[name]
    stats = alike(lambda: (program, []), backend=backend, sizes=(4, 6, 4, 8, 10), breaks=0, calls=1, tolerance=1e-5)
    assert stats.graphs == graphs, stats.recompile_log


def test_new_leaves_of_sizes_that_vary_with_inductor() -> None:
    stats = alike(lambda: (in_steps, []), backend="inductor", sizes=(4, 6, 8), breaks=0, calls=1, tolerance=1e-5)
    assert stats.graphs == 2
