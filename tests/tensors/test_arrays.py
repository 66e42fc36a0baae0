"""NumPy's arrays in compiled functions: operations of the graph where torch gives what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import stator
from tests.tensors.programs import agree


def a() -> Any:
    return np.arange(12, dtype="float32").reshape(3, 4)


def i() -> Any:
    return np.arange(1, 7).reshape(2, 3)


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "arithmetic": (lambda a: (a + 1, 2 - a, a * a, a / 2, 1 / (a + 1), a // 2, a % 3, a**2, -a, abs(a), a @ a.T), a),
    "comparison": (lambda a: (a > 3, a == a, (a > 3) & (a < 7), ~(a > 3), np.where(a > 3, 1.0, 0.1)), a),
    "integers": (lambda a: (a / 2, a / a, 2 / a, np.sqrt(a), a.mean(), a.std(), a.sum(), a * 0.5, a // 2, a**2), i),
    "scalars": (lambda a: (a.sum(), a.max() + 1, a[0, 0], a.argmax(), float(a.min()), a.sum() * 2.0, len(a)), a),
    "number types": (lambda a: (np.float64(a.sum()), a + np.float32(1), a.astype(int), a.astype(np.float16)), a),
    "views": (lambda a: (a.T, a[1:, ::2], a.reshape(-1), a[None], a.ravel(), a.real), a),
    "copies": (lambda a: (a.copy(), a.T.copy(), a.flatten(), a[[0, 2]], a[np.argsort(-a[:, 0])]), a),
    "metadata": (lambda a: (a.shape, a.ndim, a.size, a.dtype == np.float32, str(a.dtype), a.T.shape, a.itemsize), a),
    "functions": (lambda a: (np.stack([a, a]), np.split(a, 3), np.linalg.norm(a), np.clip(a, 1, 2), np.ptp(a)), a),
    "creation": (lambda n: (np.zeros(n), np.ones((2, n), dtype=np.float32), np.arange(n), np.full(n, 2.5)), lambda: 3),
    "known": (lambda n: (np.prod([2, n]), np.sqrt(2.0 * n), np.float32(n) * 3), lambda: 3),
    "iteration": (lambda a: [row.sum() for row in a], a),
    "scalar argument": (lambda s: (s * 2, float(s), s + 1), lambda: np.float32(3.5)),
    "tensors of arrays": (lambda a: (torch.from_numpy(a) + 1, torch.tensor(a), torch.as_tensor(a.mean())), a),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    fn, make = FUNCTIONS[name]
    agree(lambda: (fn, (make(),)), rtol=1e-6)


FAILING: dict[str, Any] = {
    "shapes": lambda a: a + np.zeros(5),
    "reshape": lambda a: a.reshape(5, 5),
    "gradient": lambda a: torch.ones(3, requires_grad=True).numpy(),
}


@pytest.mark.parametrize("name", FAILING)
def test_numpy_words_the_error(name: str) -> None:
    agree(lambda: (FAILING[name], (a(),)))


def test_writes_reach_the_array_and_the_tensor() -> None:
    def program(array: Any, tensor: Any) -> Any:
        array += 1
        row = array[0]
        row *= 2
        array[1, :] = 7
        tensor.numpy()[0] = 5
        return array, tensor, torch.from_numpy(array)

    agree(lambda: (program, (a(), torch.zeros(3))))


def test_results_share_memory_as_they_do_eagerly() -> None:
    def program(array: Any, tensor: Any) -> Any:
        return array[1:], array.copy(), tensor.numpy(), torch.from_numpy(array), array[0, 0]

    array, tensor = a(), torch.zeros(3)
    view, copy, of_tensor, of_array, scalar = stator.compile(program, backend="eager", fullgraph=True)(array, tensor)
    array[...] = 100
    tensor += 1
    assert view[0, 0] == 100 and of_array[0, 0] == 100 and of_tensor[0] == 1
    assert copy[0, 0] == 0 and scalar == 0 and type(scalar) is np.float32


def test_a_pipeline_through_numpy_is_one_graph() -> None:
    def program(x: Any) -> Any:
        array = x.numpy()
        scaled = (array - array.mean(axis=0)) / (array.std(axis=0) + 1e-5)
        back = torch.from_numpy(scaled[np.argsort(scaled[:, 0])].copy())
        return x + back, float(np.linalg.norm(array))

    agree(lambda: (program, (torch.randn(4, 8),)), graphs=1, rtol=1e-5)
    agree(lambda: (program, (torch.randn(4, 8),)), backend="aot_eager", rtol=1e-5)


def test_arrays_are_guarded() -> None:
    def program(array: Any) -> Any:
        return array * 2, array.shape

    compiled = stator.compile(program, backend="eager")
    for array in (a(), a().astype("float64"), a().T, a()[::-1], a().astype(object), a()[:2], np.float32(3)):
        got, want = compiled(array), program(array)
        assert type(got[0]) is type(want[0]) and got[0].dtype == want[0].dtype and got[1] == want[1]
        assert np.array_equal(got[0], want[0])


def test_sizes_become_symbols() -> None:
    compiled = stator.compile(lambda a: (np.zeros(a.shape[0]), (a * 2).sum(0)), backend="eager")
    stator.reset()
    for n in (5, 6, 7, 8):
        zeros, total = compiled(np.ones((n, 3)))
        assert zeros.shape == (n,) and total.tolist() == [2.0 * n] * 3
    assert stator.stats().graphs == 2


BREAKING: dict[str, Any] = {
    "a branch": lambda a: 1 if a.sum() > 3 else 2,
    "a layout that torch has not": lambda a: a[::-1],
    "a result that torch makes otherwise": lambda a: np.linalg.svd(a[:2, :2]).S,
    "a tensor among the arrays": lambda a: np.add(a, torch.ones(3, 4)),
    "objects": lambda a: a.astype(object),
}


@pytest.mark.parametrize("name", BREAKING)
def test_what_breaks(name: str) -> None:
    agree(lambda: (BREAKING[name], (a(),)), breaks=1, rtol=1e-6)
