"""`view` and `reshape` with sizes that vary: results, strides and whose memory they are in, as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator

BACKENDS = ["eager", "aot_eager"]

#: a program, and the sizes of its operand in three calls; in the last what decided in the others may be another
CASES: dict[str, tuple[Callable[[Any], Any], list[tuple[int, ...]]]] = {
    "heads": (lambda x: x.view(x.shape[0], x.shape[1], 4, -1), [(2, 5, 8), (3, 7, 8), (1, 1, 8)]),
    "flat": (lambda x: x.view(-1, x.shape[-1]), [(2, 5, 8), (3, 7, 8), (1, 4, 8)]),
    "one": (lambda x: x.reshape(-1), [(2, 5), (3, 7), (1, 4)]),
    "windows": (
        lambda x: x.view(x.shape[0], x.shape[1] // 4, 4, x.shape[2] // 4, 4),
        [(2, 8, 12), (3, 16, 20), (2, 4, 4)],
    ),
    "windows and back": (
        lambda x: (
            x.view(x.shape[0], x.shape[1] // 4, 4, x.shape[2] // 4, 4).permute(0, 1, 3, 2, 4).reshape(-1, 16),
            x.view(x.shape[0], x.shape[1] // 4, 4, x.shape[2] // 4, 4).permute(0, 2, 1, 4, 3).reshape(x.shape),
        ),
        [(2, 8, 12), (3, 16, 20), (2, 4, 4)],
    ),
    "a window as wide as the image": (
        lambda x: x.view(x.shape[0], 2, -1, 2, 4).transpose(2, 3).reshape(x.shape[0], 4, -1),
        [(2, 48), (3, 80), (2, 16)],
    ),
    "halves": (lambda x: x.view(2, x.shape[0] // 2, -1).transpose(0, 1).reshape(-1, 2, 3), [(4, 3), (6, 3), (2, 3)]),
    "swapped": (lambda x: x.view(x.shape[1], x.shape[0]), [(4, 4), (3, 5), (6, 2)]),
    "turned": (lambda x: x.transpose(0, 1).reshape(x.shape[0], x.shape[1]), [(4, 4), (3, 5), (1, 6)]),
    "merged heads": (
        lambda x: x.transpose(1, 2).reshape(x.shape[0], -1, 12),
        [(2, 3, 5, 4), (3, 3, 7, 4), (2, 3, 1, 4)],
    ),
    "expanded": (
        lambda x: x[:, :, None].expand(-1, -1, 3, -1).reshape(x.shape[0], -1, x.shape[-1]),
        [(2, 5, 4), (3, 6, 4), (1, 2, 4)],
    ),
    "expanded last": (lambda x: x[..., None].expand(*x.shape, 3).reshape(-1, 6), [(4, 2), (3, 8), (1, 2)]),
    "part of each row": (lambda x: x[:, 2:].reshape(-1, 2), [(4, 6), (3, 8), (1, 4)]),
    "part that is one row": (lambda x: x[1:].reshape(-1, 2), [(4, 6), (3, 8), (2, 4)]),
    "every other": (lambda x: x[::2].reshape(x.shape[0] // 2, 2, -1), [(4, 6), (8, 8), (2, 4)]),
    "a dimension of one": (lambda x: x.unsqueeze(1).transpose(0, 1).reshape(-1, 3), [(4, 3), (5, 3), (1, 3)]),
    "nothing": (lambda x: x.reshape(x.shape[0], 2, x.shape[1] // 2), [(4, 6), (5, 8), (0, 4)]),
    "nothing, turned": (lambda x: x.transpose(0, 1).reshape(-1, 2), [(4, 6), (6, 8), (0, 4)]),
    "a function": (lambda x: torch.reshape(x.t(), (x.shape[0], 1, x.shape[1])), [(4, 6), (5, 8), (2, 4)]),
    "by a name": (lambda x: x.t().reshape(shape=(x.shape[0] * 2, -1)), [(4, 6), (5, 8), (2, 4)]),
}


def seen(run: Callable[[Any], Any], sizes: tuple[int, ...]) -> list[object]:
    """What shows of a run: sizes, strides, whose memory results are in, gradients."""
    leaf = torch.arange(float(torch.Size(sizes).numel())).reshape(sizes).requires_grad_()
    x = leaf * 1
    found = run(x)
    results = found if isinstance(found, tuple) else (found,)
    shared = [result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for result in results]
    sum((result.square() * (1 + i)).sum() for i, result in enumerate(results)).backward()
    return [[tuple(r.shape), r.stride(), same, r.tolist()] for r, same in zip(results, shared, strict=True)] + [
        leaf.grad.tolist()  # type: ignore[union-attr]
    ]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", CASES)
def test_views_are_as_in_eager(name: str, dynamic: bool | None, backend: str) -> None:
    program, calls = CASES[name]
    compiled = stator.compile(program, backend=backend, dynamic=dynamic, fullgraph=True)
    for sizes in (*calls, *calls):
        assert seen(compiled, sizes) == seen(program, sizes)


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_show_in_a_view_and_not_in_a_copy(backend: str) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.view(x.shape[0], 2, -1)
        z = y.transpose(0, 1).reshape(2, -1)
        z.add_(1)
        y.mul_(2)
        return y, z

    compiled = stator.compile(program, backend=backend, dynamic=True, fullgraph=True)
    for rows in (4, 7, 1):
        x, own = torch.ones(rows, 6), torch.ones(rows, 6)
        for found, expected in zip(compiled(x), program(own), strict=True):
            assert torch.equal(found, expected)
        assert torch.equal(x, own)


@pytest.mark.parametrize("shape", [(5, -1), (-1, -1), (3, 7), (0, -1)])
def test_errors_are_those_of_eager(shape: tuple[int, int]) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x.t().reshape(x.shape[0] * shape[0], shape[1])

    x = torch.ones(4, 6)
    with pytest.raises(RuntimeError) as expected:
        program(x)
    with pytest.raises(RuntimeError) as found:
        stator.compile(program, backend="eager", dynamic=True)(x)
    assert str(found.value) == str(expected.value)


def test_windows_are_one_graph() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x.view(x.shape[0], x.shape[1] // 4, 4, x.shape[2] // 4, 4, 7)
        return y.permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 7)

    compiled = stator.compile(program, backend="eager", dynamic=True)
    for sizes in ((2, 8, 12), (3, 16, 20), (5, 24, 40)):
        assert compiled(torch.ones(*sizes, 7)).shape == (torch.Size(sizes).numel() // 16, 16, 7)
    assert stator.stats().graphs == 1


def test_with_inductor() -> None:
    program, calls = CASES["windows and back"]
    compiled = stator.compile(program, backend="inductor", dynamic=True, fullgraph=True)
    for sizes in calls:
        x = torch.arange(float(torch.Size(sizes).numel())).reshape(sizes)
        for found, expected in zip(compiled(x), program(x), strict=True):
            assert torch.equal(found, expected) and found.stride() == expected.stride()


def rows_of(x: torch.Tensor, y: torch.Tensor) -> Any:
    part = x[:, :2]
    with torch.no_grad():
        y[0].add_(1)
    return part, part.square() * x.shape[0], y.view(-1)[2:], torch.cat([x, y])


@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
def test_where_a_view_begins_varies_and_may_be_0(backend: str) -> None:
    """A cache is a view in the first steps, and in the next a tensor that `cat` has made: that is no new graph."""
    compiled = stator.compile(rows_of, backend=backend)
    # the offset is once that of the other tensor, and once equal to a size
    for offset, rows in ((32, 3), (16, 4), (5, 5), (0, 6), (1, 5), (4, 4), (3, 20)):
        outcomes = []
        for run in (compiled, rows_of):
            x, y = (torch.arange(150.0, requires_grad=wanted) for wanted in (True, False))
            results = run(x[offset:].narrow(0, 0, 4 * rows).view(rows, 4), y[offset:][: 4 * rows].view(rows, 4))
            torch.cat([part.flatten() for part in results]).square().sum().backward()
            outcomes.append(([(part, part.stride(), part.storage_offset()) for part in results], x.grad, y))
        assert str(outcomes[0][0]) == str(outcomes[1][0]) or backend != "eager"
        for found, expected in zip(*[[part for part, *_ in made] + [g, y] for made, g, y in outcomes], strict=True):
            assert torch.equal(found, expected)
            assert found.stride() == expected.stride() and found.storage_offset() == expected.storage_offset()
    assert stator.stats().graphs == 2
