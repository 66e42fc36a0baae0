"""Tensor objects that become other tensors: `.data`, `requires_grad_`, `detach_`, `set_`, Parameters made inside."""

from __future__ import annotations

import copy
import weakref
from typing import Any

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.gradients import BACKENDS, alike, plain, vector

backends = pytest.mark.parametrize("backend", BACKENDS)


def two(n: int) -> Any:
    return torch.zeros(n), torch.linspace(0.5, 1.5, n)


def wanting(n: int) -> Any:
    return torch.zeros(n, requires_grad=True), torch.linspace(0.5, 1.5, n)


# -- x.data = y -------------------------------------------------------------------------------------------------------


def assigned(p: Any, x: Any) -> Any:
    before = p + 1
    p.data = x * 2
    return before, p + 1, p


def of_another_type(p: Any, x: Any) -> Any:
    p.data = x.double()
    return p + 1, p.dtype


def of_another_shape(p: Any, x: Any) -> Any:
    p.data = x[1:]
    return p * 2, p.shape


def exchanged(p: Any, x: Any) -> Any:
    p.data, x.data = x.data, p.data
    return p - x


def twice(p: Any, x: Any) -> Any:
    p.data = x * 2
    a = p + 1
    p.data = a * 3
    return a, p + 1


def written_before(p: Any, x: Any) -> Any:
    p.add_(1)
    view = p[:1]
    p.data = x * 2
    view.mul_(5)
    return p, view


def written_after(p: Any, x: Any) -> Any:
    p.data = x * 2
    p.add_(1)
    return p * 2


def of_a_new_tensor(p: Any, x: Any) -> Any:
    y = x + p
    view = y[:1]
    y.data = x * 3
    view.add_(1)
    return y, view, y.sum()


def listed(p: Any, x: Any) -> Any:
    items = [p]
    p.data = x * 2
    return items[0] + 1, items


@backends
@pytest.mark.parametrize("inputs", [two, wanting])
@pytest.mark.parametrize("program", [assigned, exchanged, twice, listed])
def test_data_is_assigned(program: Any, inputs: Any, backend: str) -> None:
    alike(lambda: (program, []), inputs, backend=backend, breaks=0)


@backends
@pytest.mark.parametrize("program", [of_another_type, of_another_shape, written_before, written_after, of_a_new_tensor])
def test_data_of_a_tensor_without_gradients_is_assigned(program: Any, backend: str) -> None:
    alike(lambda: (program, []), two, backend=backend, breaks=0)


def test_data_is_assigned_under_inductor() -> None:
    alike(lambda: (assigned, []), wanting, backend="inductor", sizes=(3, 5), breaks=0, tolerance=1e-6)


@backends
@pytest.mark.parametrize("program", [of_another_type, of_another_shape])
def test_data_that_gradients_do_not_fit_breaks(program: Any, backend: str) -> None:
    stats = alike(lambda: (program, []), wanting, backend=backend, sizes=(3,), calls=1)
    assert {found.code for found in stats.breaks} == {"SB0204"}


@backends
def test_the_data_of_a_parameter(backend: str) -> None:
    def make() -> Any:
        torch.manual_seed(0)
        model = nn.Linear(3, 3)

        def program(x: Any) -> Any:
            model.weight.data = model.weight.data * 0.5
            return model(x.expand(2, 3))

        return program, list(model.parameters())

    alike(make, lambda n: (torch.ones(n, 1),), backend=backend, sizes=(2,), breaks=0)


@backends
def test_the_object_keeps_its_identity_and_shares_memory(backend: str) -> None:
    def program(p: Any, x: Any) -> Any:
        y = x * 2
        p.data = y
        return y

    p = torch.zeros(3)
    y = stator.compile(program, backend=backend)(p, torch.ones(3))
    assert p.data_ptr() == y.data_ptr() and p.tolist() == [2, 2, 2]


def test_an_assignment_that_torch_refuses() -> None:
    def program(p: Any, x: Any) -> Any:
        try:
            p.data = x.to("meta")
        except RuntimeError as e:
            return str(e)
        return None

    alike(lambda: (lambda p, x: [program(p, x)], []), two, sizes=(3,), breaks=0)


@backends
def test_what_a_break_finds(backend: str) -> None:
    def program(p: Any, x: Any) -> Any:
        p.data = x * 2
        y = x + 1
        y.detach_()
        stator.graph_break()
        return p + y

    stats = alike(lambda: (program, []), two, backend=backend)
    assert {found.code for found in stats.breaks} == {"SB0301"}


