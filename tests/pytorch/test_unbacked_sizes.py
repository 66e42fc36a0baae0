"""Operations on sizes that are in tensors, of which torch's kernels in C++ need to know more than those in Python."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

import stator
from tests.pytorch.gradients import BACKENDS, alike
from tests.pytorch.old_torch import OLD_TORCH

#: with each, the number in the tensor and that of the selected rows are others
SIZES = (5, 9)


def inputs(n: int) -> tuple[torch.Tensor, ...]:
    x = torch.linspace(-1.5, 2.0, 16).reshape(1, 2, 8).requires_grad_()
    return x, torch.arange(8) < n - 2, torch.tensor(n - 2)


def selected(x: Any, mask: Any) -> Any:
    return x[0, 0][mask]


def to_width(x: Any, n: Any) -> Any:
    """A picture with a side of `n`, filled up to eight."""
    picture = F.interpolate(x[None], size=(n, n), mode="nearest")
    return F.pad(picture, (0, 8 - n, 0, 8 - n))


def corners(x: Any, n: Any, **options: Any) -> Any:
    """torch asks whether there are two corners at all, in each direction."""
    return F.interpolate(x[None], size=(n, n - 1), mode="bilinear", **options), F.interpolate(x, n, mode="linear")


PROGRAMS = {
    "pad": lambda x, mask, n: F.pad(x, (0, 8 - n.item())),
    "pad by a tensor": lambda x, mask, n: F.pad(x, (0, n, 1, 8 - n)),
    "pad what is selected": lambda x, mask, n: F.pad(selected(x, mask), (1, 0))[:-1] - selected(x, mask),
    "pad rows": lambda x, mask, n: F.pad(selected(x, mask).view(-1, 1), [0, 0, 1, 0])[:-1],
    "pad a part": lambda x, mask, n: F.pad(x[..., : n.item()], (1, 1), value=2.0),
    "interpolate": lambda x, mask, n: F.interpolate(x, size=n.item()),
    "interpolate by tensors": lambda x, mask, n: to_width(x, n),
    "interpolate between corners": lambda x, mask, n: corners(x, n.item(), align_corners=True),
    "interpolate between corners by tensors": lambda x, mask, n: corners(x, n, align_corners=True),
    "dropout": lambda x, mask, n: F.dropout(selected(x, mask), 0.0),
    "sequences": lambda x, mask, n: torch.nn.utils.rnn.pad_sequence([selected(x, mask), x[0, 1, :3]]),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph_for_all_sizes(name: str, backend: str) -> None:
    if OLD_TORCH and name == "sequences":
        pytest.xfail("torch 2.13: pad_sequence reads the sizes of what it is given")
    stats = alike(lambda: (PROGRAMS[name], []), inputs, backend=backend, sizes=SIZES, breaks=0, tolerance=1e-6)
    assert stats.graphs == 1


def test_with_inductor() -> None:
    def program(x: Any, mask: Any, n: Any) -> Any:
        return F.pad(x.detach(), (0, 8 - n.item())), F.pad(selected(x.detach(), mask), (1, 0))

    alike(lambda: (program, []), inputs, backend="inductor", sizes=SIZES, breaks=0, tolerance=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("n", [0, 1, 2, 13, -1])
@pytest.mark.parametrize(
    "name", ["pad", "pad by a tensor", "pad a part", "interpolate", "interpolate between corners", "dropout"]
)
def test_sizes_that_few_have_are_as_in_eager(name: str, n: int, backend: str) -> None:
    program, arguments = PROGRAMS[name], inputs(n + 2)
    compiled = stator.compile(program, backend=backend)
    compiled(*inputs(5))
    assert _outcome(compiled, arguments) == _outcome(program, arguments)


def _outcome(function: Any, arguments: Any) -> Any:
    try:
        return function(*arguments).tolist()
    except Exception as e:
        return type(e), str(e)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_operation_that_fails_leaves_the_numbers_it_has_read_to_others(backend: str) -> None:
    def program(x: Any, mask: Any, n: Any) -> Any:
        area = F.interpolate(x, size=(n,), mode="area")
        return area.sum(-1), torch.zeros(n.item())

    alike(lambda: (program, []), inputs, backend=backend, sizes=SIZES)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_sizes_of_a_tensor_change_in_place(backend: str) -> None:
    def program(x: Any, mask: Any, n: Any) -> Any:
        chosen = selected(x.detach(), mask).unsqueeze_(0)
        return chosen.t_() * 2

    alike(lambda: (program, []), inputs, backend=backend, sizes=SIZES, breaks=0)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_operation_that_decides_by_a_size(backend: str) -> None:
    cell, table = torch.nn.GRUCell(4, 4), torch.randn(8, 4)

    def follow(h: torch.Tensor, scores: torch.Tensor, stated: bool) -> torch.Tensor:
        best = int(scores.argmax())
        row = table[best : best + 1]
        if stated:
            torch._check(row.shape[0] == 1)
        return cell(row, h)

    for stated in (False, True):
        stator.reset()
        compiled = stator.compile(follow, backend=backend)
        for scores in (torch.arange(3.0), -torch.arange(4.0), torch.ones(5)):
            h = torch.zeros(1, 4)
            assert torch.equal(compiled(h, scores, stated), follow(h, scores, stated))
        reasons = {(told.code, told.reason) for told in stator.stats().breaks}
        needs = "torch.gru_cell needs a number that depends on the value of a tensor: how many elements a mask selects"
        expected = "SB0202", needs
        assert reasons == (set() if stated else {expected})
