"""Conditions on what tensors hold, as the numbers they are: `n += int(loss > 1)`."""

from typing import Any

import numpy as np
import pytest
import torch

import stator
from tests.pytorch.each_backend import each_backend
from tests.pytorch.training import BACKENDS


class Counter:
    def __init__(self):
        self.n = 0


#: what makes a number of a tensor
COUNTING = [
    lambda x: int(x.sum() > 1),
    lambda x: float(x.sum() > 1),
    lambda x: int((x.sum() > 1).item()),
    lambda x: float((x.sum() > 1).item()),
    lambda x: +(x.sum() > 1).item(),
    lambda x: int(x.long().sum().item() > 3),
    lambda x: (x.sum() > 1).item().__index__(),
]


def program(kind):
    conversion = COUNTING[kind]

    def count(counter, x):
        number = conversion(x)
        counter.n += number
        return x * number + x

    return count


@pytest.mark.parametrize(("kind", "backend"), each_backend(range(len(COUNTING)), inductor=range(len(COUNTING))))
def test_counting(kind, backend):
    count = program(kind)
    stator.reset()
    compiled = stator.compile(count, backend=backend, fullgraph=True)
    expected, counted = Counter(), Counter()
    for x in (torch.ones(3), -torch.ones(4), torch.ones(5), torch.ones(5)):
        ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        result, wanted = compiled(counted, ours), count(expected, theirs)
        assert torch.equal(result, wanted)
        result.sum().backward()
        wanted.sum().backward()
        assert torch.equal(ours.grad, theirs.grad)
        assert (counted.n, type(counted.n)) == (expected.n, type(expected.n))


def test_what_is_selected_by_a_condition():
    def select(x, table):
        return table[int(x.sum() > 1)] * x

    stator.reset()
    compiled = stator.compile(select, backend="eager", fullgraph=True)
    table = torch.tensor([2.0, 3.0])
    for x in (torch.ones(3), -torch.ones(3)):
        assert torch.equal(compiled(x, table), select(x, table))
    assert stator.stats().graphs == 1


def test_more_than_one_element():
    compiled = stator.compile(lambda x: int(x > 1), backend="eager")
    for _ in range(2):
        with pytest.raises((ValueError, RuntimeError)):
            compiled(torch.ones(3))


#: operations of tensors with a condition that is read from one
BESIDE = {
    "times": lambda x, flag: x * flag,
    "swapped": lambda x, flag: flag * x,
    "plus": lambda x, flag: torch.add(x, flag),
    "over": lambda x, flag: flag / x.exp(),
    "integers": lambda x, flag: (x * 4).long() * flag * x,
    "conditions": lambda x, flag: (x > 0.5) * flag * x,
}


@pytest.mark.parametrize(("name", "backend"), each_backend(BESIDE, inductor=BESIDE))
def test_a_condition_beside_a_tensor(name, backend):
    def step(x):
        return BESIDE[name](x.sin(), (x.detach().sum() > 0).item())

    compiled = stator.compile(step, backend=backend)
    for size, sign in ((3, 1.0), (4, -1.0), (5, 1.0)):
        results = []
        for function in (step, compiled):
            x = (torch.linspace(0.1, 1, size) * sign).requires_grad_()
            made = function(x)
            made.sum().backward()
            results.append((made, x.grad))
        torch.testing.assert_close(*results)


@pytest.mark.parametrize("make", [torch.tensor, lambda v: torch.tensor(v, dtype=torch.float64), np.float64])
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_int_of_a_number_that_was_given_is_another_in_each_call(make: Any, backend: str) -> None:
    """AOTAutograd knows what is in a float64 input, and made a constant of it."""

    def program(number: Any) -> Any:
        return int(number), torch.ones(2) * int(number)

    compiled = stator.compile(program, backend=backend)
    for value in (4.7, 5.6, 3.2):
        whole, tensor = compiled(make(value))
        assert whole == int(value) and torch.equal(tensor, torch.full((2,), float(int(value))))
    assert not stator.stats().graph_breaks and not stator.stats().recompiles


def test_an_int_of_a_float64_tensor_under_inductor() -> None:
    """What a backend assumes is guarded, also where the trace itself has no symbols."""

    def program(number: Any) -> Any:
        return torch.ones(2) * int(number)

    compiled = stator.compile(program, backend="inductor")
    for value in (4.7, 5.6, 3.2):
        assert torch.equal(compiled(torch.tensor(value, dtype=torch.float64)), torch.full((2,), float(int(value))))
