"""What Stator does with three real programs, side by side with `torch.compile`: `make demo`.

A Llama-style decoder and a BERT-style encoder from transformers (random weights), and a training step with AdamW, on
the inductor backend on CPU. Each front end compiles in a process of its own with an empty compile cache.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

PROGRAMS = ("llama decoder", "bert encoder", "training step")
FRONT_ENDS = ("stator", "torch.compile")


def build(name: str) -> tuple[Any, Callable[[], dict[str, Any]]]:
    """The program to compile and a maker of its keyword arguments."""
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 128, "vocab_size": 200}
    ids = torch.randint(3, 150, (2, 32))
    if name == "llama decoder":
        config = transformers.LlamaConfig(**sizes, num_key_value_heads=2, use_cache=False)
        return transformers.LlamaForCausalLM(config).eval(), lambda: {"input_ids": ids}
    if name == "bert encoder":
        mask = torch.ones_like(ids)
        model = transformers.BertModel(transformers.BertConfig(**sizes)).eval()
        return model, lambda: {"input_ids": ids, "attention_mask": mask}
    net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, lambda: {"x": torch.randn(16, 32), "y": torch.randint(0, 8, (16,))}


def measure(name: str, front_end: str) -> dict[str, Any]:
    """One program under one front end, in this process."""
    import contextlib

    import torch

    torch.set_num_threads(1)
    program, inputs = build(name)
    grad = contextlib.nullcontext() if name == "training step" else torch.no_grad()
    with grad:
        program(**inputs())
        compiled, figures = compile_with(front_end, program)
        started = time.perf_counter()
        for _ in range(3):
            compiled(**inputs())
        total = time.perf_counter() - started
        row = figures()
        row["total_seconds"] = total
        row["eager_us"], row["compiled_us"] = side_by_side(program, compiled, inputs)
    return row


def side_by_side(
    program: Any, compiled: Any, inputs: Callable[[], dict[str, Any]], rounds: int = 40
) -> tuple[float, float]:
    """Median microseconds per call, eager and compiled calls taking turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for fn, samples in ((program, times[0]), (compiled, times[1])):
            arguments = inputs()
            started = time.perf_counter()
            fn(**arguments)
            samples.append((time.perf_counter() - started) * 1e6)
    return statistics.median(times[0]), statistics.median(times[1])


def compile_with(front_end: str, program: Any) -> tuple[Any, Callable[[], dict[str, Any]]]:
    """The compiled program, and a function giving the front end's figures."""
    if front_end == "stator":
        import stator

        def figures() -> dict[str, Any]:
            s = stator.stats()
            return {
                "graphs": s.graphs, "breaks": s.graph_breaks, "ops": s.ops, "guards": s.guards,
                "trace_seconds": s.trace_seconds, "source": stator.generated_source(compiled),
            }  # fmt: skip

        compiled = stator.compile(program)
        return compiled, figures
    import torch
    from torch._dynamo.utils import compilation_time_metrics, counters, get_compilation_metrics

    def torch_figures() -> dict[str, Any]:
        metrics = get_compilation_metrics()
        backend = sum(m.backend_compile_time_s or 0.0 for m in metrics)
        whole = sum(m.entire_frame_compile_time_s or 0.0 for m in metrics)
        return {
            "graphs": counters["stats"]["unique_graphs"],
            "breaks": sum(counters["graph_break"].values()),
            "ops": counters["stats"]["calls_captured"],
            "guards": sum(m.guard_count or 0 for m in metrics),
            "trace_seconds": whole - backend,
            "sections": len(compilation_time_metrics),
        }

    return torch.compile(program), torch_figures


def in_fresh_process(name: str, front_end: str) -> dict[str, Any]:
    """`measure` in a new process with an empty compile cache, with signs of life on a terminal."""
    with tempfile.TemporaryDirectory(prefix="stator-demo-") as cache:
        env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=cache, HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
        command = [sys.executable, os.path.abspath(__file__), "--worker", name, "--front-end", front_end]
        with tempfile.TemporaryFile("w+") as errors:
            worker = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=errors, text=True)
            out, _ = worker.communicate()
            if worker.returncode:
                errors.seek(0)
                raise SystemExit(f"{name} under {front_end} failed:\n{errors.read()[-3000:]}")
    result: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return result


HEADER = ("program", "front end", "graphs", "breaks", "ops", "guards", "trace s", "3 calls s")
HEADER += ("eager us", "compiled us", "speed")


def table(rows: list[tuple[str, str, dict[str, Any]]]) -> str:
    """The figures, aligned."""
    lines = [HEADER]
    for name, front_end, row in rows:
        speed = f"{row['eager_us'] / row['compiled_us']:.2f}x"
        lines.append(
            (name, front_end, str(row["graphs"]), str(row["breaks"]), str(row["ops"]), str(row["guards"]),
             f"{row['trace_seconds']:.2f}", f"{row['total_seconds']:.1f}", f"{row['eager_us']:.0f}",
             f"{row['compiled_us']:.0f}", speed)
        )  # fmt: skip
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    text = [
        "  ".join(
            cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    text.insert(1, "-" * len(text[0]))
    return "\n".join(text)


def main() -> None:
    """Run everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--front-end", default="stator", choices=FRONT_ENDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options.worker, options.front_end)))
        return
    rows = []
    for name in PROGRAMS:
        for front_end in FRONT_ENDS:
            print(f"[{len(rows) + 1}/{len(PROGRAMS) * len(FRONT_ENDS)}] {name} under {front_end} …", flush=True)
            started = time.perf_counter()
            rows.append((name, front_end, in_fresh_process(name, front_end)))
            print(f"      {time.perf_counter() - started:.0f} s", flush=True)
    print("\n" + table(rows))
    print("\ntrace s: the front end alone, over all traces; 3 calls s: first three calls, backend included.")
    print("\nThe Python that Stator generated for the BERT encoder (parameters arrive ready-made from the guards):\n")
    source = next(row for name, front_end, row in rows if name == "bert encoder" and front_end == "stator")["source"]
    print("\n".join(source.splitlines()[:40]))


if __name__ == "__main__":
    main()
