"""Where a trace would need a value, it is told what helps for what the value is needed for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator
from stator import errors
from stator.models.numbers.advice import FOR_ITEMS, FOR_ORDER

NAMES = ["a", "b", "c", "d"]


def by_numbers(x: torch.Tensor) -> Any:
    return sorted([(i, x[i].item()) for i in range(3)], key=lambda pair: pair[1])[0][0]


def by_tensors(x: torch.Tensor) -> Any:
    return sorted(range(3), key=lambda i: x[i])


def in_place(x: torch.Tensor) -> Any:
    order = [0, 1, 2]
    order.sort(key=lambda i: float(x[i]), reverse=True)
    return order


def largest(x: torch.Tensor) -> Any:
    return max([x[0], x[1]], key=lambda row: row * 2)


def name(x: torch.Tensor) -> Any:
    return x * 2, NAMES[x.argmax().item()]  # type: ignore[call-overload]


def name_by_tensor(x: torch.Tensor) -> Any:
    return x * 2, NAMES[x.argmax()]


def new_name(x: torch.Tensor) -> Any:
    return x * 2, ("a", "b", "c", "d")[int(x.argmax())]


def entry(x: torch.Tensor) -> Any:
    return x * 2, {0: "a", 1: "b", 2: "c", 3: "d"}[int(x.argmax())]


def rows(x: torch.Tensor) -> Any:
    chosen = x[x > 1]
    return x * 2 if len(chosen) > 2 else x


def places(x: torch.Tensor) -> Any:
    return x * 2 if torch.nonzero(x > 1).shape[0] > 2 else x


def number(x: torch.Tensor) -> Any:
    return x * 2 if (x > 1).sum().item() > 2 else x


FOR_COUNTS = (
    "count with the mask: `mask & (mask.cumsum(0) <= n)` selects the first n of them, topk of what the mask leaves "
)
FOR_COUNTS += "(-inf elsewhere) the best, mask.sum() is a tensor"
HINTS: dict[Callable[[torch.Tensor], Any], str] = {
    **dict.fromkeys((by_numbers, by_tensors, in_place, largest), FOR_ORDER),
    **dict.fromkeys((name, name_by_tensor, new_name, entry), FOR_ITEMS),
    **dict.fromkeys((rows, places), FOR_COUNTS),
    number: errors.DataDependentBranch.hint,
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", HINTS, ids=lambda program: program.__name__)
def test_what_helps(program: Callable[[torch.Tensor], Any], backend: str) -> None:
    x = torch.tensor([1.0, 3.0, 2.0, 5.0])
    with pytest.raises(stator.GraphBreakError) as caught:
        stator.compile(program, backend=backend, fullgraph=True)(x)
    assert (caught.value.code, caught.value.hint) == ("SB0201", HINTS[program])
    compiled = stator.compile(program, backend=backend)
    for y in (x, x.flip(0), x[:3]):
        assert str(compiled(y)) == str(program(y))
