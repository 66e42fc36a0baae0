"""timm: a compiled vision transformer trained with its optimizer, an average of its weights, and its checkpoint."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

with contextlib.suppress(ImportError):
    import stub_torchvision  # the zoo's: timm imports torchvision, and uses nothing of it here

    stub_torchvision.install()

import timm
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3, get_state_dict, unwrap_model


def run(backend: str | None) -> list[Any]:
    model = timm.create_model("vit_tiny_patch16_224", img_size=16, patch_size=8, depth=2, embed_dim=12, num_classes=3)
    averaged = ModelEmaV3(model, decay=0.5)
    compiled: Any = model if backend is None else torch.compile(model, backend=backend)
    assert unwrap_model(compiled) is model
    optimizer = create_optimizer_v2(compiled, opt="adamw", lr=1e-3)
    for n in (2, 3, 4):
        loss = torch.nn.functional.cross_entropy(compiled(torch.randn(n, 3, 16, 16)), torch.arange(n) % 3)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        averaged.update(model)
    compiled.eval()
    with torch.no_grad():
        out = compiled(torch.randn(2, 3, 16, 16))
        features = compiled.forward_features(torch.randn(2, 3, 16, 16))
    return [loss, out, features, *get_state_dict(compiled).values(), *averaged.module.state_dict().values()]
