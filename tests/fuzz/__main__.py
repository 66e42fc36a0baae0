"""`python -m tests.fuzz`: random programs, eager against traced; a program's number reproduces it."""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
import warnings

from tests.fuzz.campaign import Campaign
from tests.fuzz.mutation import case, fails, smallest
from tests.needs import HAS_TORCH


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="programs to run (default 10,000)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this many seconds")
    parser.add_argument("--seed", type=int, default=None, help="the first program's number (default: at random)")
    parser.add_argument("--failures", type=int, default=5, help="end after this many kinds of difference")
    parser.add_argument("--tensors", action=argparse.BooleanOptionalAction, default=HAS_TORCH, help="tensors too")
    parser.add_argument("--mutations", type=int, default=2_000, help="programs whose state is mutated (default 2,000)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # what the compiler has to say about calls of literals
    logging.getLogger("torch").setLevel(logging.CRITICAL)
    sys.unraisablehook = lambda unraisable: None  # generators that are dropped raise what they like
    missed = _mutations(options.mutations, options.seed, options.tensors, options.failures)
    number = first = random.randrange(10**9) if options.seed is None else options.seed
    if options.tensors:
        _keep_operations()
    campaign = Campaign(options.tensors)
    started = time.perf_counter()
    print(f"programs from seed {first} on, {'with' if options.tensors else 'without'} tensors", flush=True)
    while campaign.ran < options.count and time.perf_counter() - started < options.seconds:
        shown = campaign.run(number)
        if shown is not None:
            print(f"\n== seed {number} ==\n{shown}", flush=True)
        if len(campaign.failures) >= options.failures:
            break
        number += 1
    print(f"\n{campaign.report(time.perf_counter() - started)}\nseeds {first} to {number}")
    return bool(campaign.failures) or bool(missed)


def _mutations(count: int, seed: int | None, tensors: bool, most: int) -> int:
    """Programs whose state is mutated between their calls (`mutation`); how many missed a change."""
    first = random.randrange(10**9) if seed is None else seed
    missed = 0
    for number in range(first, first + count):
        chosen = case(number, tensors)
        if fails(chosen):
            small = smallest(chosen)
            print(f"\n== mutations, seed {number} ==\n{small.shown()}\n{fails(small)}", flush=True)
            missed += 1
            if missed >= most:
                break
    print(f"{count} programs with mutations from seed {first} on, {missed} missed one", flush=True)
    return missed


def _keep_operations() -> None:
    """Have all operations run: those whose result nobody uses do not run else, and cannot fail."""
    from stator.pytorch.graph import finish

    finish.eliminate = lambda recorder: recorder.effects.keep.update(recorder.nodes.graph.nodes)


if __name__ == "__main__":
    sys.exit(main())
