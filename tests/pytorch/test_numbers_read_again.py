"""Numbers read again of tensors that have been written in between: they are others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator

Program = Callable[..., Any]


def struck_out(x: torch.Tensor) -> Any:
    picked = []
    for _ in range(3):
        i = x.argmax().item()
        picked.append(i)
        x[i] = -1.0
    return picked, x


def struck_out_by_a_tensor(x: torch.Tensor) -> Any:
    i = x.argmax()
    x[i] = -1.0
    return i.item(), x.argmax().item()


def found_before_and_read_after(x: torch.Tensor) -> Any:
    first = x.argmax()
    x[first] = -1.0
    second = x.argmax()
    return first.item(), second.item(), first.item(), second.item(), x.argmax().item()


def made_in_the_function(x: torch.Tensor) -> Any:
    y = x * 2
    before = y.sum().item()
    y[0] = 9
    return before, y.sum().item()


def through_views(x: torch.Tensor) -> Any:
    rest, wide = x[1:], x.view(1, -1).expand(2, -1)
    before = rest.max().item(), wide.max().item()
    x.zero_()
    return before, rest.max().item(), wide.max().item()


def through_data(x: torch.Tensor) -> Any:
    before = x.max().item()
    x.data.zero_()
    return before, x.max().item()


def through_arrays(x: torch.Tensor) -> Any:
    array = x.numpy()
    before = x.max().item()
    array[0] = 77
    return before, x.max().item()


def written_itself(x: torch.Tensor) -> Any:
    total = x.sum()
    found = [total.item()]
    for _ in range(2):
        total.add_(1)
        found += [total.item(), total.item()]
    return found


def lists_of_tensors(x: torch.Tensor) -> Any:
    before = x.sum().item()
    torch._foreach_add_([x], 1.0)
    return before, x.sum().item()


def trained(x: torch.Tensor) -> Any:
    weight = torch.nn.Parameter(x.clone())
    optimizer = torch.optim.SGD([weight], lr=0.5)
    before = weight.sum().item()
    (weight * weight).sum().backward()
    gradient = weight.grad.sum().item()  # type: ignore[union-attr]
    optimizer.step()
    (weight * weight).sum().backward()
    return before, weight.sum().item(), gradient, weight.grad.sum().item()  # type: ignore[union-attr]


def used_in_the_graph(x: torch.Tensor) -> Any:
    i = x.argmax().item()
    y = x * i
    x[i] = -1.0
    return y * x.argmax().item() + i


PROGRAMS: list[Program] = [
    struck_out, struck_out_by_a_tensor, found_before_and_read_after, made_in_the_function, through_views, through_data,
    through_arrays, written_itself, lists_of_tensors, trained, used_in_the_graph,
]  # fmt: skip


def run(program: Program, size: int) -> str:
    return str(program(torch.arange(float(size)) % 3 + torch.arange(float(size)) / 8))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_writes_in_between_count(program: Program, backend: str) -> None:
    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for size in (4, 6, 9):
        assert run(compiled, size) == run(program, size)
    assert stator.stats().breaks == ()


def test_writes_in_between_count_with_inductor() -> None:
    stator.reset()
    for program in (struck_out, used_in_the_graph):
        assert run(stator.compile(program, backend="inductor"), 4) == run(program, 4)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_writes_through_another_tensor_in_the_memory_count(backend: str) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> Any:
        before = x.max().item(), x[0].item()
        y.zero_()
        return before, x.max().item(), x[0].item()

    def run(function: Program, other: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        x = torch.tensor([1.0, 5.0, 3.0])
        return function(x, other(x))

    others: list[Callable[[torch.Tensor], torch.Tensor]] = [torch.clone, lambda x: x.view(3), torch.clone]
    for order in (others, others[1:]):
        stator.reset()
        compiled = stator.compile(program, backend=backend)
        for other in order:
            assert run(compiled, other) == run(program, other)


def test_what_nobody_writes_to_is_read_once() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        x[0] = 1
        return x[: int(x[1])] + x[: int(x[1])]

    stator.reset()
    graph = stator.trace(program, torch.tensor([3, 2, 2, 1]))
    assert sum(node.target == "item" for node in graph.graph.nodes) == 1


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_number_of_64_bits_that_an_input_has_is_no_constant(backend: str) -> None:
    """AOTAutograd has a symbol for it, begins again where it makes no tensor of that, and Inductor takes out copies."""

    def read(x: torch.Tensor, s: torch.Tensor) -> Any:
        number = s.item() / 7
        return x * number, number, s.detach().item() * 3, torch.full((2,), s.clone().item())

    compiled = stator.compile(read, backend=backend)
    for number in (0.1, 1.7, 0.3):
        args = torch.ones(3), torch.tensor(number, dtype=torch.float64)
        (x, *rest), (y, *others) = compiled(*args), read(*args)
        assert torch.equal(x, y) and str(rest) == str(others)
    assert stator.stats().graphs == 1