@backends
def test_memory_that_another_counts_the_writes_of(backend: str) -> None:
    def program(p: Any, x: Any) -> Any:
        p.data = x
        p.add_(1)
        return p * x

    alike(lambda: (program, []), two, backend=backend)


# -- detach_, requires_grad_, set_ ------------------------------------------------------------------------------------


def detached(x: Any) -> Any:
    y = x * 2
    z = y * 3
    y.detach_()
    return y.sin() + x, y, z


def detached_argument(x: Any) -> Any:
    y = x * 2
    x.detach_()
    return y, x * 3, x


def detached_twice(x: Any) -> Any:
    y = (x * 2).detach_()
    y.detach_()
    return y + x


def frozen(x: Any) -> Any:
    x.requires_grad_(False)
    return x * 2


def frozen_for_a_while(x: Any) -> Any:
    x.requires_grad_(False)
    y = x * 2
    x.requires_grad_(True)
    return y, x * 3


def flag_assigned(x: Any) -> Any:
    x.requires_grad = False
    y = x * 2
    y.requires_grad = True
    return y, y * 3


@backends
@pytest.mark.parametrize(
    "program", [detached, detached_argument, detached_twice, frozen, frozen_for_a_while, flag_assigned]
)
def test_leaving_autograds_graph(program: Any, backend: str) -> None:
    alike(lambda: (program, []), vector, backend=backend, breaks=0)


def flagged(x: Any) -> Any:
    leaf = x.clone().requires_grad_()
    return leaf, leaf * 2, (leaf * x).sum()


def unseen(x: Any) -> Any:
    leaf = x.clone().requires_grad_()
    return leaf * x


def in_memory_of_another(x: Any) -> Any:
    y = x * 2
    leaf = y.detach().requires_grad_()
    with torch.no_grad():
        leaf.add_(1)
    return y, leaf, leaf * y


def view_flagged(x: Any) -> Any:
    leaf = (x * 2)[1:].requires_grad_()
    return leaf * 2, leaf


def flagged_without_gradients(x: Any) -> Any:
    with torch.no_grad():
        leaf = (x * 2).requires_grad_()
        y = leaf * 2
    return leaf, y, leaf * 3


def flagged_and_back(x: Any) -> Any:
    leaf = (x * 2).requires_grad_()
    y = leaf * 3
    leaf.requires_grad_(False)
    return y, leaf, leaf * 2


def flagged_again(x: Any) -> Any:
    leaf = (x * 2).requires_grad_()
    y = leaf * 3
    leaf.detach_()
    leaf.requires_grad_()
    return y + leaf * 2, leaf


def differentiated(x: Any) -> Any:
    leaf = (x * 2).detach().requires_grad_()
    (gradient,) = torch.autograd.grad((leaf.sin() * 3).sum(), leaf)
    return gradient, leaf


def moved(x: Any) -> Any:
    leaf = (x * 2).requires_grad_()
    a = leaf * 3
    leaf.data = x * 5
    return a, leaf * 2, leaf


def moved_before_it_is_used(x: Any) -> Any:
    leaf = (x * 2).requires_grad_()
    leaf.data = leaf.data.double()
    return leaf * 2, leaf


def factory(x: Any) -> Any:
    leaf = torch.ones(3, requires_grad=True)
    return leaf, leaf.sum() * x


def unused(x: Any) -> Any:
    return x * 2, torch.zeros(3, requires_grad=True)


made_inside = [flagged, unseen, in_memory_of_another, view_flagged, flagged_without_gradients, flagged_and_back]
made_inside += [flagged_again, differentiated, moved, moved_before_it_is_used, factory, unused]


@backends
@pytest.mark.parametrize("program", made_inside)
def test_a_leaf_made_inside(program: Any, backend: str) -> None:
    alike(lambda: (program, []), plain, backend=backend, sizes=(3,), breaks=0)


@backends
@pytest.mark.parametrize("program", made_inside)
def test_a_leaf_made_inside_at_other_sizes(program: Any, backend: str) -> None:
    alike(lambda: (program, []), plain, backend=backend)


def test_a_leaf_made_inside_under_inductor() -> None:
    alike(lambda: (flagged, []), plain, backend="inductor", sizes=(3,), breaks=0, tolerance=1e-6)


