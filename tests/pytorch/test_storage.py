"""Writing to memory that lies, in part, beneath another operand: eager execution decides, and its errors are caught."""

import pytest
import torch

import stator
from tests.pytorch.programs import agree


def scaled(a, b):
    try:
        a.mul_(b)
    except RuntimeError as e:
        return str(e)
    return a + 1


def added_to_itself(a):
    try:
        for row in a:
            a += row.reshape(1)
    except RuntimeError as e:
        return str(e)
    return None


def spread(a, b):
    try:
        a.expand(3, 3).add_(b)
    except RuntimeError as e:
        return str(e)
    return None


def square_and(view):
    a = torch.arange(9.0).reshape(3, 3)
    return a, view(a)


PARTLY = {
    "a row": lambda a: a[0],
    "transposed": lambda a: a.t(),
    "an element": lambda a: a[1, 1],
    "rows upon rows": lambda a: a[:2].reshape(6)[:3],
}
APART = {
    "itself": lambda a: a,
    "the same elements": lambda a: a.view(3, 3),
    "another tensor": lambda a: a.clone(),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("view", PARTLY.values(), ids=PARTLY)
def test_partly_shared(view, backend):
    make = lambda: (scaled, square_and(view))  # noqa: E731
    assert "single memory location" in scaled(*square_and(view))
    agree(make, backend=backend, breaks=None)


@pytest.mark.parametrize("view", APART.values(), ids=APART)
def test_not_shared_or_wholly(view):
    agree(lambda: (scaled, square_and(view)))


def test_rows_of_one_tensor_are_apart():
    def shifted():
        a = torch.arange(9.0).reshape(3, 3)
        a[0].add_(a[1])
        a[:, 0].mul_(a[:, 1])  # not looked into: not dense
        return a

    agree(lambda: (shifted, ()))


def test_views_made_in_the_program():
    agree(lambda: (added_to_itself, (torch.ones(3),)), breaks=None)
    agree(lambda: (spread, (torch.ones(3), 1)), breaks=None, backend="aot_eager")


def test_sizes_that_vary():
    def program(a):
        half = a.shape[0] // 2
        a[:half].add_(a[half : 2 * half])
        return scaled(a[: half + 1], a[half : 2 * half + 1])

    compiled = stator.compile(program, backend="eager", dynamic=True)
    for size in (7, 9, 11):
        assert compiled(torch.ones(size)) == program(torch.ones(size))
