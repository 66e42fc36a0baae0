"""Numbers in tensors that are what is computed of sizes: a backend's graph checks them by the tensors' contents."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import stator


def _checked(x: Any, y: Any, n: int) -> Any:
    torch._check(n == x.shape[0])
    return x * 2


def _checked_sum(x: Any, y: Any, n: int) -> Any:
    torch._check(n == x.shape[0] * 2 + y.shape[0] - 1)
    return x + n


def _assumed(x: Any, y: Any, n: int) -> Any:
    return torch.zeros(n) + x[:, 0]


#: programs of two tables and a number in a tensor → the number that fits sizes
PROGRAMS: dict[Any, Any] = {
    _checked: lambda x, y: x,
    _checked_sum: lambda x, y: 2 * x + y - 1,
    _assumed: lambda x, y: x,
}


def _tables(sizes: tuple[int, int]) -> list[torch.Tensor]:
    tables = [torch.arange(2.0 * n).reshape(n, 2).requires_grad_() for n in sizes]
    for table in tables:
        stator.mark_dynamic(table, 0)
    return tables


def _raised_or_given(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except RuntimeError as e:
        return str(e)


def _alike(got: Any, want: Any) -> None:
    assert type(got) is type(want), (got, want)
    assert got == want if isinstance(want, str) else torch.equal(got, want)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_number_that_is_a_size(program: Any, backend: str) -> None:
    def read(x: Any, y: Any, n: Any) -> Any:
        n.add_(1)
        number = n.item()
        n.zero_()
        return program(x, y, number)

    compiled = stator.compile(read, backend=backend, fullgraph=True)
    for sizes in ((6, 5), (9, 4), (7, 8)):
        for more in (0, 1):  # the error comes of a graph that exists
            number = PROGRAMS[program](*sizes) + more - 1
            want = _raised_or_given(read, *_tables(sizes), torch.tensor(number))
            got = _raised_or_given(compiled, *_tables(sizes), torch.tensor(number))
            assert isinstance(want, str) == bool(more)
            _alike(got, want)
            if not more:
                got.sum().backward()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_size_that_is_another(backend: str) -> None:
    def found(x: Any, mask: Any) -> Any:
        rows = mask.nonzero()
        torch._check(rows.shape[0] == x.shape[0])
        return rows + 1

    compiled = stator.compile(found, backend=backend, fullgraph=True)
    for size in (6, 9, 7):
        for true in (size, size + 1, size - 1):
            x, mask = _tables((size, size))[0], torch.arange(16) < true
            _alike(_raised_or_given(compiled, x, mask), _raised_or_given(found, x, mask))
