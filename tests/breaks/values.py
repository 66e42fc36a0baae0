# needs: torch
"""Python numbers, text and shapes made of what tensors hold."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.breaks.registry import Calls, program


@program()
def history_of_losses_as_numbers() -> tuple[Any, Calls]:
    model = nn.Linear(4, 1)
    history = []

    def evaluate(x, y):
        loss = F.mse_loss(model(x), y)
        history.append(float(loss.detach().numpy()))
        return loss * 2

    return evaluate, [(torch.randn(3, 4), torch.randn(3, 1))]


@history_of_losses_as_numbers.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(4, 1)
    history = []

    def evaluate(x, y):
        loss = F.mse_loss(model(x), y)
        history.append(loss.detach())
        return loss * 2

    return evaluate, [(torch.randn(3, 4), torch.randn(3, 1))]


@program()
def lengths_to_a_list() -> tuple[Any, Calls]:
    def pool(x, lengths):
        rows = [row[:n].mean(0) for row, n in zip(x, lengths.tolist())]
        return torch.stack(rows)

    return pool, [(torch.randn(2, 4, 3), torch.tensor([2, 4]))]


@lengths_to_a_list.fix
def _() -> tuple[Any, Calls]:
    def pool(x, lengths):
        inside = (torch.arange(x.shape[1]) < lengths[:, None])[..., None]
        return (x * inside).sum(1) / lengths[:, None]

    return pool, [(torch.randn(2, 4, 3), torch.tensor([2, 4]))]


@program()
def confusion_by_label() -> tuple[Any, Calls]:
    counts = {0: 0, 1: 0, 2: 0}

    def count(logits):
        label = logits.argmax().item()
        counts[label] += 1  # SB0201, SB0601
        return logits.softmax(-1)

    return count, [(torch.tensor([0.1, 0.9, 0.3]),), (torch.tensor([0.8, 0.1, 0.3]),)]


@confusion_by_label.fix
def _() -> tuple[Any, Calls]:
    counts = torch.zeros(3, dtype=torch.long)

    def count(logits):
        counts.scatter_add_(0, logits.argmax()[None], torch.ones(1, dtype=torch.long))
        return logits.softmax(-1)

    return count, [(torch.tensor([0.1, 0.9, 0.3]),), (torch.tensor([0.8, 0.1, 0.3]),)]


@program()
def progress_with_the_loss() -> tuple[Any, Calls]:
    model = nn.Linear(4, 2)
    lines = []

    def step(x):
        loss = model(x).pow(2).mean()
        lines.append(f"loss {loss.item():.3f}")
        return loss

    return step, [(torch.randn(3, 4),)]


@progress_with_the_loss.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(4, 2)
    lines = []

    def step(x):
        loss = model(x).pow(2).mean()
        lines.append(loss.detach())
        return loss

    return step, [(torch.randn(3, 4),)]


@program(same=False)
def name_of_the_best_class() -> tuple[Any, Calls]:
    names = ["cat", "dog", "eel"]

    def classify(logits):
        best = logits.argmax().item()
        return names[best], logits.softmax(-1)[best]  # SB0201

    return classify, [(torch.tensor([0.1, 0.9, 0.3]),)]


@name_of_the_best_class.fix
def _() -> tuple[Any, Calls]:
    names = ["cat", "dog", "eel"]

    def classify(logits):
        return names, logits.softmax(-1)[logits.argmax()]

    return classify, [(torch.tensor([0.1, 0.9, 0.3]),)]


@program()
def least_squares() -> tuple[Any, Calls]:
    def fit(a, b):
        solution = torch.linalg.lstsq(a, b).solution  # SB0203
        return (a @ solution - b).pow(2).sum()

    return fit, [(torch.eye(3) + 1, torch.ones(3, 1))]


@least_squares.fix
def _() -> tuple[Any, Calls]:
    def fit(a, b):
        solution = torch.linalg.solve(a, b)
        return (a @ solution - b).pow(2).sum()

    return fit, [(torch.eye(3) + 1, torch.ones(3, 1))]


@program()
def unique_speakers() -> tuple[Any, Calls]:
    def per_speaker(x, speaker):
        return [x[speaker == each].mean() for each in torch.unique(speaker)]  # SB0202

    return per_speaker, [(torch.arange(4.0), torch.tensor([0, 1, 1, 0]))]


@unique_speakers.fix
def _() -> tuple[Any, Calls]:
    def per_speaker(x, speaker):
        own = F.one_hot(speaker, 2).float()
        return list((x @ own) / own.sum(0))

    return per_speaker, [(torch.arange(4.0), torch.tensor([0, 1, 1, 0]))]


@program()
def split_at_lengths() -> tuple[Any, Calls]:
    def split(x, lengths):
        return [part.sum() for part in torch.split(x, lengths.tolist())]

    return split, [(torch.arange(5.0), torch.tensor([2, 3]))]


@split_at_lengths.fix
def _() -> tuple[Any, Calls]:
    def split(x, lengths):
        ends = lengths.cumsum(0)
        sums = torch.cat([torch.zeros(1), x.cumsum(0)])
        return list(sums[ends] - sums[ends - lengths])

    return split, [(torch.arange(5.0), torch.tensor([2, 3]))]


@program()
def histogram_of_weights() -> tuple[Any, Calls]:
    def entropy(x):
        p = torch.histc(x, bins=int(x.max()), min=0, max=4) / x.numel()  # SB0202
        return p.sum()

    return entropy, [(torch.tensor([0.0, 1.0, 2.0, 3.0]),)]


@histogram_of_weights.fix
def _() -> tuple[Any, Calls]:
    def entropy(x, bins):
        p = torch.histc(x, bins=bins, min=0, max=4) / x.numel()
        return p.sum()

    return entropy, [(torch.tensor([0.0, 1.0, 2.0, 3.0]), 3)]


@program()
def loop_over_a_count() -> tuple[Any, Calls]:
    cell = nn.GRUCell(3, 3)

    def rollout(x, steps):
        h = torch.zeros(1, 3)
        for _ in range(int(steps)):  # SB0201
            h = cell(x, h)
        return h

    return rollout, [(torch.randn(1, 3), torch.tensor(3))]


@loop_over_a_count.fix
def _() -> tuple[Any, Calls]:
    cell = nn.GRUCell(3, 3)

    def rollout(x, steps):
        h = torch.zeros(1, 3)
        for _ in range(steps):
            h = cell(x, h)
        return h

    return rollout, [(torch.randn(1, 3), 3)]


@program()
def vocabulary_of_seen_tokens() -> tuple[Any, Calls]:
    embed = nn.Embedding(10, 3)
    seen = set()

    def lookup(tokens):
        seen.update(tokens.tolist())  # SB0201
        return embed(tokens).sum()

    return lookup, [(torch.tensor([1, 2, 1]),)]


@vocabulary_of_seen_tokens.fix
def _() -> tuple[Any, Calls]:
    embed = nn.Embedding(10, 3)
    seen = torch.zeros(10, dtype=torch.bool)

    def lookup(tokens):
        seen[tokens] = True
        return embed(tokens).sum()

    return lookup, [(torch.tensor([1, 2, 1]),)]


@program()
def export_to_bytes() -> tuple[Any, Calls]:
    def digest(x):
        h = torch.relu(x)
        return len(bytes(h.to(torch.uint8).tolist())), h.sum()  # SB0201

    return digest, [(torch.arange(4.0),)]


@export_to_bytes.fix
def _() -> tuple[Any, Calls]:
    def digest(x):
        h = torch.relu(x)
        return h.numel(), h.sum()

    return digest, [(torch.arange(4.0),)]


@program()
def address_of_the_storage() -> tuple[Any, Calls]:
    cache = {}

    def remember(x):
        h = x * 2
        cache[h.data_ptr()] = h.shape  # SB0204
        return len(cache), h + 1

    return remember, [(torch.ones(3),)]


@address_of_the_storage.fix
def _() -> tuple[Any, Calls]:
    cache = {}

    def remember(x):
        h = x * 2
        cache["h"] = h.shape
        return len(cache), h + 1

    return remember, [(torch.ones(3),)]


@program()
def shape_from_a_tensor() -> tuple[Any, Calls]:
    def grid(x, size):
        height, width = size.tolist()
        return x.reshape(height, width).sum(1)

    return grid, [(torch.arange(6.0), torch.tensor([2, 3]))]


@shape_from_a_tensor.fix
def _() -> tuple[Any, Calls]:
    def grid(x, size):
        height, width = size
        return x.reshape(height, width).sum(1)

    return grid, [(torch.arange(6.0), (2, 3))]
