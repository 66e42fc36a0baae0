"""How many graphs loops cost: breaks in loops, generation, sizes that vary, schedulers, branches; Stator beside torch.

    python benchmarks/loops.py                    every case, both tracers
    python benchmarks/loops.py --only while nano  the cases with these words in their names
    python benchmarks/loops.py --only while --show   what Stator says of each recompile too

Each tracer runs in a process of its own, reset before each case, with a backend that only counts. A row: the graphs
compiled, those compiled after the third call ("late"), and breaks. `wrong` where a result differs from eager's,
`given up` where a frame has reached its limit.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from early_exits import PROGRAMS, tokens
from torch import Tensor, nn
from torch.optim import SGD, lr_scheduler

Compile = Callable[[Callable[..., Any]], Callable[..., Any]]
Case = Callable[[Compile, int], Any]

ROUNDS = (4, 32, 128)
BLOCK = 16


def graph_break() -> None:
    """What makes a graph break: the tracer's own, put here by `measured`."""


class Layer(nn.Module):
    """A layer that breaks in the middle, and whose number nobody asks for."""

    def __init__(self, layer_idx: int) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.layer_idx = layer_idx

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        graph_break()
        return torch.relu(x)


class Deep(nn.Module):
    """Calls the layer through other frames."""

    def __init__(self, layer_idx: int, depth: int = 4) -> None:
        super().__init__()
        self.inner = Deep(layer_idx, depth - 1) if depth else Layer(layer_idx)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x + 1) * 0.5


# -- breaks in loops -----------------------------------------------------------------------------------------


def over_modules(x: Tensor, layers: nn.ModuleList) -> Tensor:
    for layer in layers:
        x = layer(x)
    return x


def over_a_list(x: Tensor, layers: nn.ModuleList) -> Tensor:
    for layer in list(layers):
        x = layer(x)
    return x


def enumerated(x: Tensor, layers: nn.ModuleList) -> Tensor:
    for i, layer in enumerate(layers):
        x = layer(x) + i
    return x


def zipped(x: Tensor, layers: nn.ModuleList) -> Tensor:
    for layer, again in zip(layers, list(layers)):
        x = layer(x) + again.linear(x)
    return x


def counted(x: Tensor, layers: nn.ModuleList) -> Tensor:
    for i in range(len(layers)):
        x = x + i
        graph_break()
        x = x * 0.5
    return x


def while_less(x: Tensor, layers: nn.ModuleList) -> Tensor:
    i = 0
    while i < len(layers):
        x = x + 1
        graph_break()
        x = x * 0.5
        i += 1
    return x


def while_indexed(x: Tensor, layers: nn.ModuleList) -> Tensor:
    i = 0
    while i < len(layers):
        x = layers[i](x)
        i += 1
    return x


def while_counting_down(x: Tensor, layers: nn.ModuleList) -> Tensor:
    left = len(layers)
    while left:
        x = x + left
        graph_break()
        left -= 1
    return x


def comprehension(x: Tensor, layers: nn.ModuleList) -> Tensor:
    return torch.stack([layer(x) for layer in layers])


def comprehension_of_numbers(x: Tensor, layers: nn.ModuleList) -> Tensor:
    return torch.stack([layers[i](x) for i in range(len(layers))])


def recursion(x: Tensor, layers: nn.ModuleList, i: int = 0) -> Tensor:
    if i == len(layers):
        return x
    x = layers[i](x)
    return recursion(x, layers, i + 1)


def nested(x: Tensor, layers: nn.ModuleList) -> Tensor:
    for layer in layers:
        for _ in range(3):
            x = layer(x)
    return x


def nested_while(x: Tensor, layers: nn.ModuleList) -> Tensor:
    i = 0
    while i < len(layers):
        for j in range(3):
            x = x + j
            graph_break()
        i += 1
    return x


def steps_of_adaption(x: Tensor, layers: nn.ModuleList) -> Tensor:
    """MAML: for each task, a few steps on weights of its own."""
    losses = []
    for task in range(len(layers)):
        weight = torch.ones(4, 4, requires_grad=True)
        for _ in range(3):
            loss = (x @ weight).square().mean()
            (slope,) = torch.autograd.grad(loss, weight)
            graph_break()
            weight = weight - 0.1 * slope
        losses.append((x @ weight).mean() * task)
        graph_break()
    return torch.stack(losses)


def in_a_loop(form: Callable[..., Tensor], layer: type[nn.Module] = Layer) -> Case:
    """A loop, run twice over as many layers as there are rounds."""

    def run(compile: Compile, rounds: int) -> list[Tensor]:
        layers = nn.ModuleList([layer(i) for i in range(rounds)])
        compiled = compile(form)
        return [compiled(torch.ones(2, 4), layers) for _ in range(2)]

    return run


