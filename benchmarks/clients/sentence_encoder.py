"""sentence-transformers: an encoder compiled as a whole and in place, asked for texts of several lengths."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "graphs", "break", "rarely", "models", "run", "."]
TEXTS = ["graphs break rarely .", "models run", "models run . graphs break rarely . models run .", "run", "."]


def run(backend: str | None) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "vocab.txt").write_text("\n".join(WORDS))
        BertTokenizer(str(Path(folder) / "vocab.txt")).save_pretrained(folder)
        config = BertConfig(
            vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
        )
        BertModel(config).save_pretrained(folder)
        first = Transformer(folder)
        model = SentenceTransformer(modules=[first, Pooling(16)], device="cpu")
    compiled: Any = model if backend is None else torch.compile(model, backend=backend)
    found = [compiled.encode(TEXTS[:n], convert_to_tensor=True, show_progress_bar=False) for n in (1, 2, 5)]
    if backend is not None:
        model.compile(backend=backend)
    found += [model.encode(TEXTS, batch_size=2, convert_to_tensor=True, show_progress_bar=False)]
    return found
