# needs: torch
"""Branches on what tensors hold."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.breaks.registry import Calls, program


def small_model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))


@program()
def scale_down_large_activations() -> tuple[Any, Calls]:
    model = small_model()

    def forward(x):
        h = model(x)
        if h.abs().max() > 0.1:  # SB0201
            h = h / h.abs().max()
        return torch.tanh(h)

    return forward, [(torch.randn(3, 4),), (torch.zeros(3, 4),)]


@scale_down_large_activations.fix
def _() -> tuple[Any, Calls]:
    model = small_model()

    def forward(x):
        h = model(x)
        h = torch.where(h.abs().max() > 0.1, h / h.abs().max(), h)
        return torch.tanh(h)

    return forward, [(torch.randn(3, 4),), (torch.zeros(3, 4),)]


@program(same=False)
def skip_a_step_with_infinite_loss() -> tuple[Any, Calls]:
    model = small_model()
    skipped = []

    def training_loss(x, target):
        loss = F.mse_loss(model(x), target)
        if not torch.isfinite(loss):  # SB0201
            skipped.append(x.shape[0])
            return torch.zeros(())
        return loss

    x = torch.randn(3, 4)
    return training_loss, [(x, torch.ones(3, 4)), (x, torch.full((3, 4), float("inf")))]


@skip_a_step_with_infinite_loss.fix
def _() -> tuple[Any, Calls]:
    model = small_model()

    def training_loss(x, target):
        loss = F.mse_loss(model(x), target)
        return torch.where(torch.isfinite(loss), loss, torch.zeros(()))

    x = torch.randn(3, 4)
    return training_loss, [(x, torch.ones(3, 4)), (x, torch.full((3, 4), float("inf")))]


@program(same=False)
def greedy_decoding_until_the_end() -> tuple[Any, Calls]:
    embed, head = nn.Embedding(7, 5), nn.Linear(5, 7)

    def decode(token):
        out = [token]
        for _ in range(4):  # SB0601
            token = head(embed(token)).argmax(-1)
            out.append(token)
            if token == 3:  # SB0201
                break
        return torch.stack(out)

    return decode, [(torch.tensor(1),)]


@greedy_decoding_until_the_end.fix
def _() -> tuple[Any, Calls]:
    embed, head = nn.Embedding(7, 5), nn.Linear(5, 7)

    def step(token):
        return head(embed(token)).argmax(-1)

    return step, [(torch.tensor(1),)]


@program()
def warmup_by_a_counter_in_a_buffer() -> tuple[Any, Calls]:
    class Warmup(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x):
            self.seen += 1
            if self.seen < 2:  # SB0201 SB0601
                return self.linear(x) * 0.1
            return self.linear(x)

    model = Warmup()
    x = torch.randn(2, 4)
    return model, [(x,), (x,), (x,)]


@warmup_by_a_counter_in_a_buffer.fix
def _() -> tuple[Any, Calls]:
    class Warmup(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x):
            self.seen += 1
            return self.linear(x) * torch.where(self.seen < 2, 0.1, 1.0)

    model = Warmup()
    x = torch.randn(2, 4)
    return model, [(x,), (x,), (x,)]


@program()
def newton_until_converged() -> tuple[Any, Calls]:
    def root(a):
        x = a.clone()
        while (x * x - a).abs().max() > 1e-3:  # SB0201
            x = (x + a / x) / 2
        return x

    return root, [(torch.tensor([2.0, 9.0]),)]


@newton_until_converged.fix
def _() -> tuple[Any, Calls]:
    def root(a):
        x = a.clone()
        for _ in range(8):
            better = (x + a / x) / 2
            x = torch.where((x * x - a).abs().max() > 1e-3, better, x)
        return x

    return root, [(torch.tensor([2.0, 9.0]),)]


@program()
def stop_when_all_have_ended() -> tuple[Any, Calls]:
    def decode(following, tokens):
        said = torch.zeros(tokens.shape[0], 6, dtype=torch.long)
        for step in range(6):
            tokens = following[tokens]
            said[:, step] = tokens
            ended = tokens == 0
            if ended.all():  # SB0201, SB0601
                break
        return said

    return decode, [
        (torch.tensor([0, 0, 1, 2]), torch.tensor([3, 1])),
        (torch.tensor([0, 0, 1, 2]), torch.tensor([2, 2])),
    ]


@stop_when_all_have_ended.fix
def _() -> tuple[Any, Calls]:
    def decode(following, tokens):
        said = torch.zeros(tokens.shape[0], 6, dtype=torch.long)
        for step in range(6):
            tokens = torch.where(tokens == 0, 0, following[tokens])
            said[:, step] = tokens
        return said

    return decode, [
        (torch.tensor([0, 0, 1, 2]), torch.tensor([3, 1])),
        (torch.tensor([0, 0, 1, 2]), torch.tensor([2, 2])),
    ]


@program()
def choose_an_expert() -> tuple[Any, Calls]:
    class Routed(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(4, 2)
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            scores = self.gate(x.mean(0))
            if scores[0] > scores[1]:  # SB0201
                return self.first(x)
            return self.second(x)

    model = Routed()
    return model, [(torch.randn(3, 4),), (torch.randn(3, 4),)]


@choose_an_expert.fix
def _() -> tuple[Any, Calls]:
    class Routed(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(4, 2)
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            scores = self.gate(x.mean(0))
            return torch.where(scores[0] > scores[1], self.first(x), self.second(x))

    model = Routed()
    return model, [(torch.randn(3, 4),), (torch.randn(3, 4),)]


@program()
def mask_only_if_there_is_padding() -> tuple[Any, Calls]:
    attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def attend(x, padding):
        mask = padding if padding.any() else None  # SB0201, SB0601
        out, _ = attention(x, x, x, key_padding_mask=mask)
        return out

    x = torch.randn(2, 3, 4)
    some = torch.tensor([[False, False, True], [False, False, False]])
    return attend, [(x, some), (x, torch.zeros(2, 3, dtype=torch.bool))]


@mask_only_if_there_is_padding.fix
def _() -> tuple[Any, Calls]:
    attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def attend(x, padding):
        out, _ = attention(x, x, x, key_padding_mask=padding)
        return out

    x = torch.randn(2, 3, 4)
    some = torch.tensor([[False, False, True], [False, False, False]])
    return attend, [(x, some), (x, torch.zeros(2, 3, dtype=torch.bool))]


@program()
def clip_gradients_by_hand() -> tuple[Any, Calls]:
    def clip(grads, most):
        total = torch.sqrt(sum(g.pow(2).sum() for g in grads))
        if total > most:  # SB0201
            for g in grads:
                g.mul_(most / total)
        return total

    return clip, [([torch.ones(3), torch.ones(2)], 1.0), ([torch.ones(3) / 100, torch.ones(2) / 100], 1.0)]


@clip_gradients_by_hand.fix
def _() -> tuple[Any, Calls]:
    def clip(grads, most):
        total = torch.sqrt(sum(g.pow(2).sum() for g in grads))
        factor = torch.where(total > most, most / total, 1.0)
        for g in grads:
            g.mul_(factor)
        return total

    return clip, [([torch.ones(3), torch.ones(2)], 1.0), ([torch.ones(3) / 100, torch.ones(2) / 100], 1.0)]


@program()
def early_exit_of_a_classifier() -> tuple[Any, Calls]:
    class EarlyExit(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
            self.heads = nn.ModuleList(nn.Linear(4, 3) for _ in range(3))

        def forward(self, x):
            for block, head in zip(self.blocks, self.heads):  # SB0601
                x = torch.relu(block(x))
                logits = head(x)
                if logits.softmax(-1).max() > 0.45:  # SB0201
                    break
            return logits

    return EarlyExit(), [(torch.randn(1, 4),), (torch.randn(1, 4) * 5,)]


@early_exit_of_a_classifier.fix
def _() -> tuple[Any, Calls]:
    class EarlyExit(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
            self.heads = nn.ModuleList(nn.Linear(4, 3) for _ in range(3))

        def forward(self, x):
            sure, chosen = torch.zeros((), dtype=torch.bool), None
            for block, head in zip(self.blocks, self.heads):
                x = torch.relu(block(x))
                logits = head(x)
                chosen = logits if chosen is None else torch.where(sure, chosen, logits)
                sure = sure | (logits.softmax(-1).max() > 0.45)
            return chosen

    return EarlyExit(), [(torch.randn(1, 4),), (torch.randn(1, 4) * 5,)]


@program()
def best_loss_so_far() -> tuple[Any, Calls]:
    model = small_model()
    best = torch.tensor(float("inf"))

    def evaluate(x):
        nonlocal best
        loss = model(x).pow(2).mean()
        best = min(best, loss)  # SB0201, SB0601
        return best

    return evaluate, [(torch.randn(2, 4),), (torch.randn(2, 4),)]


@best_loss_so_far.fix
def _() -> tuple[Any, Calls]:
    model = small_model()
    best = torch.tensor(float("inf"))

    def evaluate(x):
        nonlocal best
        loss = model(x).pow(2).mean()
        best = torch.minimum(best, loss)
        return best

    return evaluate, [(torch.randn(2, 4),), (torch.randn(2, 4),)]


@program()
def labels_in_a_list() -> tuple[Any, Calls]:
    ignored = [torch.tensor(2), torch.tensor(5)]

    def weight(label, x):
        if label in ignored:  # SB0201, SB0601
            return x * 0
        return x

    return weight, [(torch.tensor(1), torch.ones(2)), (torch.tensor(5), torch.ones(2))]


@labels_in_a_list.fix
def _() -> tuple[Any, Calls]:
    ignored = torch.tensor([2, 5])

    def weight(label, x):
        return torch.where(torch.isin(label, ignored), x * 0, x)

    return weight, [(torch.tensor(1), torch.ones(2)), (torch.tensor(5), torch.ones(2))]


@program()
def both_conditions_at_once() -> tuple[Any, Calls]:
    def gate(x, limit):
        low = x.min() < 0 and x.max() < limit  # SB0201
        return x.clamp(min=0) if low else x  # SB0201

    return gate, [(torch.tensor([-1.0, 2.0]), 3.0), (torch.tensor([1.0, 2.0]), 3.0)]


@both_conditions_at_once.fix
def _() -> tuple[Any, Calls]:
    def gate(x, limit):
        low = (x.min() < 0) & (x.max() < limit)
        return torch.where(low, x.clamp(min=0), x)

    return gate, [(torch.tensor([-1.0, 2.0]), 3.0), (torch.tensor([1.0, 2.0]), 3.0)]


@program()
def filter_boxes_in_python() -> tuple[Any, Calls]:
    def keep(boxes, scores):
        kept = [box for box, score in zip(boxes, scores) if score > 0.5]  # SB0201, SB0601
        return torch.stack(kept).sum(0)

    return keep, [(torch.arange(12.0).reshape(3, 4), torch.tensor([0.9, 0.2, 0.7]))]


@filter_boxes_in_python.fix
def _() -> tuple[Any, Calls]:
    def keep(boxes, scores):
        return torch.where((scores > 0.5)[:, None], boxes, 0).sum(0)

    return keep, [(torch.arange(12.0).reshape(3, 4), torch.tensor([0.9, 0.2, 0.7]))]


@program()
def sorted_by_score() -> tuple[Any, Calls]:
    def rank(pairs):
        ordered = sorted(pairs, key=lambda pair: pair[0])  # SB0201
        return torch.stack([value for _, value in ordered])

    pairs = [(torch.tensor(2.0), torch.ones(2)), (torch.tensor(1.0), torch.zeros(2))]
    return rank, [(pairs,)]


@sorted_by_score.fix
def _() -> tuple[Any, Calls]:
    def rank(pairs):
        order = torch.stack([score for score, _ in pairs]).argsort()
        return torch.stack([value for _, value in pairs])[order]

    pairs = [(torch.tensor(2.0), torch.ones(2)), (torch.tensor(1.0), torch.zeros(2))]
    return rank, [(pairs,)]


@program()
def same_weights_check() -> tuple[Any, Calls]:
    model, shadow = small_model(), small_model()

    def drift(x):
        out = model(x)
        if torch.equal(model[0].weight, shadow[0].weight):  # SB0201
            return out
        return out - shadow(x)

    return drift, [(torch.randn(2, 4),)]


@same_weights_check.fix
def _() -> tuple[Any, Calls]:
    model, shadow = small_model(), small_model()

    def drift(x):
        out = model(x)
        same = (model[0].weight == shadow[0].weight).all()
        return torch.where(same, out, out - shadow(x))

    return drift, [(torch.randn(2, 4),)]
