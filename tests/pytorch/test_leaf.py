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
        return watched(x, 3, y).sum()

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


def _torchs(function):
    from torch._dynamo.decorators import leaf_function

    return leaf_function(function)


@pytest.mark.parametrize("mark", [stator.leaf_function, _torchs])
def test_what_is_registered_after_the_first_call_is_seen(mark, backend):
    @mark
    def late(x):
        return (x * 2,)

    def call(x):
        return late(x)[0] + 1

    compiled = stator.compile(call, backend=backend)
    for each in (call, compiled):
        with pytest.raises(ValueError, match="requires a fake implementation"):
            each(torch.ones(2))
    late.register_fake(lambda x: (torch.empty_like(x),))
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 3.0))
    for size in (2, 3):
        compiled(torch.ones(size, requires_grad=True)).sum().backward()
        late.register_multi_grad_hook(lambda grad, size=size: LOG.append((size, grad.tolist())))
    compiled(torch.ones(2, requires_grad=True)).sum().backward()
    assert LOG == [(2, [2.0] * 3), (3, [2.0] * 2)]


def test_a_fake_implementation_that_fails_is_named(backend):
    @stator.leaf_function
    def scaled(x):
        return x * 2

    @scaled.register_fake
    def _(x):
        return torch.empty_like(missing)  # noqa: F821

    compiled = stator.compile(lambda x: scaled(x), backend=backend)
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
    (told,) = stator.stats().breaks
    assert told.code == "SB0204" and "its fake implementation fails: NameError: name 'missing'" in told.reason
    with pytest.raises(stator.GraphBreakError) as caught:
        stator.compile(lambda x: scaled(x), backend=backend, fullgraph=True)(torch.ones(2))
    assert "mend what is given to scaled.register_fake" in str(caught.value)


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


@stator.leaf_function
def seen(*tensors):
    LOG.append("called")


@seen.register_fake
def _(*tensors):
    return None


@seen.register_multi_grad_hook
def _(*gradients):
    LOG.append([None if gradient is None else gradient.tolist() for gradient in gradients])


def _single(x):
    y = x * 3
    seen(y)
    return y


def _one_of_two_results(x):
    y, other = x * 3, x.sin()
    seen(y)
    return y, other


def _dependent_results(x):
    y = x * 3
    z = y.exp()
    seen(y, z)
    return y, z


def _the_end_and_another(x):
    y = x * 3
    z = y.exp()
    seen(y, z)
    return z


def _inner(x):
    y = x * 3
    z = y.exp()
    seen(y, z)
    return (y * z).sum()


def _argument(x):
    seen(x)
    return x * 3


def _mixed(x):
    y = x * 3
    seen(x, y)
    return y.exp()


PROGRAMS = {f.__name__[1:]: f for f in (_single, _one_of_two_results, _dependent_results, _the_end_and_another, _inner)}
PROGRAMS |= {f.__name__[1:]: f for f in (_argument, _mixed)}


def _logs(function, sizes=(2, 2, 3, 4)):
    """What is logged, with the gradients, where gradients of each result alone and of all are computed."""
    found = []
    for size in sizes:
        results = function(torch.ones(size, requires_grad=True))
        for chosen in range(len(results) + 1) if isinstance(results, tuple) else [None]:
            x = torch.linspace(0, 1, size, requires_grad=True)
            LOG.clear()
            results = function(x)
            if chosen is not None:
                results = torch.cat(results) if chosen == len(results) else results[chosen]
            loss = (results * 2).sum() + (x * x).sum()
            loss.backward()
            found.append(([*LOG], x.grad.tolist()))
    return found


@pytest.mark.parametrize("program", PROGRAMS)
def test_hooks_are_called_as_in_eager(program, backend):
    function = PROGRAMS[program]
    expected = _logs(function)
    assert str(_logs(stator.compile(function, backend=backend))) == str(expected)


@pytest.mark.parametrize("program", ["single", "inner", "argument"])
def test_hooks_break_nothing(program, backend):
    stator.compile(PROGRAMS[program], backend=backend, fullgraph=True)(torch.ones(2, requires_grad=True))


def _registering(x):
    x.register_hook(lambda gradient: LOG.append(gradient.tolist()))


@stator.leaf_function
def registers(x):
    _registering(x)
    LOG.append("called")
    return x * 2


@registers.register_fake
def _(x):
    return torch.empty_like(x)


def _registered_on_result(x):
    y, other = x * 3, x.sin()
    z = registers(y)
    return y, z, other


def _registered_on_argument(x):
    return registers(x) * x


@pytest.mark.parametrize("function", [_registered_on_result, _registered_on_argument])
def test_hooks_that_it_registers_itself_are_not_lost(function, backend):
    expected = _logs(function)
    assert str(_logs(stator.compile(function, backend=backend))) == str(expected)
    with pytest.raises(stator.GraphBreakError, match="registers hooks on tensors"):
        stator.compile(function, backend=backend, fullgraph=True)(torch.ones(2, requires_grad=True))


def test_hooks_that_names_do_not_tell_of_are_an_error(backend):
    hidden = {"call": _registering}

    @stator.leaf_function
    def hides(x):
        hidden["call"](x)
        return x * 2

    hides.register_fake(torch.empty_like)
    with pytest.raises(RuntimeError, match="leaf_function 'hides' has registered a hook"):
        stator.compile(lambda x: hides(x), backend=backend)(torch.ones(2, requires_grad=True))


def test_hooks_that_torchs_own_mark_loses_in_eager_break_nothing(backend):
    from torch._dynamo.decorators import leaf_function

    @leaf_function
    def theirs(x):
        _registering(x)

    theirs.register_fake(lambda x: None)

    def f(x):
        theirs(x)
        return x * 2

    assert _logs(f) == _logs(stator.compile(f, backend=backend, fullgraph=True))


def test_inductor_leaves_it_to_python():
    def f(x):
        y = x * 3
        z = logged(y.sin())["out"]
        seen(y)
        return y, z

    expected = _logs(f, sizes=[2])
    assert str(_logs(stator.compile(f, backend="inductor"), sizes=[2])) == str(expected)
