"""`torch.where` with a condition of bytes, which torch takes with a warning."""

from __future__ import annotations

import warnings

import pytest
import torch

import stator
from tests.pytorch.gradients import alike
from tests.pytorch.old_torch import fails_on_old_torch


def chosen(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    mask = torch.arange(len(x)).to(torch.uint8)  # 2 is true as well
    return torch.where(mask, x, -x), x.where(mask, 3.0) * 2, torch.where(mask > 1, x, 0.0), torch.where(mask)[0]


def known(x: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.arange(len(x)).to(torch.uint8), x, x * 2).where((x > 1).byte(), x.sin())


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_is_not_zero_is_true(backend: str) -> None:
    alike(lambda: (known, []), backend=backend, breaks=0)
    alike(lambda: (chosen, []), backend=backend)


@fails_on_old_torch("inductor's C++ for a byte as a condition does not compile")
def test_with_inductor() -> None:
    alike(lambda: (known, []), backend="inductor", sizes=(3, 5), tolerance=1e-6, breaks=0)


def test_the_warning_reaches_the_program() -> None:
    x, before = torch.ones(3), torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        compiled = stator.compile(known, backend="eager")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            compiled(x)
        assert len([w for w in told if "uint8 condition" in str(w.message)]) == 2
    finally:
        torch.set_warn_always(before)
