"""What regional compilation costs: equal blocks that are compiled one by one; Stator beside torch.

    python benchmarks/regions.py                      every case, both tracers
    python benchmarks/regions.py --only Llama lambda  the cases with these words in their names

Each tracer runs in a process of its own, reset before each case and warmed up by another one. A row: the graphs
compiled for three sizes, and the CPU seconds of compiling and running them, forward and backward. `wrong` where a
result differs from eager's. With diffusers and accelerate installed, their regional compilation too.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS = 32, 4
SIZES = (6, 9, 13)


# -- blocks --------------------------------------------------------------------------------------------------


def heads(x: Tensor, count: int) -> Tensor:
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def rotated(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


class Llama(nn.Module):
    """Grouped attention with rotary positions, and a gated MLP."""

    def __init__(self, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx = layer_idx
        self.before, self.after = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.q, self.o = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.kv = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.before(x)
        q, (k, v) = heads(self.q(y), HEADS), heads(self.kv(y), HEADS).chunk(2, 1)
        place = torch.arange(x.size(1)).unsqueeze(-1) * torch.ones(q.size(-1)) / 10
        q, k = (t * place.cos() + rotated(t) * place.sin() for t in (q, k))
        k, v = (t.repeat_interleave(HEADS // t.size(1), 1) for t in (k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.after(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class ViT(nn.Module):
    """Attention and an MLP, each after a norm."""

    def __init__(self, layer_idx: int) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def attend(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)
        return self.o(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, -1))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.before(x))
        return x + self.mlp(self.after(x))


class DiT(ViT):
    """A ViT's block that is shifted and scaled by a condition."""

    def __init__(self, layer_idx: int) -> None:
        super().__init__(layer_idx)
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 6 * WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        condition = x.mean(1, keepdim=True)
        shift, scale, gate, shift2, scale2, gate2 = self.modulation(condition).chunk(6, -1)
        x = x + gate * self.attend(self.before(x) * (1 + scale) + shift)
        return x + gate2 * self.mlp(self.after(x) * (1 + scale2) + shift2)


class Model(nn.Module):
    """Blocks, one after the other."""

    _repeated_blocks = ("Llama", "ViT", "DiT")

    def __init__(self, block: type[nn.Module], count: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(block(i) for i in range(count))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


# -- ways to compile them ------------------------------------------------------------------------------------


def in_place(model: Model, **options: Any) -> nn.Module:
    for block in model.blocks:
        block.compile(**options)
    return model


def wrapped(model: Model, **options: Any) -> nn.Module:
    model.blocks = nn.ModuleList(torch.compile(block, **options) for block in model.blocks)
    return model


def lambdas(model: Model, **options: Any) -> Callable[[Tensor], Tensor]:
    """A lambda compiled in a loop, at each call anew."""

    def run(x: Tensor) -> Tensor:
        for block in model.blocks:
            x = torch.compile(lambda x, block=block: block(x), **options)(x)
        return x

    return run


def by_diffusers(model: Model, **options: Any) -> nn.Module:
    from diffusers import ModelMixin

    ModelMixin.compile_repeated_blocks(model, **options)
    return model


def by_accelerate(model: Model, **options: Any) -> nn.Module:
    from accelerate.utils import compile_regions

    return compile_regions(model, **options)


class Case(NamedTuple):
    block: type[nn.Module]
    way: Callable[..., Callable[[Tensor], Tensor]]
    backend: str


WAYS = {"block.compile()": in_place, "compile(block)": wrapped, "compile(lambda)": lambdas}
if importlib.util.find_spec("diffusers"):
    WAYS["compile_repeated_blocks"] = by_diffusers
if importlib.util.find_spec("accelerate"):
    WAYS["compile_regions"] = by_accelerate
CASES = {
    f"{block.__name__} {name} {backend}": Case(block, way, backend)
    for block in (Llama, DiT, ViT)
    for name, way in WAYS.items()
    for backend in ("eager", "aot_eager")
}


# -- measuring -----------------------------------------------------------------------------------------------


class Counter:
    """A backend that counts its graphs."""

    def __init__(self, name: str) -> None:
        self.graphs = 0
        self.name = name

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.graphs += 1
        if self.name == "eager":
            return gm.forward
        from torch._dynamo.backends.debugging import aot_eager

        return aot_eager(gm, example_inputs)


def measured(case: Case, count: int) -> dict[str, Any]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Model(case.block, count)
    inputs = [torch.randn(2, size, WIDTH) for size in SIZES]
    expected = [model(x).detach() for x in inputs]
    counter = Counter(case.backend)
    began = time.process_time()
    compiled = case.way(model, backend=counter)
    found = []
    for x in inputs:
        found.append(compiled(x))
        found[-1].sum().backward()
    seconds = time.process_time() - began
    right = all(torch.allclose(a, b, atol=1e-5) for a, b in zip(found, expected, strict=True))
    return {"blocks": count, "graphs": counter.graphs, "seconds": seconds, "wrong": not right}


def work(tracer: str, counts: list[int], names: list[str]) -> None:
    if tracer == "stator":
        import stator

        stator.install()
    for backend in ("eager", "aot_eager"):
        measured(Case(Llama, in_place, backend), 2)
    for name in names:
        print(json.dumps([measured(CASES[name], count) for count in counts]), flush=True)


def in_a_process(tracer: str, counts: list[int], names: list[str]) -> Iterator[list[dict[str, Any]]]:
    command = [sys.executable, __file__, "--worker", tracer, "--only", *names, "--blocks", *map(str, counts)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from map(json.loads, process.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[""], help="words of which the case's name has one")
    parser.add_argument("--blocks", nargs="*", type=int, default=[12, 48])
    parser.add_argument("--tracers", nargs="*", default=["stator", "torch"], choices=["stator", "torch"])
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = [name for name in CASES if any(word in name for word in options.only)]
    if options.worker:
        work(options.worker, options.blocks, names)
        return
    print(
        f"{'':45} {'blocks':>7} "
        + " ".join(f"{tracer + what:>16}" for tracer in options.tracers for what in (" graphs", " s"))
    )
    for name, *found in zip(names, *(in_a_process(t, options.blocks, names) for t in options.tracers), strict=True):
        for rows in zip(*found, strict=True):
            columns = "".join(f" {row['graphs']:>16} {row['seconds']:>16.2f}" for row in rows)
            print(
                f"{name:45} {rows[0]['blocks']:>7}{columns}{'  wrong' * any(row['wrong'] for row in rows)}", flush=True
            )


if __name__ == "__main__":
    main()
