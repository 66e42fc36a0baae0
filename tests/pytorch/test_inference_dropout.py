"""Dropouts in inference mode, where torch shows them whole: those that drop nothing draw no numbers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.each_backend import each_backend

PLACES = ["decorated", "inside", "around"]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self.drop(torch.relu(self.layer(x))))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("place", "backend"), each_backend(PLACES, ["inside"]))
def test_no_break(place: str, backend: str, training: bool) -> None:
    if training and backend == "inductor":
        pytest.skip("Inductor draws other numbers")
    model = Model().train(training)

    def within(x: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            return model(x)

    program = {"decorated": torch.inference_mode()(model.forward), "inside": within, "around": model}[place]
    stator.reset()
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for size in (2, 3, 5):
        x, made = torch.randn(size, 4), []
        for run in (compiled, program):
            torch.manual_seed(size)
            with torch.inference_mode(place == "around"):
                made.append((run(x), torch.rand(2)))
        torch.testing.assert_close(*made)
    assert stator.stats().graphs <= 2
