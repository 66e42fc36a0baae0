# needs: torch
"""Objects: iterators and generators from outside, lifetimes, classes made on the way, sizes and ids."""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from collections import deque
from typing import Any

import torch
from torch import nn

from tests.breaks.registry import Calls, program


@program()
def batches_from_a_generator() -> tuple[Any, Calls]:
    def batches():
        for number in range(4):
            yield torch.full((2,), float(number))

    source = batches()

    def step(x):
        return x + next(source)  # SB0106

    return step, [(torch.ones(2),)]


@batches_from_a_generator.fix
def _() -> tuple[Any, Calls]:
    def batches():
        for number in range(4):
            yield torch.full((2,), float(number))

    source = list(batches())

    def step(x, batch):
        return x + batch

    return step, [(torch.ones(2), source[0])]


@program()
def batches_in_order() -> tuple[Any, Calls]:
    model = nn.Linear(2, 1)

    def epoch(loader):
        total = torch.zeros(())
        for batch in loader:
            total = total + model(batch).sum()
        return total

    return epoch, [(map(torch.Tensor.float, [torch.ones(1, 2), torch.zeros(1, 2)]),)]


@batches_in_order.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 1)

    def epoch(loader):
        total = torch.zeros(())
        for batch in loader:
            total = total + model(batch).sum()
        return total

    return epoch, [(list(map(torch.Tensor.float, [torch.ones(1, 2), torch.zeros(1, 2)])),)]


@program()
def a_loader_inside_the_step() -> tuple[Any, Calls]:
    data = torch.utils.data.TensorDataset(torch.arange(4.0).reshape(4, 1))
    model = nn.Linear(1, 1)

    def epoch():
        total = torch.zeros(())
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=2):
            total = total + model(batch).sum()
        return total

    return epoch, [()]


@a_loader_inside_the_step.fix
def _() -> tuple[Any, Calls]:
    data = torch.utils.data.TensorDataset(torch.arange(4.0).reshape(4, 1))
    model = nn.Linear(1, 1)

    def epoch(batches):
        total = torch.zeros(())
        for (batch,) in batches:
            total = total + model(batch).sum()
        return total

    return epoch, [(list(torch.utils.data.DataLoader(data, batch_size=2)),)]


@program()
def references_counted() -> tuple[Any, Calls]:
    counts = []

    def step(x):
        h = x * 2
        counts.append(sys.getrefcount(h) > 0)  # SB0404
        return h + 1

    return step, [(torch.ones(2),)]


@references_counted.fix
def _() -> tuple[Any, Calls]:
    counts = []

    def step(x):
        h = x * 2
        counts.append(True)
        return h + 1

    return step, [(torch.ones(2),)]


@program()
def size_of_an_object() -> tuple[Any, Calls]:
    sizes = []

    def step(x, table):
        sizes.append(sys.getsizeof([*table]) > 0)  # SB0404
        return x * len(table)

    return step, [(torch.ones(2), [1, 2])]


@size_of_an_object.fix
def _() -> tuple[Any, Calls]:
    sizes = []

    def step(x, table):
        sizes.append(len(table) > 0)
        return x * len(table)

    return step, [(torch.ones(2), [1, 2])]


@program()
def a_handle_that_closes_itself() -> tuple[Any, Calls]:
    closed = []

    class Handle:
        def __del__(self):
            closed.append(1)

    def step(x):
        handle = Handle()  # SB0123, SB0404
        h = x * 2
        del handle
        return h + 1

    return step, [(torch.ones(2),)]


@a_handle_that_closes_itself.fix
def _() -> tuple[Any, Calls]:
    closed = []

    class Handle:
        def __enter__(self):
            return self

        def __exit__(self, *exc):
            closed.append(1)

    def step(x):
        with Handle():
            h = x * 2
        return h + 1

    return step, [(torch.ones(2),)]


@program()
def memory_freed_by_hand() -> tuple[Any, Calls]:
    def step(x):
        h = x * 2
        gc.collect()
        return h + 1

    return step, [(torch.ones(2),)]


@memory_freed_by_hand.fix
def _() -> tuple[Any, Calls]:
    def step(x):
        return x * 2 + 1

    return step, [(torch.ones(2),)]


@program()
def cached_by_a_weak_reference() -> tuple[Any, Calls]:
    class Cache:
        pass

    refs = weakref.WeakValueDictionary()

    def step(x):
        entry = Cache()
        refs["last"] = entry  # SB0122
        return x * 2

    return step, [(torch.ones(2),)]


