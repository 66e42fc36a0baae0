# needs: torch
"""Choices between two or three values, by what tensors hold: their fixed forms are mechanical."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.breaks.registry import Calls, program


@program()
def normalised_unless_it_is_zero() -> tuple[Any, Calls]:
    def unit(x):
        size = x.norm().item()
        return x / size if size > 0 else x  # SB0201

    return unit, [(torch.randn(3),), (torch.zeros(3),)]


@normalised_unless_it_is_zero.fix
def _() -> tuple[Any, Calls]:
    def unit(x):
        size = x.norm()
        return x / torch.where(size > 0, size, 1)

    return unit, [(torch.randn(3),), (torch.zeros(3),)]


@program()
def a_loss_in_three_pieces() -> tuple[Any, Calls]:
    model = nn.Linear(4, 1)

    def loss(x, y):
        error = (model(x) - y).abs().mean()
        if error < 0.5:  # SB0201
            value = error.pow(2)
        elif error < 2:  # SB0201
            value = error
        else:
            value = 2 * error.sqrt()
        return value

    x = torch.randn(3, 4)
    return loss, [(x, torch.zeros(3, 1)), (x, torch.ones(3, 1)), (x, torch.ones(3, 1) * 9)]


@a_loss_in_three_pieces.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(4, 1)

    def loss(x, y):
        error = (model(x) - y).abs().mean()
        return torch.where(error < 0.5, error.pow(2), torch.where(error < 2, error, 2 * error.sqrt()))

    x = torch.randn(3, 4)
    return loss, [(x, torch.zeros(3, 1)), (x, torch.ones(3, 1)), (x, torch.ones(3, 1) * 9)]


@program()
def nothing_to_mask() -> tuple[Any, Calls]:
    def masked(x, mask):
        if not mask.any():  # SB0201, SB0601
            return x * 1.0
        return x.masked_fill(mask, 0.0)

    return masked, [(torch.randn(3), torch.tensor([True, False, True])), (torch.randn(3), torch.zeros(3).bool())]


@nothing_to_mask.fix
def _() -> tuple[Any, Calls]:
    def masked(x, mask):
        return x.masked_fill(mask, 0.0)

    return masked, [(torch.randn(3), torch.tensor([True, False, True])), (torch.randn(3), torch.zeros(3).bool())]


@program()
def the_larger_of_two_losses() -> tuple[Any, Calls]:
    model = nn.Linear(4, 2)

    def loss(x):
        out = model(x)
        first, second = out[:, 0].pow(2).mean(), out[:, 1].abs().mean()
        return max(first, second)  # SB0201

    return loss, [(torch.randn(3, 4),), (torch.randn(3, 4) * 4,)]


@the_larger_of_two_losses.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(4, 2)

    def loss(x):
        out = model(x)
        return torch.maximum(out[:, 0].pow(2).mean(), out[:, 1].abs().mean())

    return loss, [(torch.randn(3, 4),), (torch.randn(3, 4) * 4,)]


@program()
def two_settings_at_once() -> tuple[Any, Calls]:
    def adapt(x, loss):
        # how fast, and how far
        if loss.mean() > 1:  # SB0201
            rate = loss.mean() / 10
            limit = x.abs().max()
        else:
            rate = loss.mean() * 2
            limit = x.abs().mean()
        return (x * rate).clamp(max=limit)

    return adapt, [(torch.randn(3), torch.rand(3)), (torch.randn(3), torch.rand(3) + 2)]


@two_settings_at_once.fix
def _() -> tuple[Any, Calls]:
    def adapt(x, loss):
        high = loss.mean() > 1
        rate = torch.where(high, loss.mean() / 10, loss.mean() * 2)
        limit = torch.where(high, x.abs().max(), x.abs().mean())
        return (x * rate).clamp(max=limit)

    return adapt, [(torch.randn(3), torch.rand(3)), (torch.randn(3), torch.rand(3) + 2)]


@program()
def a_total_that_is_counted_in_python() -> tuple[Any, Calls]:
    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(x):
        total = 0.0
        for layer in layers:
            x = layer(x).relu()
            total += x.sum().item()
        return x / total if total > 1 else x  # SB0201, SB0601

    return forward, [(torch.randn(2, 4),), (torch.randn(2, 4) * 10,)]


@a_total_that_is_counted_in_python.fix
def _() -> tuple[Any, Calls]:
    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(x):
        total = 0.0
        for layer in layers:
            x = layer(x).relu()
            total = total + x.sum().detach()
        return x / torch.where(total > 1, total, 1)

    return forward, [(torch.randn(2, 4),), (torch.randn(2, 4) * 10,)]


@program()
def decided_by_one_number() -> tuple[Any, Calls]:
    model = nn.Linear(4, 4)

    def forward(x):
        if float(x.var()) > 0.5 or x.max().item() > 2:  # SB0201
            x = torch.tanh(x)
        return model(x)

    return forward, [(torch.randn(2, 4),), (torch.zeros(2, 4),)]


@decided_by_one_number.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(4, 4)

    def forward(x):
        x = torch.where((x.var() > 0.5) | (x.max() > 2), torch.tanh(x), x)
        return model(x)

    return forward, [(torch.randn(2, 4),), (torch.zeros(2, 4),)]


@program()
def a_step_that_writes_only_if_it_is_large() -> tuple[Any, Calls]:
    weight = torch.ones(3)

    def update(grad):
        kept = grad if grad.norm() < 1 else grad / 2  # SB0201
        kept.mul_(0.5)
        return weight - kept

    return update, [(torch.ones(3) / 4,), (torch.ones(3) * 4,)]


@a_step_that_writes_only_if_it_is_large.fix
def _() -> tuple[Any, Calls]:
    weight = torch.ones(3)

    def update(grad):
        small = grad.norm() < 1
        kept = torch.where(small, grad, grad / 2) * 0.5
        grad.copy_(torch.where(small, kept, grad))
        return weight - kept

    return update, [(torch.ones(3) / 4,), (torch.ones(3) * 4,)]