@backends
def test_a_leaf_that_is_written_with_gradients(backend: str) -> None:
    def program(x: Any) -> Any:
        leaf = (x * 2).requires_grad_()
        try:
            leaf.add_(1)
        except RuntimeError as e:
            return [str(e)]
        return None

    alike(lambda: (program, []), plain, backend=backend, sizes=(3,), breaks=0)


@backends
@pytest.mark.parametrize("name", ["requires_grad_", "detach_"])
def test_what_torch_refuses(name: str, backend: str) -> None:
    def program(x: Any) -> Any:
        y = x * 2
        try:
            if name == "requires_grad_":
                y.requires_grad_(False)
            else:
                (y * 2)[1:].detach_()
        except RuntimeError as e:
            return [str(e)]
        return None

    alike(lambda: (program, []), backend=backend, sizes=(3,))


@backends
def test_gradients_of_a_leaf_with_two_memories(backend: str) -> None:
    def program(x: Any) -> Any:
        leaf = (x * 2).requires_grad_()
        a = leaf * 3
        leaf.data = x * 5
        return torch.autograd.grad((a + leaf * 2).sum(), leaf)

    alike(lambda: (program, []), plain, backend=backend, sizes=(3,))


@backends
def test_a_tensor_of_another_kind_that_existed_before_breaks(backend: str) -> None:
    def program(x: Any) -> Any:
        x.requires_grad_()
        return (x * x).real

    stats = alike(lambda: (program, []), lambda n: (torch.ones(3).to(torch.complex64).conj(),), backend=backend)
    assert {found.code for found in stats.breaks} == {"SB0209"}


def storage_taken(p: Any, x: Any) -> Any:
    y = torch.empty(0)
    y.set_(x)
    y.add_(1)
    return y, x


def storage_given(p: Any, x: Any) -> Any:
    p.set_(x * 2)
    return p + 1, p


def swapped(p: Any, x: Any) -> Any:
    a, b = x + 1, x[1:] * 2
    torch.utils.swap_tensors(a, b)
    a.add_(1)
    return a, b, a.shape


def test_a_parameter_is_given_other_memory() -> None:
    def make() -> Any:
        leaf = nn.Parameter(torch.ones(3))

        def program(x: Any) -> Any:
            with torch.no_grad():
                leaf.set_(leaf * x.sum())
            return x * leaf, leaf.requires_grad

        return program, [leaf]

    for backend in BACKENDS:
        alike(make, lambda n: (torch.ones(3) * n,), backend=backend, breaks=0)


@backends
@pytest.mark.parametrize("program", [storage_taken, storage_given, swapped])
def test_tensors_that_take_over_others(program: Any, backend: str) -> None:
    alike(lambda: (program, []), two, backend=backend, breaks=0)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_parameters_may_be_swapped(backend: str) -> None:
    """torch swaps no tensor that anybody holds weakly."""

    def make() -> Any:
        layer = torch.nn.Linear(2, 2)

        def program(x: Any) -> Any:
            torch.utils.swap_tensors(layer.weight, torch.nn.Parameter(layer.weight.detach() * 2))
            return layer(x), layer.weight

        return program, []

    alike(make, lambda n: (torch.randn(n, 2, requires_grad=True),), backend=backend, tolerance=1e-5)


def through_a_view(layer: Any, x: Any) -> Any:
    y = layer(x).sin()
    layer.weight.data = layer.weight.data * 0.5
    return y


def twice(layer: Any, x: Any) -> Any:
    y = x[:, 0] * layer.bias[0] * layer.bias[1]
    layer.bias.data = layer.bias.data + y.detach().sum()
    return y


def of_an_argument(layer: Any, x: Any) -> Any:
    y = x.sin() * layer.bias
    x.data = x.detach() * 0 + 1
    return y


def before_it_is_used(layer: Any, x: Any) -> Any:
    layer.weight.data = layer.weight.data.sin()
    return layer(x).sin()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", [through_a_view, twice, of_an_argument, before_it_is_used])
def test_gradients_of_what_gets_other_data(program: Any, backend: str) -> None:
    """What the backward pass needs of an input is what it was, or what it has become, as in eager execution."""

    def make() -> Any:
        layer = torch.nn.Linear(2, 2)
        return lambda x: program(layer, x), list(layer.parameters())

    alike(make, lambda n: (torch.randn(n, 2, requires_grad=True),), backend=backend, breaks=0, tolerance=1e-5)


