"""Scalars of NumPy's among the operands of torch's functions, which takes them for Python's own numbers."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
import torch

import stator
from tests.pytorch.gradients import alike
from tests.pytorch.old_torch import OLD_TORCH, fails_on_old_torch

HALF, SINGLE, DOUBLE, COUNT, SMALL = np.float16(1.5), np.float32(1.5), np.float64(1.5), np.int64(1), np.int32(1)


def _item_set(x: torch.Tensor, value: Any, at: Any = 0) -> torch.Tensor:
    y = x.clone()
    y[..., at] = value
    return y


PROGRAMS = {
    "products": lambda x: x * SINGLE + DOUBLE * x - x**SMALL,
    "scalars on the left": lambda x: (DOUBLE - x, SMALL / x, HALF < x, COUNT != x, np.float64(2) ** x),
    "a half": lambda x: x * HALF,
    "integers and floats": lambda x: torch.arange(len(x)) * DOUBLE,
    "of no dimensions": lambda x: x.sum() * DOUBLE,
    "an index": lambda x: x[COUNT] + x[: SMALL + 1].sum(),
    "an item": lambda x: _item_set(x, DOUBLE, COUNT),
    "computed": lambda x: _item_set(x, np.log(np.exp(1 - 1e-3) - 1)) * np.sqrt(SINGLE),
    "options": lambda x: x.clamp(min=SINGLE, max=np.float32(2)).sum(dim=np.int64(0)),
    "sizes": lambda x: torch.full((np.int64(2), np.int32(1)), np.float32(3)) * x,
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, backend: str) -> None:
    refused = OLD_TORCH and backend == "aot_eager" and name == "products"  # as in test_with_inductor
    alike(lambda: (PROGRAMS[name], []), backend=backend, breaks=None if refused else 0)


@fails_on_old_torch("AOTAutograd makes no tensor of a float in an array")
def test_with_inductor() -> None:
    alike(lambda: (PROGRAMS["products"], []), backend="inductor", sizes=(3, 5), tolerance=1e-6, breaks=0)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int16])
def test_an_argument_is_read_in_every_call(kind: Any, backend: str) -> None:
    def scale(x: torch.Tensor, by: Any) -> torch.Tensor:
        return x * by + by

    compiled = stator.compile(scale, backend=backend, fullgraph=True)
    for x in (torch.linspace(0, 1, 3, requires_grad=True), torch.arange(3), torch.tensor(2.0)):
        for by in (kind(2), kind(3)):
            got, want = compiled(x, by), scale(x, by)
            assert got.dtype == want.dtype and torch.equal(got, want)


REFUSED = {
    "an item in single precision": lambda x: _item_set(x, SINGLE),
    "an array without dimensions": lambda x: x * np.array(1.5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_or_leaves_to_numpy(name: str) -> None:
    alike(lambda: (REFUSED[name], []))


def test_tensors_of_scalars_have_their_types() -> None:
    alike(lambda: (lambda x: x * torch.tensor([DOUBLE, SMALL]) + torch.tensor([HALF]), []))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_numpy_takes_the_items_of_a_deque(backend: str) -> None:
    def keep(window: Any, x: torch.Tensor) -> Any:
        window.append(len(x) * 0.5)
        return np.mean(window), np.array(window), x * 2

    stator.reset()
    compiled = stator.compile(keep, backend=backend, fullgraph=True)
    ours, theirs = deque[Any](maxlen=3), deque[Any](maxlen=3)
    for size in (2, 3, 4, 5, 6):
        got, expected = compiled(ours, torch.ones(size)), keep(theirs, torch.ones(size))
        assert got[0] == expected[0] and type(got[0]) is type(expected[0])
        assert np.array_equal(got[1], expected[1]) and got[1].dtype == expected[1].dtype
        assert list(ours) == list(theirs) and ours.maxlen == 3


def test_a_break_at_a_function_of_numpy_names_it() -> None:
    def keep(window: Any, x: torch.Tensor) -> Any:
        window.append(x.sum().item())
        return np.mean(window)

    with pytest.raises(stator.GraphBreakError, match=r"numpy\.mean needs a number"):
        stator.compile(keep, backend="eager", fullgraph=True)(deque[Any]([1]), torch.ones(3))
    stator.compile(keep, backend="eager", fullgraph=True)(deque[Any]([1.0]), torch.ones(3))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_texts_of_scalars(backend: str) -> None:
    def tell(array: Any, x: torch.Tensor) -> Any:
        mean, small, count = array.mean(), array.astype(np.float32).sum(), (array > 0).sum()
        known = np.float64(0.5)
        return f"{mean:.5f} {small:8.3f} {count:4d} {mean} {small} {count:} {known:.2f}", x * 2

    stator.reset()
    compiled = stator.compile(tell, backend=backend, fullgraph=True)
    for size in (4, 4, 8, 16):
        array = np.arange(size) + 0.5
        assert compiled(array, torch.ones(size))[0] == tell(array, torch.ones(size))[0]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32])
def test_an_int_on_the_left(kind: Any, backend: str) -> None:
    """`int.__sub__` takes no float, though float64 is one: the scalar's own method computes it."""

    def program(x: torch.Tensor, s: Any) -> Any:
        return x * 2, 1 - s, 2 * s, 7 // s, 7 % s, 1 / s, True + s, 1 < s, 1 == s, 2.5 - s

    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for number in (2, 3, 5):
        (_, *found), (_, *expected) = (run(torch.ones(3), kind(number)) for run in (compiled, program))
        assert [(type(each), each) for each in found] == [(type(each), each) for each in expected]
