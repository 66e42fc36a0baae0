"""Graphs that fail when they run: the frame is executed again as ordinary Python, whose error it is."""

import operator
import traceback

import pytest
import torch

import stator
from tests.pytorch.each_backend import each_backend

BACKENDS = ["eager", "aot_eager", "inductor"]


def looked_up(table, index):
    return inner(table + 1, index)


def inner(table, index):
    return torch.nn.functional.embedding(index, table).sum() + 1


def caught(table, index):
    try:
        return inner(table, index)
    except IndexError as e:
        return str(e)


def text_of(function, *args):
    with pytest.raises(IndexError) as raised:
        function(*args)
    return "".join(traceback.format_exception(raised.value)[2:])


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_error_comes_from_the_line_of_the_program(backend):
    table, index = torch.randn(3, 2), torch.tensor([0, 7])
    compiled = stator.compile(looked_up, backend=backend, fullgraph=True)
    compiled(table, torch.tensor([0, 1]))
    for _ in range(2):
        assert text_of(compiled, table, index) == text_of(looked_up, table, index)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_program_may_catch_it(backend):
    table, index = torch.randn(3, 2), torch.tensor([0, 7])
    compiled = stator.compile(caught, backend=backend, fullgraph=True)
    compiled(table, torch.tensor([0, 1]))
    assert compiled(table, index) == caught(table, index)


def multiplied(x):
    x.mul_(x.expand(2, 3).reshape(-1))


def test_operands_that_share_memory():
    x = torch.arange(6.0).reshape(2, 3)
    with pytest.raises(RuntimeError) as expected:
        multiplied(x)
    with pytest.raises(RuntimeError) as raised:
        stator.compile(multiplied, backend="eager")(x)
    assert str(raised.value) == str(expected.value)


def test_index_of_a_comparison_of_sizes():
    compiled = stator.compile(lambda n: operator.index(0 < n < 5), backend="eager", dynamic=True)
    assert [compiled(n) for n in (2, 3, 7, 9)] == [1, 1, 0, 0]


def test_sizes_and_truth_values():
    def fn(n):
        return n in [True], n == True, n + True, True < n  # noqa: E712

    compiled = stator.compile(fn, backend="eager", dynamic=True)
    assert [compiled(n) for n in (5, 7, 255)] == [fn(n) for n in (5, 7, 255)]


def written(x):
    x.add_(1)
    return ored(x.reshape(2, 3))


def ored(x):
    x |= 1  # kernels refuse it, fake tensors do not
    return x


def written_after_a_break(x):
    x.add_(1)
    stator.graph_break()
    x.mul_(2)
    return ored(x.view(3, 2))


@pytest.mark.parametrize("function", [written, written_after_a_break])
def test_the_line_where_the_graph_has_written_before(function):
    def text(called):
        with pytest.raises(NotImplementedError) as raised:
            called(torch.arange(6.0))
        return "".join(traceback.format_exception(raised.value)[2:])

    compiled = stator.compile(function, backend="eager")
    for _ in range(2):
        assert text(compiled) == text(function)


def test_views_that_autograd_has_lost_track_of():
    def fn(x):
        with torch.no_grad():
            x.view(1).mul_(x)

    x = torch.full((1,), 3.0, requires_grad=True)
    stator.compile(fn, backend="eager", fullgraph=True)(x)
    assert x.item() == 9


def test_a_backend_that_fails_within_inference_mode():
    def backend(gm, inputs):
        guard = torch.autograd.grad_mode._enter_inference_mode(True)
        raise RuntimeError(f"within {guard}")

    x = torch.ones(3, requires_grad=True)
    for _ in range(2):
        with pytest.raises(stator.BackendError, match="within"):
            stator.compile(lambda x: x.sin() * 2, backend=backend)(x)
    assert (x * 2).sum() == 6  # the thread dispatches as before
    torch.testing.assert_close(stator.compile(lambda x: torch.vmap(torch.sin)(x), backend="aot_eager")(x), x.sin())


@torch.inference_mode()
def flattened(x):
    return x.view(-1) * 2


def part_without_gradients(x):
    with torch.inference_mode():
        a = x.detach() * 2
    return a.clone() * x


def views_of_what_was_made_before(x):
    y = x.exp()
    with torch.inference_mode():
        a = y.t() + 1
        b = (a * 2).reshape(-1)
    return a.sum().clone() + y, b


def written_through_a_view(x):
    x = x.detach().clone()
    with torch.inference_mode():
        x.view(-1)[1:].add_(1)
    return x + 1


VIEWING = [flattened, part_without_gradients, views_of_what_was_made_before, written_through_a_view]


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize(
    ("program", "backend"),
    each_backend(VIEWING, inductor=[views_of_what_was_made_before, written_through_a_view]),
)
def test_views_in_inference_mode_of_what_was_made_outside(program, backend, fullgraph):
    compiled = stator.compile(program, backend=backend, fullgraph=fullgraph)
    for size in (3, 5, 7):
        outcomes = []
        for run in (program, compiled):
            x = torch.linspace(-1, 1, 2 * size).reshape(2, size).requires_grad_()
            result = run(x)
            first = result[0] if isinstance(result, tuple) else result
            if first.requires_grad:
                first.sum().backward()
            outcomes.append((result, x.grad))
        torch.testing.assert_close(*outcomes)
