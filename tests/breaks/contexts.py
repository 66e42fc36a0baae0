# needs: torch
"""Context managers of others, files, threads and processes."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.breaks.registry import Calls, program


class Timer:
    """What users write to see how long a part takes."""

    def __init__(self) -> None:
        self.pid = 0

    def __enter__(self) -> Timer:
        self.pid = os.getppid()
        return self

    def __exit__(self, *exc: object) -> None:
        self.pid = 0


@program()
def a_timer_around_the_model() -> tuple[Any, Calls]:
    class Timer:
        def __init__(self):
            self.runs = 0

        def __enter__(self):
            self.times = os.times()  # SB0101
            return self

        def __exit__(self, *exc):
            self.runs += len(os.times()) - 4  # SB0101
            del self.times

    model, timer = nn.Linear(2, 2), Timer()

    def forward(x):
        with timer:
            h = model(x)
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@a_timer_around_the_model.fix
def _() -> tuple[Any, Calls]:
    class Timer:
        def __init__(self):
            self.runs = 0

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            self.runs += 1

    model, timer = nn.Linear(2, 2), Timer()

    def forward(x):
        with timer:
            h = model(x)
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@program()
def output_caught_around_a_layer() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    said = []

    def forward(x):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            print("shape", tuple(x.shape))
            h = model(x)
        said.append(out.getvalue())
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@output_caught_around_a_layer.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    said = []

    def forward(x):
        said.append(f"shape {tuple(x.shape)}\n")
        return model(x).relu()

    return forward, [(torch.ones(1, 2),)]


@program()
def profiler_range_by_name() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):  # SB0115
            h = model(x)
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@profiler_range_by_name.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):
        with torch.profiler.record_function("model"):
            h = model(x)
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@program()
def activations_to_a_file() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    path = os.path.join(tempfile.gettempdir(), "stator-activations.txt")

    def forward(x):
        h = model(x)
        with open(path, "w") as file:  # SB0101
            file.write(f"{tuple(h.shape)}\n")
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@activations_to_a_file.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    lines = []

    def forward(x):
        h = model(x)
        lines.append(f"{tuple(h.shape)}\n")
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@program()
def checkpoint_in_the_step() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    path = os.path.join(tempfile.gettempdir(), "stator-checkpoint.pt")

    def step(x, number):
        h = model(x)
        if number % 2 == 0:
            torch.save(model.state_dict(), path)  # SB0115
        return h.relu()

    return step, [(torch.ones(1, 2), 2)]


@checkpoint_in_the_step.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def step(x):
        return model(x).relu()

    return step, [(torch.ones(1, 2),)]


@program()
def is_there_a_checkpoint() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):
        h = model(x)
        if os.path.exists("/nowhere/weights.pt"):
            h = h * 0
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@is_there_a_checkpoint.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    there = os.path.exists("/nowhere/weights.pt")

    def forward(x):
        h = model(x)
        if there:
            h = h * 0
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@program()
def a_lock_around_a_cache() -> tuple[Any, Calls]:
    lock, cache = threading.Lock(), {}

    def lookup(x):
        with lock:
            if "w" not in cache:  # SB0601
                cache["w"] = torch.ones(2) * 3
        return x * cache["w"]

    return lookup, [(torch.ones(2),), (torch.ones(2),)]


@a_lock_around_a_cache.fix
def _() -> tuple[Any, Calls]:
    cache = {"w": torch.ones(2) * 3}

    def lookup(x):
        return x * cache["w"]

    return lookup, [(torch.ones(2),), (torch.ones(2),)]


@program()
def two_branches_in_two_threads() -> tuple[Any, Calls]:
    left, right = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(x):
        with ThreadPoolExecutor(2) as pool:  # SB0122
            a, b = pool.map(lambda layer: layer(x), [left, right])  # SB0106, SB0122
        return a + b

    return forward, [(torch.ones(1, 2),)]


@two_branches_in_two_threads.fix
def _() -> tuple[Any, Calls]:
    left, right = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(x):
        a, b = map(lambda layer: layer(x), [left, right])
        return a + b

    return forward, [(torch.ones(1, 2),)]


@program()
def a_thread_that_writes_logs() -> tuple[Any, Calls]:
    model, done = nn.Linear(2, 2), []

    def forward(x):
        h = model(x)
        worker = threading.Thread(target=done.append, args=(x.shape[0],))  # SB0122
        worker.start()  # SB0122
        worker.join()  # SB0122
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@a_thread_that_writes_logs.fix
def _() -> tuple[Any, Calls]:
    model, done = nn.Linear(2, 2), []

    def forward(x):
        h = model(x)
        done.append(x.shape[0])
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@program()
def results_into_a_queue() -> tuple[Any, Calls]:
    model, results = nn.Linear(2, 2), queue.SimpleQueue()

    def forward(x):
        h = model(x)
        results.put(h.shape[0])  # SB0101
        return h.relu() + results.qsize()  # SB0101

    return forward, [(torch.ones(1, 2),)]


@results_into_a_queue.fix
def _() -> tuple[Any, Calls]:
    model, results = nn.Linear(2, 2), []

    def forward(x):
        h = model(x)
        results.append(h.shape[0])
        return h.relu() + len(results)

    return forward, [(torch.ones(1, 2),)]


@program()
def version_of_the_repository() -> tuple[Any, Calls]:
    model, tags = nn.Linear(2, 2), []

    def forward(x):
        h = model(x)
        tags.append(subprocess.run(["echo", "v1"], capture_output=True).stdout)  # SB0122
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@version_of_the_repository.fix
def _() -> tuple[Any, Calls]:
    model, tags = nn.Linear(2, 2), []
    tag = subprocess.run(["echo", "v1"], capture_output=True).stdout

    def forward(x):
        h = model(x)
        tags.append(tag)
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@program()
def errors_of_numpy_ignored() -> tuple[Any, Calls]:
    def ratio(x):
        with np.errstate(divide="ignore"):  # SB0122
            scale = float(np.log(np.float64(0.0)))
        return x.clamp(min=scale)

    return ratio, [(torch.ones(2),)]


@errors_of_numpy_ignored.fix
def _() -> tuple[Any, Calls]:
    def ratio(x):
        return x.clamp(min=float("-inf"))

    return ratio, [(torch.ones(2),)]


@program()
def quiet_recursion_limit() -> tuple[Any, Calls]:
    @contextlib.contextmanager
    def deeper():
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(before + 100)  # SB0101
        try:
            yield
        finally:
            sys.setrecursionlimit(before)

    model = nn.Linear(2, 2)

    def forward(x):
        with deeper():  # SB0106
            h = model(x)
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@quiet_recursion_limit.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):
        return model(x).relu()

    return forward, [(torch.ones(1, 2),)]


@program()
def working_directory_of_a_run() -> tuple[Any, Calls]:
    model, places = nn.Linear(2, 2), []

    def forward(x):
        places.append(os.path.basename(os.getcwd()))  # SB0101
        return model(x).relu()

    return forward, [(torch.ones(1, 2),)]


@working_directory_of_a_run.fix
def _() -> tuple[Any, Calls]:
    model, places = nn.Linear(2, 2), []
    here = os.path.basename(os.getcwd())

    def forward(x):
        places.append(here)
        return model(x).relu()

    return forward, [(torch.ones(1, 2),)]


@program(same=False)
def time_of_a_layer() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    slow = []

    def forward(x):
        started = time.perf_counter()
        h = model(x)
        if time.perf_counter() - started > 60:  # SB0201
            slow.append("model")
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@time_of_a_layer.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    took = []

    def forward(x):
        started = time.perf_counter()
        h = model(x)
        took.append(started)
        return h.relu()

    return forward, [(torch.ones(1, 2),)]