@backends
def test_compiling_leaves_no_weak_references(backend: str) -> None:
    layer = torch.nn.Linear(2, 2)
    compiled = stator.compile(layer, backend=backend)
    for size in (1, 2, 3, 3, 3, 3):
        compiled(torch.ones(size, 2)).sum().backward()
    assert not weakref.getweakrefs(layer.weight) and not weakref.getweakrefs(layer.bias)


def test_a_tensor_that_a_view_holds_is_not_swapped() -> None:
    def program(p: Any, x: Any) -> Any:
        a, b = x + 1, x * 2
        view = a[:1]
        try:
            torch.utils.swap_tensors(a, b)
        except RuntimeError:
            return a, b, view
        return view

    alike(lambda: (program, []), two, backend="eager")


@backends
def test_the_data_of_a_result_of_autograd(backend: str) -> None:
    def make() -> Any:
        leaf = torch.ones(3, requires_grad=True)

        def program(x: Any) -> Any:
            return inner(leaf * 2, x), leaf

        def inner(p: Any, x: Any) -> Any:
            return compiled(p, x)

        def assigning(p: Any, x: Any) -> Any:
            a = p * 3
            p.data = x * 2
            return a + p * 5

        compiled = assigning if eager.pop() else stator.compile(assigning, backend=backend)
        return program, [leaf]

    eager = [False, True]
    alike(make, lambda n: (torch.linspace(0.5, 1.5, 3),), sizes=(3,), breaks=0)


# -- Parameters and modules made inside -------------------------------------------------------------------------------


def parameter(x: Any) -> Any:
    p = nn.Parameter(x * 2)
    return p, p.sin().sum()


def parameter_without_gradients(x: Any) -> Any:
    p = nn.Parameter(x * 2, requires_grad=False)
    return p, p.sin()


def layer(x: Any) -> Any:
    return nn.Linear(3, 2)(x)


def layer_kept(x: Any) -> Any:
    made = nn.Linear(3, 2)
    return made(x), [made.weight, made.bias]


def layers(x: Any) -> Any:
    made = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.ReLU(), nn.Linear(4, 1))
    return made(x), [p for p in made.parameters()]


def narrowed(x: Any) -> Any:
    made = nn.Linear(3, 2).double()
    return made(x.double()), made.weight


def frozen_layer(x: Any) -> Any:
    made = nn.Linear(3, 2).requires_grad_(False)
    return made(x), made.weight


def normalised(x: Any) -> Any:
    made = nn.BatchNorm1d(3)
    return made(x), made.running_mean, made.weight


def rows(n: int) -> Any:
    return (torch.linspace(0.1, 0.9, n * 3).reshape(n, 3),)


@backends
@pytest.mark.parametrize(
    "program",
    [parameter, parameter_without_gradients, layer, layer_kept, layers, narrowed, frozen_layer, normalised],
)
def test_modules_made_inside(program: Any, backend: str) -> None:
    alike(lambda: (program, []), rows, backend=backend, sizes=(3,), breaks=0)


@backends
def test_a_module_made_inside_is_the_same_object(backend: str) -> None:
    def program(x: Any) -> Any:
        made = nn.Linear(3, 2)
        return made, made(x)

    made, result = stator.compile(program, backend=backend)(torch.ones(1, 3))
    result.sum().backward()
    assert type(made.weight) is nn.Parameter and made.weight.grad.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert stator.stats().graph_breaks == 0


@backends
def test_a_copied_module(backend: str) -> None:
    def make() -> Any:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))

        def program(x: Any) -> Any:
            other = copy.deepcopy(model)
            return other(x), [p for p in other.parameters()], other[1].running_mean

        return program, list(model.parameters())

    # The gradient of a sum of normalised values is rounding alone, which differs with the order of additions.
    alike(make, rows, backend=backend, sizes=(3,), tolerance=1e-6)


@backends
def test_a_copy_has_what_the_tensor_has(backend: str) -> None:
    buffer = torch.ones(3)
    buffer.mark = ["a"]  # type: ignore[attr-defined]

    def program(x: Any) -> Any:
        listed = copy.deepcopy([buffer, x * 2, buffer])
        listed[0].add_(1)
        return listed[0] is listed[2], listed, buffer, listed[0].mark is buffer.mark, listed[0].mark

    alike(lambda: (program, []), plain, backend=backend, breaks=0)


