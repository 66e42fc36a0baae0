"""Lightning's Trainer given a compiled module: its steps are compiled; and the module taken out again."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.utilities.compile import to_uncompiled
from torch import nn


class Net(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x: Any) -> Any:
        return self.layers(x)

    def training_step(self, batch: Any, index: int) -> Any:
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)

    def validation_step(self, batch: Any, index: int) -> None:
        x, y = batch
        self.log("loss", nn.functional.cross_entropy(self(x), y))

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters())


def run(backend: str | None) -> list[Any]:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    data = torch.utils.data.TensorDataset(torch.randn(14, 8), torch.randint(0, 2, (14,)))
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    model = Net()
    trainer = pl.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    given = model if backend is None else torch.compile(model, backend=backend)
    trainer.fit(given, loader, loader)
    loss = trainer.callback_metrics["loss"]
    predicted = trainer.predict(given, torch.utils.data.DataLoader(torch.randn(3, 8)))
    if backend is not None:
        assert to_uncompiled(given) is model
    return [loss, *predicted, *model.state_dict().values()]
