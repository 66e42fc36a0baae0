"""`transformers.Trainer` with `torch_compile=True`: training, evaluation, a saved model."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


def run(backend: str | None) -> list[Any]:
    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    ids = torch.randint(0, 50, (20, 8))
    data = [{"input_ids": row, "labels": row[0] % 2} for row in ids]
    with tempfile.TemporaryDirectory() as folder:
        compiling = {} if backend is None else {"torch_compile": True, "torch_compile_backend": backend}
        arguments = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=4, num_train_epochs=1, report_to=[], use_cpu=True,
            disable_tqdm=True, save_strategy="no", seed=0, **compiling,
        )  # fmt: skip
        trainer = Trainer(
            model=BertForSequenceClassification(config), args=arguments, train_dataset=data, eval_dataset=data[:6]
        )
        trained = trainer.train()
        loss = trainer.evaluate()["eval_loss"]
        trainer.save_model(folder)
        saved = BertForSequenceClassification.from_pretrained(folder).state_dict()
    return [torch.tensor([trained.training_loss, loss]), *saved.values()]
