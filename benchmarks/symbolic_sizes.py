"""What tracing with symbolic sizes costs beside tracing with numbers: attention blocks in the manner of four models.

    python benchmarks/symbolic_sizes.py                     4 and 12 blocks of each
    python benchmarks/symbolic_sizes.py --only bert --blocks 4 --profile dynamic
                                                            where the time goes, by function

CPU milliseconds of the first call with the backend "eager", medians: with sizes as numbers ("static"), with all of them
as symbols from the start ("dynamic"), and of the call at a second size, which compiles again ("second"). The three are
measured in turn, in both orders, after a first round of each; what is remembered of operations stays, as in real use.
"first" is the dynamic trace of the first round: operations that the process has met with numbers only.
"""

from __future__ import annotations

import argparse
import collections
import gc
import signal
import statistics
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import stator

WIDTH, HEADS, WINDOW = 64, 4, 4


class Norm(nn.Module):
    """Root mean squares."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


def rotated(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class Llama(nn.Module):
    """Rotary positions, fewer keys than queries, a gated MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(WIDTH, WIDTH // 2, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.before, self.after = Norm(), Norm()

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = x.shape
        y = self.before(x)
        q, k, v = (
            linear(y).view(batch, length, -1, WIDTH // HEADS).transpose(1, 2) for linear in (self.q, self.k, self.v)
        )
        q, k = q * cos + rotated(q) * sin, k * cos + rotated(k) * sin
        k, v = (t[:, :, None].expand(-1, -1, 2, -1, -1).reshape(batch, HEADS, length, -1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).contiguous().view(batch, length, -1))
        y = self.after(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Bert(nn.Module):
    """Attention by matrix products, a mask, norms at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.dense = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.inner, self.outer = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(0.1)

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.size()[:-1], HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / (WIDTH // HEADS) ** 0.5 + mask
        y = torch.matmul(self.dropout(scores.softmax(-1)), v).permute(0, 2, 1, 3).contiguous()
        x = self.norm1(x + self.dropout(self.dense(y.view(*y.size()[:-2], WIDTH))))
        return self.norm2(x + self.dropout(self.outer(F.gelu(self.inner(x)))))


class ViT(nn.Module):
    """Queries, keys and values of one product."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.before(x)).reshape(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.o(y.transpose(1, 2).reshape(batch, length, -1))
        return x + self.mlp(self.after(x))


class Swin(nn.Module):
    """Attention within windows of an image, shifted by half of one, with a bias for each place."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.bias = nn.Parameter(torch.zeros(HEADS, WINDOW**2, WINDOW**2))
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def attend(self, x: Tensor) -> Tensor:
        batch, height, width, _ = x.shape
        x = x.view(batch, height // WINDOW, WINDOW, width // WINDOW, WINDOW, WIDTH)
        x = x.permute(0, 1, 3, 2, 4, 5).reshape(-1, WINDOW**2, WIDTH)
        q, k, v = self.qkv(x).reshape(x.shape[0], WINDOW**2, 3, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5 + self.bias).softmax(-1)
        x = self.o((scores @ v).transpose(1, 2).reshape(x.shape[0], WINDOW**2, WIDTH))
        x = x.view(batch, height // WINDOW, width // WINDOW, WINDOW, WINDOW, WIDTH)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(batch, height, width, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        shift = WINDOW // 2
        y = torch.roll(self.before(x), (-shift, -shift), (1, 2))
        x = x + torch.roll(self.attend(y), (shift, shift), (1, 2))
        return x + self.mlp(self.after(x))


class Model(nn.Module):
    """Blocks, one after the other."""

    def __init__(self, block: type[nn.Module], count: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(block() for _ in range(count))

    def forward(self, x: Tensor, *others: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x, *others)
        return x


def inputs(block: type[nn.Module], batch: int, length: int) -> tuple[Tensor, ...]:
    x = torch.randn(batch, length, WIDTH)
    if block is Llama:
        return x, torch.randn(length, WIDTH // HEADS), torch.randn(length, WIDTH // HEADS)
    if block is Swin:
        return (torch.randn(batch, length, 2 * length, WIDTH),)
    return (x, torch.zeros(batch, 1, 1, length)) if block is Bert else (x,)


BLOCKS: dict[str, type[nn.Module]] = {"llama": Llama, "bert": Bert, "vit": ViT, "swin": Swin}


def compiled(model: nn.Module, before: tuple[Tensor, ...] = (), **options: Any) -> Callable[..., Any]:
    stator.reset()
    made = stator.compile(model, backend="eager", fullgraph=True, **options)
    if before:
        made(*before)
    return made


class Sampler:
    """Counts functions on the stack each two milliseconds; profilers see nothing of a trace."""

    def __init__(self) -> None:
        self.samples = 0
        self.seen: collections.Counter[str] = collections.Counter()
        signal.signal(signal.SIGPROF, self.note)

    def note(self, number: int, frame: FrameType | None) -> None:
        self.samples += 1
        codes = set()
        while frame is not None:
            codes.add(frame.f_code)
            frame = frame.f_back
        self.seen.update(f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}" for code in codes)

    def show(self) -> None:
        for name, count in self.seen.most_common(80):
            print(f"{100 * count / self.samples:5.1f} % {name}")


def milliseconds(call: Callable[..., Any], args: tuple[Tensor, ...], sampled: bool) -> float:
    gc.collect()
    began = time.process_time()
    if sampled:
        signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
    call(*args)
    signal.setitimer(signal.ITIMER_PROF, 0)
    return 1000 * (time.process_time() - began)


def measured(block: type[nn.Module], count: int, rounds: int, sampled: str | None) -> dict[str, float]:
    torch.manual_seed(0)
    model, one, other = Model(block, count), inputs(block, 2, 16), inputs(block, 3, 24)
    ways: dict[str, Callable[[], Callable[..., Any]]] = {
        "static": lambda: compiled(model, dynamic=False),
        "dynamic": lambda: compiled(model, dynamic=True),
        "second": lambda: compiled(model, one),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    first: dict[str, float] = {}
    for number in range(rounds + 1):
        for name in list(ways)[:: -1 if number % 2 else 1]:
            told = milliseconds(ways[name](), other, sampled == (name if number else f"first {name}"))
            if number:
                found[name].append(told)
            else:
                first[name] = told
    return {name: statistics.median(times) for name, times in found.items()} | {"first": first["dynamic"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(BLOCKS), choices=list(BLOCKS))
    parser.add_argument("--blocks", nargs="*", type=int, default=[4, 12])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--profile", choices=["static", "dynamic", "second", "first dynamic"])
    options = parser.parse_args()
    stator.compile(Model(Norm, 1), backend="eager", dynamic=True)(torch.randn(2, 3, WIDTH))  # what is imported
    print(f"{'':10}" + "".join(f"{name:>10}" for name in ("static", "dynamic", "second", "first")) + "   to static")
    sampler = Sampler()
    for name in options.only:
        for count in options.blocks:
            found = measured(BLOCKS[name], count, options.rounds, options.profile)
            ratios = [f"{found[kind] / found['static']:6.2f}" for kind in ("dynamic", "second", "first")]
            print(
                f"{name:7}{count:3}" + "".join(f"{told:10.1f}" for told in found.values()) + "".join(ratios), flush=True
            )
    if options.profile:
        sampler.show()


if __name__ == "__main__":
    main()
