"""Operators that programs define: with and without fakes, gradients and mutation, of libraries and by `custom_op`."""

import numpy as np
import pytest
import torch

import stator

NAME = "stator_tests"
BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager"])
_COMPOSITE = "CompositeImplicitAutograd"
LIBRARY = torch.library.Library(NAME, "FRAGMENT")


def define(schema, kernel, key="CPU", fake=None):
    name = schema.partition("(")[0]
    LIBRARY.define(schema)
    LIBRARY.impl(name, kernel, key)
    if fake is not None:
        torch.library.register_fake(f"{NAME}::{name}", fake, lib=LIBRARY)
    return getattr(getattr(torch.ops, NAME), name)


def add_one(x):
    x.add_(1)


composed = define(
    "composed(Tensor x, float s=2.0) -> Tensor", lambda x, s=2.0: x.sin() * s, "CompositeImplicitAutograd"
)
hidden = define("hidden(Tensor x) -> Tensor", lambda x: x * 3, fake=torch.empty_like)
unfaked = define("unfaked(Tensor x) -> Tensor", lambda x: torch.from_numpy(np.sin(x.detach().numpy())))
written = define("written(Tensor(a!) x) -> ()", add_one, fake=lambda x: None)
bumped = define("bumped(Tensor(a!) x, float by) -> Tensor(a!)", lambda x, by: x.add_(by), fake=lambda x, by: x)
halved = define("halved(Tensor(a) x) -> Tensor(a)", lambda x: x[:2], fake=lambda x: x[:2])
both = define(
    "both(Tensor(a!) x, Tensor y) -> (Tensor(a!), Tensor)",
    lambda x, y: (x.mul_(2), x + y),
    fake=lambda x, y: (x, x + y),
)
counted = define(
    "counted(Tensor x, int[] sizes) -> (Tensor, Tensor[])",
    lambda x, sizes: (torch.tensor(len(sizes)), [x.detach().clone() for _ in sizes]),
    fake=lambda x, sizes: (torch.empty((), dtype=torch.int64), [torch.empty_like(x) for _ in sizes]),
)


@torch.library.custom_op(f"{NAME}::scaled", mutates_args=())
def scaled(x: torch.Tensor, k: int, *, shift: float = 0.5) -> tuple[torch.Tensor, torch.Tensor]:
    return x * k + shift, x.sum()


@scaled.register_fake
def _(x, k, *, shift=0.5):
    return torch.empty_like(x), x.new_empty(())


def _setup(ctx, inputs, keyword_only_inputs, output):
    ctx.k = inputs[1]


def _backward(ctx, of_scaled, of_sum):
    return of_scaled * ctx.k + of_sum, None


scaled.register_autograd(_backward, setup_context=_setup)


@torch.library.custom_op(f"{NAME}::doubled", mutates_args=("x",))
def doubled(x: torch.Tensor) -> None:
    x.mul_(2)


def of_composed(x):
    return composed(x) + composed(x, 3.0)


def of_custom(x):
    y, total = scaled(x, 3, shift=1.0)
    return y * total + torch.ops.stator_tests.scaled.default(x, 2)[0]


def of_hidden(x):
    return hidden(x.sin()) * 2


def of_unfaked(x):
    return x * unfaked(x.detach())


def of_written(x):
    y = x.detach().clone()
    written(y)
    doubled(y)
    return y * x


def of_aliases(x):
    """AOTAutograd knows no operators but ATen's that give what they were given."""
    y = x.detach().clone()
    z = bumped(y, 2.0)
    halved(y).mul_(3)
    first, second = both(y, z * 2)
    return x * y + z, first * second * x


def of_counted(x):
    count, copies = counted(x.detach(), [1, 2])
    return copies[0] * copies[1] * count + x


def outcome(function, size):
    torch.manual_seed(size)
    x = torch.randn(size, 3, requires_grad=True)
    out = function(x)
    out = torch.stack(out) if isinstance(out, tuple) else out
    out.sum().backward()
    return out.detach(), x.grad


@BACKENDS
@pytest.mark.parametrize(
    ("function", "breaks"),
    [
        *((of_composed, 0), (of_custom, 0), (of_written, 0), (of_counted, 0)),
        (of_hidden, {"eager": 0, "aot_eager": 1}),
        (of_aliases, {"eager": 0, "aot_eager": 3}),
        (of_unfaked, 1),
    ],
)
def test_operators(function, breaks, backend):
    compiled = stator.compile(function, backend=backend)
    outcome(compiled, 4)
    expected = breaks if isinstance(breaks, int) else breaks[backend]
    assert stator.stats().graph_breaks == expected, stator.stats().breaks
    for size in (4, 7):
        torch.testing.assert_close(outcome(compiled, size), outcome(function, size))


def test_reasons_name_the_operator_as_the_program_does():
    compiled = stator.compile(of_unfaked, backend="eager")
    compiled(torch.ones(2, 3))
    assert stator.stats().breaks[0].reason.startswith("torch.ops.stator_tests.unfaked cannot")
    with pytest.raises(stator.GraphBreakError) as caught:
        stator.compile(of_unfaked, backend="eager", fullgraph=True)(torch.ones(2, 3))
    assert caught.value.hint == "register a fake implementation of the operator (torch.library.register_fake)"


def test_a_kernel_is_not_run_to_learn_how_it_fails():
    """Only torch's own operators are asked for their errors, with tensors made up for that."""
    seen = []
    library = torch.library.Library(NAME, "FRAGMENT")
    library.define("seen(Tensor x) -> ()")
    library.impl("seen", lambda x: seen.append(x.sum().item()), "CPU")

    def f(x):
        torch.ops.stator_tests.seen(x)
        return x + 1

    stator.compile(f, backend="eager")(torch.full((2,), 5.0))
    assert seen == [10.0]


def test_with_inductor():
    compiled = stator.compile(lambda x: of_custom(x) + of_written(x), backend="inductor", fullgraph=True)
    for size in (4, 7):
        got, expected = outcome(compiled, size), outcome(lambda x: of_custom(x) + of_written(x), size)
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


def test_gradients_inside_of_a_kernel_are_not_lost():
    compiled = stator.compile(of_hidden, backend="aot_eager")
    compiled(torch.ones(3, requires_grad=True))
    (brk,) = stator.stats().breaks
    assert "no gradients are registered for it" in brk.reason
    with torch.no_grad():
        stator.reset()
        stator.compile(of_hidden, backend="aot_eager", fullgraph=True)(torch.ones(3, requires_grad=True))


def test_a_loss_that_reads_lengths_is_in_the_graph():
    lengths = torch.full((2,), 5), torch.full((2,), 2)

    def f(x):
        targets = torch.ones(2, 2, dtype=torch.long)
        return torch.nn.functional.ctc_loss(x.log_softmax(2), targets, *lengths) * 2

    x = torch.randn(5, 2, 4)
    compiled = stator.compile(f, backend="aot_eager")
    torch.testing.assert_close(compiled(x), f(x))
    assert stator.stats().graph_breaks == 0


def test_an_operator_that_is_looked_up_while_tracing_is_compiled_once():
    LIBRARY.define("looked_up(Tensor x) -> Tensor")
    LIBRARY.impl("looked_up", lambda x: x * 3, "CompositeExplicitAutograd")
    backend = stator.testing.CountingBackend()
    compiled = stator.compile(lambda x: torch.ops.stator_tests.looked_up.default(x) + 1, backend=backend)
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 4.0))
    assert len(backend.graphs) == 1