@pytest.mark.parametrize("make", [lambda t: [t[:2], t[2:]], lambda t: [t, t.view(-1)], lambda t: [t.view(-1)[::2]]])
def test_a_storage_that_several_tensors_have(make: Any) -> None:
    tensors = make(torch.arange(6.0).view(2, 3))

    def program(x: Any) -> Any:
        copied = copy.deepcopy(tensors)
        copied[0].add_(1)
        return copied, x + 1

    alike(lambda: (program, []), plain)


def test_storages_that_are_one_in_another_call() -> None:
    def program(a: Any, b: Any) -> Any:
        first, second = copy.deepcopy([a, b])
        first.add_(1)
        return second

    compiled = stator.compile(program, backend="eager")
    one, other = torch.zeros(3), torch.zeros(3)
    assert compiled(one, other).tolist() == [0, 0, 0]
    assert compiled(one, one.view(3)).tolist() == [1, 1, 1]


# -- what is asked about a tensor -------------------------------------------------------------------------------------


def places(x: Any) -> Any:
    y = x * 2
    node = y.grad_fn
    named = node.name(), type(node).__name__, node is y.grad_fn, node is not None
    z = y.sin().split(1)[1]
    return y, named, x.grad_fn, y.detach().grad_fn, z.output_nr, y.is_leaf, z.grad_fn.name()


def versions(x: Any) -> Any:
    y = x * 2
    before = y._version
    y.add_(1)
    view = y[:1]
    view.mul_(2)
    return y, before, y._version, view._version


def version_of_an_argument(x: Any) -> Any:
    before = x._version
    x.add_(1)
    x.mul_(2)
    return x * 2, x._version - before


@backends
def test_the_node_of_a_tensor(backend: str) -> None:
    alike(lambda: (places, []), vector, backend=backend, breaks=0)


def hooked_node(x: Any) -> Any:
    y = x.sin()
    y.grad_fn.register_hook(lambda into, out: (into[0] * 2,))
    return y * 3


def walked(x: Any) -> Any:
    y = x.sin().exp()
    return y, type(y.grad_fn.next_functions[0][0]).__name__


def node_as_result(x: Any) -> Any:
    y = x.sin().exp()
    node = y.grad_fn
    return y * 2, lambda: (type(node).__name__, type(node.next_functions[0][0]).__name__, node is y.grad_fn)


def node_after_a_break(x: Any) -> Any:
    y = x.sin().exp()
    node = y.grad_fn
    stator.graph_break()
    return y * 2, type(node).__name__, node is y.grad_fn


@backends
@pytest.mark.parametrize("program", [hooked_node, walked, node_after_a_break])
def test_a_node_that_leaves_the_trace(program: Any, backend: str) -> None:
    alike(lambda: (program, []), vector, backend=backend)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_node_as_a_result(backend: str) -> None:
    result, look = stator.compile(node_as_result, backend=backend)(torch.ones(3, requires_grad=True))
    assert look() == ("ExpBackward0", "SinBackward0", True)
    result.sum().backward()


@backends
@pytest.mark.parametrize("program", [versions, version_of_an_argument])
def test_how_often_a_tensor_was_written(program: Any, backend: str) -> None:
    alike(lambda: (program, []), plain, backend=backend, breaks=0)


@backends
def test_a_tensor_that_grows(backend: str) -> None:
    def program(x: Any) -> Any:
        y, z = torch.empty(0), torch.zeros(1)
        y.resize_(2, 3)
        y.fill_(2)
        z.resize_as_(x).copy_(x)
        return y, z * 2

    alike(lambda: (program, []), plain, backend=backend, breaks=0)


@backends
def test_factories_after_a_change_of_the_default_dtype(backend: str) -> None:
    def program(x: Any) -> Any:
        torch.set_default_dtype(torch.float64)
        y = torch.ones(2)
        torch.set_default_dtype(torch.float32)
        assert y.dtype is torch.float64
        return y, (x + 1).to(y.dtype).sum() + y, str(y.dtype)

    for n in (3, 4):
        stator.reset()
        x = torch.ones(n, requires_grad=True)
        for have, want in zip(stator.compile(program, backend=backend)(x), program(x), strict=True):
            assert have == want if isinstance(want, str) else have.dtype is want.dtype and torch.equal(have, want)