@cached_by_a_weak_reference.fix
def _() -> tuple[Any, Calls]:
    class Cache:
        pass

    refs = {}

    def step(x):
        entry = Cache()
        refs["last"] = entry
        return x * 2

    return step, [(torch.ones(2),)]


@program()
def a_class_by_a_metaclass() -> tuple[Any, Calls]:
    import ctypes

    def step(x):
        class Point(ctypes.Structure):  # SB0101
            _fields_ = [("x", ctypes.c_int)]

        return x * Point(3).x  # SB0101

    return step, [(torch.ones(2),)]


@a_class_by_a_metaclass.fix
def _() -> tuple[Any, Calls]:
    class Point:
        def __init__(self, x):
            self.x = x

    def step(x):
        return x * Point(3).x

    return step, [(torch.ones(2),)]


@program(same=False)
def a_window_of_the_last_losses() -> tuple[Any, Calls]:
    window = deque(maxlen=3)

    def step(x):
        loss = x.pow(2).sum()
        window.append(loss.detach())
        return torch.stack(list(window)).mean()  # SB0601

    x = torch.ones(2)
    return step, [(x,), (x,), (x,), (x,), (x,)]


@a_window_of_the_last_losses.fix
def _() -> tuple[Any, Calls]:
    window = torch.zeros(3)

    def step(x):
        loss = x.pow(2).sum()
        window.copy_(torch.cat([window[1:], loss.detach()[None]]))
        return window.mean()

    x = torch.ones(2)
    return step, [(x,), (x,), (x,), (x,), (x,)]


@program()
def reading_lines_of_a_file() -> tuple[Any, Calls]:
    def total(x, lines):
        for line in lines:
            x = x + float(line)
        return x

    return total, [(torch.ones(2), open(__file__).buffer.raw.__class__(__file__) and iter(["1.5", "2.5"]))]


@reading_lines_of_a_file.fix
def _() -> tuple[Any, Calls]:
    def total(x, lines):
        for line in lines:
            x = x + float(line)
        return x

    return total, [(torch.ones(2), ["1.5", "2.5"])]


@program()
def a_cache_with_a_full_table() -> tuple[Any, Calls]:
    class Builder:
        def __init__(self):
            self.made = 0

        @functools.lru_cache(maxsize=2)
        def table(self, n):
            self.made += 1
            return torch.arange(n).float()

    builder = Builder()
    builder.table(3), builder.table(4)

    def step(x):
        return x + builder.table(x.shape[0])

    return step, [(torch.ones(5),), (torch.ones(5),)]


@a_cache_with_a_full_table.fix
def _() -> tuple[Any, Calls]:
    class Builder:
        def table(self, n):
            return torch.arange(n).float()

    builder = Builder()

    def step(x):
        return x + builder.table(x.shape[0])

    return step, [(torch.ones(5),), (torch.ones(5),)]


@program()
def sharing_by_identity() -> tuple[Any, Calls]:
    known = {}

    def step(x, layer):
        key = id(layer)
        if key not in known:  # SB0601
            known[key] = len(known)
        return x * known[key]

    layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
    return step, [(torch.ones(2), layers[0]), (torch.ones(2), layers[1])]


@sharing_by_identity.fix
def _() -> tuple[Any, Calls]:
    def step(x, number):
        return x * number

    return step, [(torch.ones(2), torch.tensor(0)), (torch.ones(2), torch.tensor(1))]


@program()
def a_range_too_long() -> tuple[Any, Calls]:
    def step(x):
        table = list(range(200_000))
        return x + table[-1]

    return step, [(torch.ones(2),)]


@a_range_too_long.fix
def _() -> tuple[Any, Calls]:
    def step(x):
        table = torch.arange(200_000)
        return x + table[-1]

    return step, [(torch.ones(2),)]


@program(same=False)
def an_object_that_hides_its_attributes() -> tuple[Any, Calls]:
    lines = (0).__class__.__dict__["real"].__objclass__
    frame_of = sys._getframe

    def step(x):
        frame = frame_of(0)
        names = sorted(frame.f_locals)
        return x * len(names)

    return step, [(torch.ones(2),)]


@an_object_that_hides_its_attributes.fix
def _() -> tuple[Any, Calls]:
    def step(x):
        names = ["frame", "x"]
        return x * len(names)

    return step, [(torch.ones(2),)]
