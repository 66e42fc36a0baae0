# needs: torch
"""What programs say while they run."""

from __future__ import annotations

import logging
import sys
import traceback
from typing import Any

import torch
from torch import nn

from tests.breaks.registry import Calls, program

log = logging.getLogger("training")


@program()
def print_of_the_loss() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def step(x):
        loss = model(x).pow(2).mean()
        print("loss", loss)
        return loss * 2

    return step, [(torch.ones(1, 2),)]


@print_of_the_loss.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def step(x):
        loss = model(x).pow(2).mean()
        print("loss", loss.detach())
        return loss * 2

    return step, [(torch.ones(1, 2),)]


@program()
def log_of_the_loss() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def step(x):
        loss = model(x).pow(2).mean()
        log.warning("loss %s", loss)
        return loss * 2

    return step, [(torch.ones(1, 2),)]


@log_of_the_loss.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def step(x):
        loss = model(x).pow(2).mean()
        log.warning("loss %s", loss.detach())
        return loss * 2

    return step, [(torch.ones(1, 2),)]


@program()
def text_of_a_tensor_kept() -> tuple[Any, Calls]:
    kept = []

    def step(x):
        h = torch.relu(x)
        kept.append(str(h))
        return h + len(kept[-1])  # SB0101

    return step, [(torch.ones(2),)]


@text_of_a_tensor_kept.fix
def _() -> tuple[Any, Calls]:
    kept = []

    def step(x):
        h = torch.relu(x)
        kept.append(h)
        return h + 16

    return step, [(torch.ones(2),)]


@program()
def printing_a_large_norm() -> tuple[Any, Calls]:
    def step(x):
        norm = x.norm()
        if norm > 1:  # SB0201
            print("large norm")
        return x / norm

    return step, [(torch.ones(2),)]


@printing_a_large_norm.fix
def _() -> tuple[Any, Calls]:
    def step(x):
        norm = x.norm()
        return x / norm

    return step, [(torch.ones(2),)]


@program()
def table_of_statistics() -> tuple[Any, Calls]:
    def step(x):
        h = torch.relu(x)
        print(f"{h.mean():>8.3f} | {h.std():>8.3f}")
        return h

    return step, [(torch.arange(3.0),)]


@table_of_statistics.fix
def _() -> tuple[Any, Calls]:
    def step(x):
        h = torch.relu(x)
        print(tuple(h.shape))
        return h

    return step, [(torch.arange(3.0),)]


@program()
def errors_are_logged_and_swallowed() -> tuple[Any, Calls]:
    def step(x, y):
        try:
            return x @ y
        except RuntimeError:
            log.exception("shapes %s %s", tuple(x.shape), tuple(y.shape))  # SB0122
            return x.sum()

    return step, [(torch.ones(2, 3), torch.ones(2, 3))]


@errors_are_logged_and_swallowed.fix
def _() -> tuple[Any, Calls]:
    def step(x, y):
        if x.shape[1] != y.shape[0]:
            return x.sum()
        return x @ y

    return step, [(torch.ones(2, 3), torch.ones(2, 3))]


@program()
def stack_printed_at_a_bad_place() -> tuple[Any, Calls]:
    stacks = []

    def step(x):
        h = torch.relu(x)
        stacks.append(traceback.format_stack(limit=1)[0].count("step"))
        return h + 1

    return step, [(torch.ones(2),)]


@stack_printed_at_a_bad_place.fix
def _() -> tuple[Any, Calls]:
    stacks = []

    def step(x):
        h = torch.relu(x)
        stacks.append("step".count("step"))
        return h + 1

    return step, [(torch.ones(2),)]


@program()
def bar_on_the_terminal() -> tuple[Any, Calls]:
    def step(x, number):
        h = torch.relu(x)
        sys.stderr.write(f"\r{'#' * number}")
        sys.stderr.flush()  # SB0101
        return h + number

    return step, [(torch.ones(2), 3)]


@bar_on_the_terminal.fix
def _() -> tuple[Any, Calls]:
    def step(x, number):
        h = torch.relu(x)
        print("#" * number)
        return h + number

    return step, [(torch.ones(2), 3)]


@program()
def assertion_with_the_tensor() -> tuple[Any, Calls]:
    def step(x):
        total = x.sum()
        assert total > 0, f"bad sum {total}"
        return x / total

    return step, [(torch.ones(2),)]


@assertion_with_the_tensor.fix
def _() -> tuple[Any, Calls]:
    def step(x):
        total = x.sum()
        torch._assert(total > 0, "bad sum")
        return x / total

    return step, [(torch.ones(2),)]
