"""A language model in the manner of Llama: what its first compilation imports is looked at (test_startup)."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


def rotated(x: Any) -> Any:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)
        self.first, self.second = Norm(width), Norm(width)

    def forward(self, x: Any, cos: Any, sin: Any, mask: Any) -> Any:
        h = self.first(x)
        q, k, v = (m(h).view(*h.shape[:2], self.heads, -1).transpose(1, 2) for m in (self.q, self.k, self.v))
        q, k = q * cos + rotated(q) * sin, k * cos + rotated(k) * sin
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.o(seen.transpose(1, 2).reshape(x.shape))
        h = self.second(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """Embedding, `layers` blocks with rotary positions and a causal mask, head."""

    frequencies: torch.Tensor

    def __init__(self, layers: int = 2, width: int = 32, heads: int = 4, words: int = 50) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = Norm(width)
        self.head = nn.Linear(width, words, bias=False)
        size = width // heads
        self.register_buffer("frequencies", 1.0 / (10000 ** (torch.arange(0, size, 2).float() / size)))

    def forward(self, ids: Any) -> Any:
        count = ids.shape[1]
        angles = torch.outer(torch.arange(count, device=ids.device).float(), self.frequencies)
        angles = torch.cat((angles, angles), dim=-1)
        mask = torch.full((count, count), float("-inf")).triu(1)
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin(), mask)
        return self.head(self.norm(x))
