"""`torch.IntTensor(…)` and its like, the constructors of old: sizes, data, or a tensor of the very type."""

from __future__ import annotations

import pytest
import torch

from tests.pytorch.gradients import alike

PROGRAMS = {
    "data": lambda x: x * torch.IntTensor([3]) + torch.FloatTensor([[1], [2]]),
    "converted": lambda x: (torch.LongTensor([1.5, True]), torch.BoolTensor([0, 2]), torch.ByteTensor((1, 2)), x),
    "sizes": lambda x: torch.FloatTensor(2, len(x)).fill_(2) * x,
    "a Size": lambda x: torch.HalfTensor(x.shape).zero_() + x,
    "nothing": lambda x: (torch.DoubleTensor(), x * 2),
    "a tensor": lambda x: torch.FloatTensor(x) * 2,
    "instances": lambda x: (
        x * isinstance(x, torch.FloatTensor),
        isinstance(x.int(), (torch.LongTensor, torch.IntTensor)),
    ),
    "no instances": lambda x: (x * 2, isinstance(x, torch.DoubleTensor), isinstance(1, torch.FloatTensor)),
    "an instance of another class": lambda x: isinstance(torch.nn.Parameter(x.detach()), torch.FloatTensor) * x,
    "a number as a bound": lambda x: x[: torch.IntTensor([2])[0]] * 2,
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, backend: str) -> None:
    alike(lambda: (PROGRAMS[name], []), backend=backend, breaks=0)


def test_with_inductor() -> None:
    alike(lambda: (PROGRAMS["data"], []), backend="inductor", sizes=(3, 5), tolerance=1e-6, breaks=0)


def _written(x: torch.Tensor) -> torch.Tensor:
    counts = torch.zeros(3, dtype=torch.int32)
    torch.IntTensor(counts).add_(2)
    return counts * x.sum()


def test_a_tensor_shares_its_memory() -> None:
    alike(lambda: (_written, []), breaks=0)


def test_made_on_the_cpu_whatever_the_default_device() -> None:
    def made(x: torch.Tensor) -> torch.Tensor:
        with torch.device("meta"):
            return torch.IntTensor([1, 2, 3])[0] * x

    alike(lambda: (made, []), breaks=0)


def _told(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    kinds = (torch.FloatTensor, torch.LongTensor, torch.cuda.FloatTensor, torch.sparse.FloatTensor)
    things = (x, x.long(), 1.0, None)
    found = [isinstance(thing, kind) for thing in things for kind in (*kinds, kinds[:2])]
    return x * torch.tensor(found)[:, None], x * isinstance(x, (int, torch.IntTensor))


def test_instances() -> None:
    alike(lambda: (_told, []), breaks=0)


REFUSED = {
    "another type": lambda x: torch.IntTensor(x),
    "a bool": lambda x: torch.IntTensor(True) + torch.Tensor(True) + x,
    "a float": lambda x: torch.IntTensor(2.5),
    "overflow": lambda x: torch.ByteTensor([300]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors(name: str) -> None:
    alike(lambda: (REFUSED[name], []))