# -- generation ----------------------------------------------------------------------------------------------


class Attention(nn.Module):
    """One head over a cache that grows, or over one of fixed size written at a position."""

    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.size = size
        self.tokens = nn.Embedding(32, size)
        self.qkv = nn.Linear(size, 3 * size)
        self.head = nn.Linear(size, 32)

    def grown(self, token: Tensor, cache: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        q, k, v = self.qkv(self.tokens(token)).chunk(3, -1)
        keys, values = torch.cat([cache[0], k], 1), torch.cat([cache[1], v], 1)
        weights = torch.softmax(q @ keys.transpose(1, 2) / math.sqrt(self.size), -1)
        return self.head(weights @ values)[:, -1].argmax(-1, keepdim=True), (keys, values)

    def fixed(self, token: Tensor, cache: tuple[Tensor, Tensor], position: Tensor) -> Tensor:
        q, k, v = self.qkv(self.tokens(token)).chunk(3, -1)
        cache[0].index_copy_(1, position, k)
        cache[1].index_copy_(1, position, v)
        scores = q @ cache[0].transpose(1, 2) / math.sqrt(self.size)
        scores = scores.masked_fill(torch.arange(cache[0].size(1)) > position, -math.inf)
        return self.head(torch.softmax(scores, -1) @ cache[1])[:, -1].argmax(-1, keepdim=True)


@torch.no_grad()
def growing_cache(compile: Compile, steps: int) -> list[Tensor]:
    model = Attention()
    step = compile(model.grown)
    token, cache = torch.zeros(1, 1, dtype=torch.int64), (torch.zeros(1, 1, 8), torch.zeros(1, 1, 8))
    tokens = []
    for _ in range(steps):
        token, cache = step(token, cache)
        tokens.append(token)
    return tokens


@torch.no_grad()
def static_cache(compile: Compile, steps: int) -> list[Tensor]:
    model = Attention()
    step = compile(model.fixed)
    token, cache = torch.zeros(1, 1, dtype=torch.int64), (torch.zeros(1, steps, 8), torch.zeros(1, steps, 8))
    tokens = []
    for i in range(steps):
        token = step(token, cache, torch.tensor([i]))
        tokens.append(token)
    return tokens


def whole_generation(model: Attention, steps: int) -> Tensor:
    token, cache = torch.zeros(1, 1, dtype=torch.int64), (torch.zeros(1, 1, 8), torch.zeros(1, 1, 8))
    tokens = [token]
    while len(tokens) < steps:
        token, cache = model.grown(token, cache)
        tokens.append(token)
        graph_break()
    return torch.cat(tokens, 1)


@torch.no_grad()
def generation_inside(compile: Compile, steps: int) -> Tensor:
    return compile(whole_generation)(Attention(), steps)


@torch.no_grad()
def nano_generation(compile: Compile, steps: int) -> Tensor:
    """nanoGPT's loop: the sequence grows, and the model sees the end of it."""
    tokens, head = nn.Embedding(32, 8), nn.Linear(8, 32)
    positions = nn.Embedding(BLOCK, 8)

    def model(idx: Tensor) -> Tensor:
        _, t = idx.size()
        assert t <= BLOCK, f"Cannot forward sequence of length {t}, block size is only {BLOCK}"
        x = tokens(idx) + positions(torch.arange(0, t, dtype=torch.long))
        x = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        return head(x[:, [-1], :])

    compiled = compile(model)
    idx = torch.zeros(1, 1, dtype=torch.long)
    for _ in range(steps):
        idx_cond = idx if idx.size(1) <= BLOCK else idx[:, -BLOCK:]
        idx = torch.cat((idx, compiled(idx_cond)[:, -1].argmax(-1, keepdim=True)), 1)
    return idx


# -- sizes that vary -----------------------------------------------------------------------------------------


class Classifier(nn.Module):
    """Words, their positions, the mean of what a layer makes of them."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(32, 8)
        self.linear = nn.Linear(8, 8)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words)
        places = torch.arange(words.size(1)).unsqueeze(-1) / math.sqrt(x.size(-1))
        return torch.relu(self.linear(x + places)).mean(1)


def sentences(compile: Compile, batches: int) -> list[Tensor]:
    compiled = compile(Classifier())
    lengths = random.Random(0)
    return [compiled(torch.ones(4, lengths.randint(5, 60), dtype=torch.int64)) for _ in range(batches)]


def last_batch(compile: Compile, batches: int) -> list[Tensor]:
    compiled = compile(Classifier())
    sizes = [8] * (batches - 1) + [3]
    return [compiled(torch.ones(size, 10, dtype=torch.int64)) for _ in range(2) for size in sizes]


def by_a_size(function: Callable[[Tensor, Tensor], Tensor]) -> Case:
    """A function of a tensor and one whose size varies."""

    def run(compile: Compile, rounds: int) -> list[Tensor]:
        compiled = compile(function)
        return [compiled(torch.arange(256.0).reshape(128, 2), torch.ones(n)) for n in range(2, rounds + 2)]

    return run


SIZED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "a[b.size(0) - 1]": lambda a, b: a[b.size(0) - 1],
    "a[:b.size(0)]": lambda a, b: a[: b.size(0)] * 2,
    "math.sqrt(size)": lambda a, b: a / math.sqrt(b.size(0)),
    "math.cos(size)": lambda a, b: a * math.cos(b.size(0)),
    "math.log(size)": lambda a, b: a * math.log(b.size(0)),
    "math.log2(size)": lambda a, b: a * math.log2(b.size(0)),
    "math.exp(-size)": lambda a, b: a * math.exp(-b.size(0)),
    "math.pow(size, 0.5)": lambda a, b: a * math.pow(b.size(0), 0.5),
    "size ** 0.5": lambda a, b: a * b.size(0) ** 0.5,
    "math.ceil(size / 2)": lambda a, b: a[: math.ceil(b.size(0) / 2)] * 2,
    "math.floor(size * 0.7)": lambda a, b: a[: 1 + math.floor(b.size(0) * 0.7)] * 2,
    "int(size * 0.7)": lambda a, b: a[: 1 + int(b.size(0) * 0.7)] * 2,
    "round(size, -1)": lambda a, b: a * round(b.size(0), -1),
    "round(size / 3)": lambda a, b: a * round(b.size(0) / 3),
    "min(size, 5)": lambda a, b: a[: min(b.size(0), 1000)] * 2,
    "max(size, 5)": lambda a, b: a * max(b.size(0), 1),
    "size // 2": lambda a, b: a[: 1 + b.size(0) // 2] * 2,
    "size % 7": lambda a, b: a * (b.size(0) % 7),
    "divmod(size, 7)": lambda a, b: a * sum(divmod(b.size(0), 7)),
    "size & 7": lambda a, b: a * (b.size(0) & 7),
    "size >> 1": lambda a, b: a * (b.size(0) >> 1),
    "float(size)": lambda a, b: a * float(b.size(0)),
    "torch.full(size)": lambda a, b: a.sum() + torch.full((b.size(0), 2), b.size(0)),
    "sum of sizes": lambda a, b: a * sum([b.size(0), a.size(0)]),
}


# -- schedulers ----------------------------------------------------------------------------------------------

SCHEDULERS: dict[str, Callable[[SGD], Any]] = {
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.1, total_steps=100),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=100),
    "StepLR": lambda o: lr_scheduler.StepLR(o, step_size=10),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, total_iters=40),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, gamma=0.9),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=3),
}


def scheduled(name: str) -> Case:
    """A step of training with its scheduler's step inside."""

    def run(compile: Compile, steps: int) -> list[Tensor]:
        model = nn.Linear(4, 4)
        optimizer = SGD(model.parameters(), lr=0.1)
        scheduler = SCHEDULERS[name](optimizer)
        plateau = isinstance(scheduler, lr_scheduler.ReduceLROnPlateau)

        def step(x: Tensor) -> Tensor:
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if plateau:
                scheduler.step(1.0)
            else:
                scheduler.step()
            return loss.detach()

        compiled = compile(step)
        losses = [compiled(torch.ones(2, 4)) for _ in range(steps)]
        return [*losses, torch.tensor(optimizer.param_groups[0]["lr"]), *model.parameters()]

    return run


def branches(program: Callable[[Tensor], Any], sizes: tuple[int, ...] = (4, 7, 2, 4, 7, 2)) -> Case:
    """A program that branches on what is in its tensors."""

    def run(compile: Compile, _: int) -> list[Any]:
        compiled = compile(program)
        return [compiled(*tokens(size)) for size in sizes]

    return run


LOOPS = (over_modules, over_a_list, enumerated, zipped, counted, while_less, while_indexed, while_counting_down)
LOOPS += (comprehension, comprehension_of_numbers, recursion, nested, nested_while, steps_of_adaption)

CASES: dict[str, tuple[Case, tuple[int, ...]]] = {
    **{f"break: {form.__name__}": (in_a_loop(form), ROUNDS) for form in LOOPS},
    "break: deep in an inlined call": (in_a_loop(over_modules, Deep), ROUNDS),
    "generate: growing cache": (growing_cache, (256,)),
    "generate: static cache": (static_cache, (256,)),
    "generate: loop inside, break in each step": (generation_inside, (256,)),
    "generate: nanoGPT": (nano_generation, (64,)),
    "sentences of random length": (sentences, (50,)),
    "last batch smaller": (last_batch, (5,)),
    **{f"size: {name}": (by_a_size(function), (20,)) for name, function in SIZED.items()},
    **{f"scheduler: {name}": (scheduled(name), (60,)) for name in SCHEDULERS},
    **{f"branch: {name}": (branches(program), (6,)) for name, (program, _) in PROGRAMS.items()},
}


# -- measuring -----------------------------------------------------------------------------------------------


class Counter:
    """A backend that counts, and callables of which each call is counted."""

    def __init__(self) -> None:
        self.graphs = 0
        #: the graphs there were before each call of the whole case
        self.before: list[int] = []

    def backend(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self.graphs += 1
        return gm.forward

    def counting(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.before.append(self.graphs)
            return compiled(*args)

        return call

    @property
    def late(self) -> int:
        """The graphs compiled after the third call."""
        return self.graphs - self.before[3] if len(self.before) > 3 else 0


def result(case: Case, compile: Compile, rounds: int) -> Any:
    torch.manual_seed(0)
    return case(compile, rounds)


def measured(tracer: str, name: str, show: bool = False) -> Iterator[dict[str, Any]]:
    """One case, for each of its numbers of rounds."""
    global graph_break
    case, all_rounds = CASES[name]
    for rounds in all_rounds:
        expected = result(case, lambda function: function, rounds)
        counter = Counter()
        if tracer == "torch":
            import torch._dynamo as dynamo

            dynamo.reset()
            graph_break, plain = dynamo.graph_break, graph_break
            found = result(
                case, lambda f, counter=counter: counter.counting(torch.compile(f, backend=counter.backend)), rounds
            )
            counters = dynamo.utils.counters
            more = {"breaks": sum(counters["graph_break"].values()), "given up": False}
            counters.clear()
        else:
            import stator

            stator.reset()
            graph_break, plain = stator.graph_break, graph_break
            before = stator.stats()
            found = result(
                case, lambda f, counter=counter: counter.counting(stator.compile(f, backend=counter.backend)), rounds
            )
            stats = stator.stats().diff(before)
            codes = [brk.code for brk in stats.breaks]
            more = {"breaks": len(codes), "given up": "SB0501" in codes}
            if show:
                for line in stats.recompile_log:
                    print(f"  {rounds}: {line}", file=sys.stderr)
        graph_break = plain
        try:
            torch.testing.assert_close(found, expected)
            wrong = False
        except AssertionError as e:
            wrong = True
            print(name, e, file=sys.stderr)
        yield {"rounds": rounds, "graphs": counter.graphs, "late": counter.late, "wrong": wrong, **more}


def in_a_process(tracer: str, names: list[str], show: bool) -> Iterator[list[dict[str, Any]]]:
    """The rows of each case, as they are found."""
    command = [sys.executable, __file__, "--worker", tracer, *names, *(["--show"] if show else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from map(json.loads, process.stdout)


def shown(rows: list[dict[str, Any]], what: str) -> str:
    return " ".join(str(row[what]) for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[""], help="words of which the case's name has one")
    parser.add_argument("--show", action="store_true", help="print the reason of each recompile by Stator")
    parser.add_argument("--tracers", nargs="*", default=["stator", "torch"], choices=["stator", "torch"])
    parser.add_argument("--worker", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        tracer, *names = options.worker
        for name in names:
            print(json.dumps(list(measured(tracer, name, options.show))), flush=True)
        return
    names = [name for name in CASES if any(word in name for word in options.only)]
    for tracer in options.tracers:
        print(f"\n{tracer:44} {'rounds':>10} {'graphs':>12} {'late':>12} {'breaks':>12}")
        for name, rows in zip(names, in_a_process(tracer, names, options.show), strict=False):
            columns = "".join(f" {shown(rows, what):>12}" for what in ("graphs", "late", "breaks"))
            notes = "".join(f"  {note}" for note in ("wrong", "given up") if any(row[note] for row in rows))
            print(f"{name:44} {shown(rows, 'rounds'):>10}{columns}{notes}", flush=True)


if __name__ == "__main__":
    main()
