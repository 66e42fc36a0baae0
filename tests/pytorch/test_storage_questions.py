"""What is asked of the memory of tensors: its size, and whether two tensors lie in the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator
from tests.pytorch.programs import agree, assert_same

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "existing": lambda x: (x.untyped_storage().nbytes(), x.untyped_storage().size(), len(x.untyped_storage()), x + 1),
    "a view of it": lambda x: (x[1:].untyped_storage().nbytes(), x[1:].untyped_storage() is x.untyped_storage()),
    "the same place": lambda x: (
        x[None].untyped_storage().data_ptr() == x.untyped_storage().data_ptr(),
        x.t().data_ptr() == x.data_ptr(),
        x[1:].data_ptr() != x.data_ptr(),
        x[1:].data_ptr() == x[1].data_ptr(),
    ),
    "in a branch": lambda x: x * 2 if x.untyped_storage().nbytes() == x.numel() * x.element_size() else x * 3,
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_questions(name: str, backend: str) -> None:
    compiled = stator.compile(PROGRAMS[name], backend=backend, fullgraph=True, dynamic=False)
    for rows in (4, 4, 5, 7):
        x = torch.arange(3.0 * rows).reshape(rows, 3)
        for given in (x, x[2:]):
            assert_same(compiled(given), PROGRAMS[name](given), f"{rows} rows")


def test_a_new_tensor() -> None:
    def program(x: Any) -> Any:
        y = x * 2
        return y.untyped_storage().nbytes(), y[1].untyped_storage().data_ptr() == y.data_ptr(), y

    agree(lambda: (program, (torch.ones(3, 4),)), graphs=1)
    agree(lambda: (program, (torch.ones(3, 4),)), backend="aot_eager")


def test_the_storage_and_the_address_are_results() -> None:
    def program(x: Any) -> Any:
        y = x + 1
        return y, y.untyped_storage(), y[1].data_ptr(), x.untyped_storage()

    x = torch.ones(3, 4)
    y, storage, address, given = stator.compile(program, backend="eager", fullgraph=True)(x)
    assert storage.data_ptr() == y.data_ptr() and address == y[1].data_ptr() and given.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_size_that_varies(backend: str) -> None:
    def program(x: Any) -> Any:
        y = torch.cat([x, x])
        return y, x.untyped_storage().nbytes() + y.untyped_storage().size()

    compiled = stator.compile(program, backend=backend, dynamic=True, fullgraph=True)
    for rows in (4, 5, 7):
        assert compiled(torch.ones(rows))[1] == 12 * rows
    assert stator.stats().graphs == 1


def test_a_size_that_varies_apart_from_the_elements_breaks() -> None:
    compiled = stator.compile(lambda x: (x + 1, x.untyped_storage().nbytes()), backend="eager", dynamic=True)
    for rows in (4, 5, 7):
        assert compiled(torch.ones(2 * rows)[:rows])[1] == 8 * rows
    assert stator.stats().graph_breaks


def test_another_storage_of_a_tensor_alike() -> None:
    compiled = stator.compile(lambda x: (x + 1, x.untyped_storage().nbytes()), backend="eager")
    large = torch.arange(20.0)
    for x in (large[:4], torch.ones(4), large[:4].clone(), large[4:8]):
        assert compiled(x)[1] == x.untyped_storage().nbytes()


UNKNOWN: dict[str, Callable[[Any, Any], Any]] = {
    "of two tensors": lambda x, y: (x + y).data_ptr() == x.data_ptr(),
    "written": lambda x, y: (torch.empty(0).resize_(x.shape).untyped_storage().nbytes(), x + y),
    "a number": lambda x, y: (x.data_ptr() % 2, x + y),
    "a key": lambda x, y: (len({x.data_ptr(), y.data_ptr()}), x + y),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_breaks(name: str) -> None:
    agree(lambda: (UNKNOWN[name], (torch.ones(4), torch.ones(4))), breaks=None)
    assert stator.stats().graph_breaks
