"""`accelerate.Accelerator` with a compiler: prepare, train, take the model out; and compiled regions."""

from __future__ import annotations

from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import compile_regions, extract_model_from_parallel, is_compiled_module
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(4))
        self.head = nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x) + x
        return self.head(x)


def run(backend: str | None) -> list[Any]:
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(cpu=True, dynamo_backend=backend)
    model = Net()
    original = model
    optimizer = torch.optim.AdamW(model.parameters())
    loader = torch.utils.data.DataLoader(torch.randn(14, 8), batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    assert is_compiled_module(model) is (backend is not None)
    for batch in loader:
        loss = model(batch).square().mean()
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    assert accelerator.unwrap_model(model, keep_torch_compile=False) is original
    assert extract_model_from_parallel(model) is model
    x = torch.randn(3, 8)
    regions = original if backend is None else compile_regions(original, backend=backend)
    return [loss, *original.state_dict().values(), regions(x), model(x)]