@backends
def test_a_tensor_resized_by_sizes_that_vary(backend: str) -> None:
    def program(x: Any, y: Any) -> Any:
        y.resize_(x.shape).fill_(2)
        return (x * 2).resize_(2), (y + 1).resize_(x.shape[0]), y

    alike(lambda: (program, []), lambda n: (*plain(n), torch.ones(n)), backend=backend, breaks=0)


# -- arguments that become leaves -------------------------------------------------------------------------------------


def argument_flagged(x: Any) -> Any:
    y = x * 2
    x.requires_grad_()
    return y, x * 3, x


def argument_flagged_at_the_end(x: Any) -> Any:
    x.requires_grad_()
    return x


def argument_differentiated(x: Any) -> Any:
    x.requires_grad_(True)
    y = (x.sin() * x).sum()
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    return gradient, y


def argument_flagged_for_a_while(x: Any) -> Any:
    x.requires_grad = True
    y = x * 2
    x.requires_grad = False
    return y, x * 3


def argument_written(x: Any) -> Any:
    x.add_(1)
    x.requires_grad_()
    return x * 2, x


@backends
@pytest.mark.parametrize(
    "program",
    [
        argument_flagged,
        argument_flagged_at_the_end,
        argument_differentiated,
        argument_flagged_for_a_while,
        argument_written,
    ],
)
def test_an_argument_becomes_a_leaf(program: Any, backend: str) -> None:
    if (program, backend) == (argument_differentiated, "aot_eager"):
        pytest.skip("AOTAutograd has no second derivative")
    alike(lambda: (program, []), plain, backend=backend, breaks=0)
    if program is not argument_written:
        alike(lambda: (program, []), lambda n: (torch.linspace(0, 1, n + 2)[2:],), backend=backend, breaks=0)


@backends
def test_backward_to_a_leaf_with_two_memories(backend: str) -> None:
    def program(x: Any) -> Any:
        leaf = (x * 2).requires_grad_()
        a = leaf * 3
        leaf.data = x * 5
        (a + leaf * 2).sum().backward()
        return leaf.grad, leaf

    alike(lambda: (program, []), plain, backend=backend, sizes=(3,))


@backends
def test_a_view_that_becomes_a_leaf_is_written(backend: str) -> None:
    def program(x: Any) -> Any:
        x.requires_grad_()
        try:
            x.add_(1)
        except RuntimeError as e:
            return [str(e)]
        return None

    alike(lambda: (program, []), lambda n: (torch.ones(6)[:n],), backend=backend, sizes=(3,), calls=1)


@backends
def test_the_gradient_of_a_new_leaf_is_assigned(backend: str) -> None:
    def program(x: Any) -> Any:
        leaf = nn.Parameter(x * 2)
        leaf.grad = x * 3
        first = leaf.grad
        leaf.grad = None
        other = nn.Parameter(x)
        other.grad = first * 2
        return leaf, other, first, other.grad, [leaf.grad]

    alike(lambda: (program, []), plain, backend=backend, breaks=0)


@backends
def test_parameters_that_are_frozen_no_more(backend: str) -> None:
    def make() -> Any:
        torch.manual_seed(0)
        model = nn.Linear(3, 3).requires_grad_(False)

        def program(x: Any) -> Any:
            for parameter in model.parameters():
                parameter.requires_grad_(True)
            return model(x)

        return program, list(model.parameters())

    alike(make, rows, backend=backend, breaks=0)


@backends
def test_a_graph_that_fails_leaves_the_argument_as_it_was(backend: str) -> None:
    def program(x: Any, i: Any) -> Any:
        x.requires_grad_()
        return (x * 2)[i]

    x = torch.ones(3)
    with pytest.raises(IndexError):
        stator.compile(program, backend=backend)(x, torch.tensor([5]))
    assert x.requires_grad  # the frame has been executed again


@backends
def test_an_array_keeps_the_memory_that_it_was_made_of(backend: str) -> None:
    def program(p: Any, x: Any) -> Any:
        array = p.numpy()
        p.data = x * 2
        p.add_(1)
        return p, array.sum()

    alike(lambda: (program, []), two, backend=backend)


@backends
def test_a_leaf_after_a_break(backend: str) -> None:
    def program(x: Any) -> Any:
        leaf = nn.Parameter(x * 2)
        y = (leaf * x).sum()
        stator.graph_break()
        y.backward()
        return leaf.grad, leaf

    alike(lambda: (program, []), plain, backend=backend)
