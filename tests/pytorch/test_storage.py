"""Writing to memory that lies, in part, beneath another operand: eager execution decides, and its errors are caught."""

import numpy as np
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


def read(array, view, x):
    view.fill_(3)
    return x + view[0], bytes(array), array[0]


def written(array, view, x):
    array[0] = 9
    return x + view[0]


def both(array, view, x):
    array[1] = 5
    view[0] = 4
    return x + view.sum(), bytes(array)


def viewed(array, view, x):
    view[:] = 3
    return x + float(view[0]), bytes(array)


BYTES = {
    "read": (read, torch.frombuffer),
    "written": (written, torch.frombuffer),
    "both": (both, torch.frombuffer),
    "numpy": (viewed, np.frombuffer),
    "numpy written": (written, np.frombuffer),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(("function", "view"), BYTES.values(), ids=BYTES)
def test_in_the_memory_of_a_bytearray(function, view, backend):
    dtype = torch.uint8 if view is torch.frombuffer else np.uint8
    for size in (8, 100):

        def make(size=size):
            array = bytearray(size)
            return function, (array, view(array, dtype=dtype), torch.ones(2))

        agree(make, backend=backend, breaks=None)


def test_asking_for_views_moves_no_bytes():
    array = bytearray(1000)
    view = torch.frombuffer(array, dtype=torch.uint8)
    stator.compile(lambda array: len(array) + array[0])(array)
    array[500] = 7
    assert view[500] == 7


def test_a_tensor_in_memory_that_the_program_made():
    def program(x):
        array = bytearray(8)
        view = torch.frombuffer(array, dtype=torch.float32)
        view.fill_(1.0)
        return x + view[0], bytes(array)

    agree(lambda: (program, (torch.ones(2),)), breaks=None)


def test_a_bytearray_beside_other_tensors_is_one_graph():
    compiled = stator.compile(both, backend="eager", fullgraph=True)
    for size in (8, 12):
        array, apart = bytearray(size), torch.zeros(size, dtype=torch.uint8)
        result, seen = compiled(array, apart, torch.ones(2))
        assert result.tolist() == [5, 5] and seen == array == bytes([0, 5]) + bytes(size - 2)
    compiled = stator.compile(both, backend="eager")
    compiled(bytearray(8), torch.zeros(8, dtype=torch.uint8), torch.ones(2))
    array = bytearray(8)
    result, seen = compiled(array, torch.frombuffer(array, dtype=torch.uint8), torch.ones(2))
    assert result.tolist() == [10, 10] and seen == bytes([4, 5]) + bytes(6)
