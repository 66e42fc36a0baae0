# needs: torch
"""Leaf functions: opaque to the tracer and to the backend, with gradients, writes and hooks."""

import pytest
import torch

import stator

LOG: list[object] = []


@stator.leaf_function
def logged(x, scale=2.0):
    LOG.append(x.sum().item())
    return {"out": x * scale, "sizes": [x.shape[0], None], "pair": (x.mean(dim=-1),)}


@logged.register_fake
def _(x, scale=2.0):
    return {"out": torch.empty_like(x), "sizes": [x.shape[0], None], "pair": (x.new_empty(x.shape[:-1]),)}


@stator.leaf_function
def noted(x):
    LOG.append(x.shape)


@noted.register_fake
def _(x):
    return None


@stator.leaf_function(mutates_args={"buffers[0]"})
def accumulate(x, buffers):
    buffers[0].add_(x.sum().item())
    return x + buffers[1]


@accumulate.register_fake
def _(x, buffers):
    return torch.empty_like(x)


@stator.leaf_function
def applied(module, x):
    LOG.append("applied")
    return module(x)


@applied.register_fake
def _(module, x):
    return x.new_empty(*x.shape[:-1], module.weight.shape[0])


@pytest.fixture(autouse=True)
def empty_log():
    LOG.clear()


@pytest.fixture(params=["eager", "aot_eager"])
def backend(request):
    return request.param


def test_it_runs_at_each_call_as_part_of_one_graph(backend):
    def f(x):
        made = logged(x + 1, scale=3.0)
        noted(made["out"])
        return made["out"] - 1, made["sizes"], made["pair"][0]

    compiled = stator.compile(f, backend=backend, fullgraph=True)
    for fill in (1.0, 2.0):
        x = torch.full((2, 3), fill)
        expected, log = f(x), [*LOG]
        LOG.clear()
        out, sizes, mean = compiled(x)
        assert torch.equal(out, expected[0]) and sizes == [2, None] and torch.equal(mean, expected[2])
        assert log == LOG
        LOG.clear()


def test_what_it_does_happens_even_if_its_result_is_unused(backend):
    def f(x):
        logged(x)
        return x + 1

    compiled = stator.compile(f, backend=backend, fullgraph=True)
    compiled(torch.ones(2, 2))
    compiled(torch.zeros(2, 2))
    assert LOG == [4.0, 0.0]


def test_gradients_flow_through_it_and_into_modules(backend):
    def f(x):
        return applied(layer, x * 2).sin().sum()

    layer = torch.nn.Linear(3, 4)
    x = torch.randn(2, 3, requires_grad=True)
    f(x).backward()
    expected = [x.grad.clone(), layer.weight.grad.clone(), layer.bias.grad.clone()]
    x.grad = layer.weight.grad = layer.bias.grad = None
    stator.compile(f, backend=backend, fullgraph=True)(x).backward()
    for got, wanted in zip((x.grad, layer.weight.grad, layer.bias.grad), expected, strict=True):
        torch.testing.assert_close(got, wanted)
    assert LOG == ["applied"] * 2


def test_declared_writes_are_seen(backend):
    def f(x, a, b):
        before = a * 1
        out = accumulate(x, [a, b])
        return before, out, a + 0

    x, b = torch.ones(2), torch.full((2,), 5.0)
    mine, theirs = torch.zeros(2), torch.zeros(2)
    expected = f(x, mine, b)
    got = stator.compile(f, backend=backend, fullgraph=True)(x, theirs, b)
    assert all(map(torch.equal, got, expected)) and torch.equal(mine, theirs)


def test_undeclared_writes_are_an_error():
    @stator.leaf_function
    def sneaky(x):
        x.add_(1)
        return x * 2

    @sneaky.register_fake
    def _(x):
        return torch.empty_like(x)

    with pytest.raises(RuntimeError, match="in-place mutation"):
        stator.compile(lambda x: sneaky(x), backend="eager")(torch.ones(2))


@pytest.mark.parametrize("count", [1, 2])
def test_hooks_see_the_gradients_once(backend, count):
    @stator.leaf_function
    def watched(x, n, y):
        return x * y * n

    @watched.register_fake
    def _(x, n, y):
        return torch.empty_like(x)

    @watched.register_multi_grad_hook
    def _(*grads):
        LOG.append([grad.clone() for grad in grads])

    def f(x, y):
        # not leaves: see leaf_function
        return watched(x + 0, 3, y + 0).sum()

    for call in (f, stator.compile(f, backend=backend, fullgraph=True)):
        x, y = (torch.full((2,), n, requires_grad=i < count) for i, n in enumerate((2.0, 5.0)))
        call(x, y).backward()
        (grads,) = LOG
        assert len(grads) == count and all(map(torch.equal, grads, (x.grad, y.grad)))
        LOG.clear()


def test_structures_must_agree():
    @stator.leaf_function
    def pair(x):
        return x, x + 1

    @pair.register_fake
    def _(x):
        return torch.empty_like(x)

    with pytest.raises(AssertionError, match="output structure mismatch"):
        stator.compile(lambda x: pair(x), backend="eager")(torch.ones(2))


def test_a_fake_implementation_is_needed():
    @stator.leaf_function
    def bare(x):
        return x

    for call in (bare, stator.compile(lambda x: bare(x), backend="eager")):
        with pytest.raises(ValueError, match=r"leaf_function 'bare' requires a fake implementation"):
            call(torch.ones(2))


def test_names_of_what_is_written_are_checked():
    with pytest.raises(ValueError, match="refers to parameter 'y', which is not a parameter of 'f'"):

        @stator.leaf_function(mutates_args={"y[0]"})
        def f(x):
            return x


def test_a_module_made_inside_is_refused_clearly():
    def f(x):
        return applied(torch.nn.Identity(), x)

    with pytest.raises(stator.GraphBreakError, match="made in the compiled function"):
        stator.compile(f, backend="eager", fullgraph=True)(torch.ones(2, 3))


def test_torchs_own_mark_is_heeded():
    from torch._dynamo.decorators import leaf_function

    @leaf_function
    def theirs(x):
        LOG.append(x.tolist())
        return (x * 2,)

    @theirs.register_fake
    def theirs_fake(x):
        return (torch.empty_like(x),)

    compiled = stator.compile(lambda x: theirs(x)[0] + 1, backend="eager", fullgraph=True)
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 3.0)) and LOG == [[1.0, 1.0]]


def test_a_parameter_that_the_module_gets_later_has_gradients_too():
    model = torch.nn.Linear(3, 3)

    @stator.leaf_function
    def run(module, x):
        result = module(x)
        return result * module.scale if hasattr(module, "scale") else result

    @run.register_fake
    def _(module, x):
        return torch.empty_like(x)

    compiled = stator.compile(lambda x: run(model, x).sum(), backend="aot_eager")
    x = torch.randn(2, 3)
    compiled(x).backward()
    model.scale = torch.nn.Parameter(torch.full((3,), 2.0))
    compiled(x).backward()
    assert torch.allclose(model.scale.grad, model(x).sum(0))
