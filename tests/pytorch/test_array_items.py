"""Items of NumPy's arrays under indices that vary: one graph for all, and what NumPy does in each case."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import stator


class Buffer:
    """A ring of rows."""

    def __init__(self, dtype: Any = np.float32) -> None:
        self.rows = np.zeros((6, 2), dtype=dtype)
        self.sums = np.zeros(6, dtype=dtype)
        self.at = 0


def kept(x: torch.Tensor, buffer: Buffer) -> torch.Tensor:
    buffer.rows[buffer.at] = x.detach().numpy()
    buffer.sums[buffer.at] = 3.0
    buffer.at += 1
    return x * 2


def kept_at_the_end(x: torch.Tensor, buffer: Buffer) -> torch.Tensor:
    buffer.rows[-1 - buffer.at, 1:] = 5
    buffer.at += 1
    return x + torch.from_numpy(buffer.rows[-buffer.at, :])


def an_index_of_the_largest(x: torch.Tensor, buffer: Buffer) -> torch.Tensor:
    buffer.sums[buffer.at] = x.argmax().item()
    buffer.at += 1
    return x * 3


def the_number_of_the_row(x: torch.Tensor, buffer: Buffer) -> torch.Tensor:
    buffer.rows[buffer.at] = buffer.at
    buffer.at += 1
    return x - 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", [kept, kept_at_the_end, an_index_of_the_largest, the_number_of_the_row])
def test_a_position_that_varies_is_one_graph(program: Callable[..., Any], backend: str) -> None:
    stator.reset()
    compiled, buffers = stator.compile(program, backend=backend, fullgraph=True), (Buffer(), Buffer())
    for _ in range(6):
        x = torch.randn(2, requires_grad=True)
        expected, found = program(x, buffers[0]), compiled(x, buffers[1])
        torch.testing.assert_close(found, expected)
        assert torch.equal(*(torch.autograd.grad(each.sum(), x)[0] for each in (found, expected)))
        assert np.array_equal(buffers[0].rows, buffers[1].rows) and np.array_equal(buffers[0].sums, buffers[1].sums)
    with pytest.raises(IndexError):
        compiled(x, buffers[1])
    assert stator.stats().recompiles <= 3  # a size that is met first, the ends of the array


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.bool_])
@pytest.mark.parametrize("number", [1.5, float("nan"), float("inf"), 1e300])
def test_a_float_in_a_tensor_is_stored_by_numpy(number: float, dtype: Any) -> None:
    def stored(x: torch.Tensor, array: np.ndarray[Any, Any]) -> torch.Tensor:
        array[1] = x.sum().item()
        return x + 1

    x, arrays = torch.tensor([number, 0.0], dtype=torch.double), (np.zeros(3, dtype), np.zeros(3, dtype))
    outcomes = []
    for program, array in zip((stored, stator.compile(stored, backend="eager")), arrays):
        with pytest.warns(Warning) if (number, dtype) == (1e300, np.float32) else contextlib.nullcontext():
            try:
                outcomes.append(program(x, array).tolist())
            except (ValueError, OverflowError) as error:
                outcomes.append((type(error), str(error)))
    assert str(outcomes[0]) == str(outcomes[1])
    assert np.array_equal(*arrays, equal_nan=np.dtype(dtype).kind == "f")
    assert "numpy.ndarray.__setitem__ with a number from Tensor.item" in stator.stats().breaks[0].reason
