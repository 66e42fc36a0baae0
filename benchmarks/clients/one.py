"""One client in its own process: as plain Python, through torch's own compiler, and through Stator; a line of JSON."""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

BACKENDS = ("eager", "aot_eager")


def main(name: str) -> None:
    try:
        client = importlib.import_module(name)
    except ImportError as e:
        print(json.dumps({"client": name, "skipped": f"{type(e).__name__}: {e}"}))
        return
    expected, _ = run(client, None)
    ways = {}
    for compiler in (Torch(), Stator()):
        for backend in BACKENDS:
            compiler.begin()
            try:
                got, seconds = run(client, backend)
                outcome = compared(got, expected)
            except Exception as e:
                outcome, seconds = f"{type(e).__name__}: {str(e).strip().splitlines()[0] if str(e) else ''}"[:200], 0.0
            ways[f"{compiler.name} {backend}"] = {"outcome": outcome, "seconds": seconds, **compiler.counts()}
    print(json.dumps({"client": name, "ways": ways}))


def run(client: Any, backend: str | None) -> tuple[list[Any], float]:
    import torch

    torch.manual_seed(0)
    start = time.perf_counter()
    found = [t.detach().clone() for t in client.run(backend)]
    return found, time.perf_counter() - start


def compared(got: list[Any], expected: list[Any]) -> str:
    import torch

    if [(t.shape, t.dtype) for t in got] != [(t.shape, t.dtype) for t in expected]:
        return "other shapes"
    if all(torch.equal(a, b) for a, b in zip(got, expected, strict=True)):
        return "equal"
    error = max(float((a.double() - b.double()).abs().max()) for a, b in zip(got, expected, strict=True))
    close = all(torch.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(got, expected, strict=True))
    return f"{'close' if close else 'DIFFERS'}: {error:.1g}"


class Torch:
    """torch's own compiler, and what it counts."""

    name = "torch"

    def begin(self) -> None:
        import torch._dynamo.utils as utils

        torch = sys.modules["torch"]
        torch._dynamo.reset()
        utils.set_compilation_metrics_limit(100_000)
        utils.clear_compilation_metrics()
        utils.graph_break_reasons.clear()
        utils.counters.clear()

    def counts(self) -> dict[str, Any]:
        import torch._dynamo.utils as utils

        frames = utils.get_compilation_metrics()
        breaks = [line(r.reason) for r in utils.graph_break_reasons]
        breaks += [line(m.fail_reason) for m in frames if m.fail_type]
        return {
            "graphs": utils.counters["stats"]["unique_graphs"],
            "breaks": breaks,
            "recompiles": sum(1 for m in frames if m.recompile_reason),
        }


class Stator:
    """`stator.install()`, and what `stator.stats()` says."""

    name = "stator"

    def begin(self) -> None:
        import stator

        stator.install()
        stator.reset()

    def counts(self) -> dict[str, Any]:
        import stator

        now = stator.stats()
        breaks = [line(f"{b.code} {b.reason} ({b.where})") for b in now.breaks for _ in range(b.count)]
        return {"graphs": now.graphs, "breaks": breaks, "recompiles": now.recompiles}


def line(text: str | None) -> str:
    return (text or "?").strip().splitlines()[0][:200]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main(sys.argv[1])
