"""Padding by amounts that vary: how the result lies in memory depends on whether there is anything to add."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import stator
from tests.pytorch.each_backend import each_backend


def to_multiple(image: torch.Tensor) -> Any:
    x = image.permute(2, 0, 1)
    height, width = x.shape[-2:]
    y = F.pad(x, pad=(0, -width % 8, 0, -height % 8))
    return y, y.stride(), y.is_contiguous()


def to_size(image: torch.Tensor) -> Any:
    """Cuts off what is too large."""
    x = image.permute(2, 0, 1)
    height, width = x.shape[-2:]
    y = F.pad(x, (0, 24 - width, 0, 24 - height), value=0.5)
    return y * 2, y.stride()


def around(image: torch.Tensor) -> Any:
    """From both sides, by the operator itself."""
    x = image.permute(2, 0, 1)[None]
    height, width = x.shape[-2:]
    more = 32 - height
    y = torch.constant_pad_nd(x, (0, 0, more // 2, more - more // 2))
    return y, y.stride(), width


def with_channels_last(image: torch.Tensor) -> Any:
    x = torch.stack([image, image + 1]).permute(0, 3, 1, 2)
    y = F.pad(x, [0, -x.shape[3] % 8, 0, -x.shape[2] % 8], "constant", 1.0)
    return y.relu(), y.stride(), y.is_contiguous(memory_format=torch.channels_last)


def windows(image: torch.Tensor) -> Any:
    x = image[None]
    height, width = image.shape[:2]
    x = F.pad(x.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1), (0, 0, 0, -width % 8, 0, -height % 8))
    _, height, width, channels = x.shape
    return x.view(1, height // 8, 8, width // 8, 8, channels).transpose(2, 3).reshape(-1, 64, channels), x.stride()


#: the height and the width; of some there is nothing to add, or too much there
SIZES = [(20, 30), (33, 41), (24, 24), (48, 64), (32, 24), (17, 19), (24, 25)]
#: how many graphs there may be, the first of numbers
GRAPHS: list[tuple[Callable[[torch.Tensor], Any], int]] = [
    (to_multiple, 3), (to_size, 5), (around, 4), (with_channels_last, 2), (windows, 3),
]  # fmt: skip


@pytest.mark.parametrize(("case", "backend"), each_backend(GRAPHS, [GRAPHS[0]]), ids=str)
@pytest.mark.parametrize("first", range(3))
def test_sizes_vary(case: tuple[Callable[[torch.Tensor], Any], int], backend: str, first: int) -> None:
    program, graphs = case
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for height, width in SIZES[first:] + SIZES[:first]:
        outcomes = []
        for run in (program, compiled):
            image = torch.arange(float(height * width * 3)).reshape(height, width, 3).requires_grad_()
            made, *facts = run(image)
            made.sin().sum().backward()
            outcomes.append((made.detach(), made.stride() if backend == "eager" else None, facts, image.grad))
        torch.testing.assert_close(*outcomes)
    assert stator.stats().graphs <= graphs


class Counted(torch.Tensor):
    seen = 0

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen += function is F.pad
        return super().__torch_function__(function, types, args, kwargs or {})


def test_overrides_are_called() -> None:
    def program(image: torch.Tensor) -> Any:
        x = image.as_subclass(Counted).permute(2, 0, 1)
        return F.pad(x, (0, -image.shape[1] % 8, 0, -image.shape[0] % 8)).as_subclass(torch.Tensor), Counted.seen

    compiled = stator.compile(program, backend="eager")
    outcomes = []
    for run in (program, compiled):
        Counted.seen = 0
        outcomes.append([run(torch.ones(height, width, 3))[1] for height, width in SIZES])
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("amounts", [(-30, 0), (1, 2, 3), (0, 0, 0, 0, 0, 0, 0, 0)])
def test_errors_are_eagers(amounts: tuple[int, ...]) -> None:
    def program(image: torch.Tensor) -> Any:
        return F.pad(image.permute(2, 0, 1), tuple(amount + 0 * image.shape[0] for amount in amounts))

    compiled = stator.compile(program, backend="eager", dynamic=True)
    for size in (4, 5):
        outcomes = []
        for run in (program, compiled):
            with pytest.raises(RuntimeError) as caught:
                run(torch.ones(size, size + 1, 3))
            outcomes.append(str(caught.value))
        assert outcomes[0] == outcomes[1]
