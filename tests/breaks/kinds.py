# needs: torch
"""Tensors and operators of other kinds: subclasses, modes, operators without a fake form, numpy, random generators."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from tests.breaks.registry import Calls, program


class Counted(torch.Tensor):
    """A wrapper that counts the operations on it."""

    calls: list[str] = []

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @classmethod
    def __tensor_unflatten__(cls, inner, meta, size, stride):
        return cls(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        cls.calls.append(function.__name__)
        args, kwargs = torch.utils._pytree.tree_map_only(Counted, lambda t: t.inner, (args, kwargs or {}))
        return torch.utils._pytree.tree_map_only(torch.Tensor, Counted, function(*args, **kwargs))


class Plain(Counted):
    """The same without counting."""

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        args, kwargs = torch.utils._pytree.tree_map_only(Plain, lambda t: t.inner, (args, kwargs or {}))
        return torch.utils._pytree.tree_map_only(torch.Tensor, Plain, function(*args, **kwargs))


@program()
def a_subclass_that_counts() -> tuple[Any, Calls]:
    def scaled(x):
        y = x * 2  # SB0207
        return (y + 1).inner  # SB0207

    return scaled, [(Counted(torch.ones(2)),)]


@a_subclass_that_counts.fix
def _() -> tuple[Any, Calls]:
    def scaled(x):
        y = x * 2
        return (y + 1).inner

    return scaled, [(Plain(torch.ones(2)),)]


@torch.library.custom_op("corpus::smooth", mutates_args=())
def smooth(x: torch.Tensor) -> torch.Tensor:
    """An operator of the user's, without a fake form."""
    return torch.from_numpy(np.convolve(x.numpy(), np.ones(2), "same")).to(x.dtype)


@torch.library.custom_op("corpus::smoothed", mutates_args=())
def smoothed(x: torch.Tensor) -> torch.Tensor:
    """The same operator."""
    return torch.from_numpy(np.convolve(x.numpy(), np.ones(2), "same")).to(x.dtype)


@smoothed.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@program()
def an_operator_without_a_fake() -> tuple[Any, Calls]:
    def forward(x):
        return torch.relu(smooth(x * 2))  # SB0204

    return forward, [(torch.arange(4.0),)]


@an_operator_without_a_fake.fix
def _() -> tuple[Any, Calls]:
    def forward(x):
        return torch.relu(smoothed(x * 2))

    return forward, [(torch.arange(4.0),)]


@program(same=False)
def a_mode_that_counts_flops() -> tuple[Any, Calls]:
    class Flops(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.count = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.count += 1
            return function(*args, **(kwargs or {}))

    model = nn.Linear(2, 2)

    def forward(x):  # SB0404
        with Flops() as flops:  # SB0120
            h = model(x)  # SB0404
        return h, flops.count

    return forward, [(torch.ones(1, 2),)]


@a_mode_that_counts_flops.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):
        h = model(x)
        return h, 4

    return forward, [(torch.ones(1, 2),)]


@program()
def interpolation_in_numpy() -> tuple[Any, Calls]:
    knots, values = np.array([0.0, 1.0, 2.0]), np.array([0.0, 10.0, 20.0])

    def lookup(x):
        h = x * 2
        y = np.interp(h.numpy(), knots, values)  # SB0101
        return torch.from_numpy(y) + h

    return lookup, [(torch.tensor([0.2, 0.7]),)]


@interpolation_in_numpy.fix
def _() -> tuple[Any, Calls]:
    def lookup(x):
        h = x * 2
        y = (h * 10).double()
        return y + h

    return lookup, [(torch.tensor([0.2, 0.7]),)]


@program()
def text_arrays() -> tuple[Any, Calls]:
    names = np.array(["a", "b", "a"])

    def mask(x):
        chosen = torch.from_numpy(names == "a")  # SB0101
        return x * chosen

    return mask, [(torch.ones(3),)]


@text_arrays.fix
def _() -> tuple[Any, Calls]:
    names = np.array(["a", "b", "a"])
    chosen = torch.from_numpy(names == "a")

    def mask(x):
        return x * chosen

    return mask, [(torch.ones(3),)]


@program()
def memory_mapped_features() -> tuple[Any, Calls]:
    table = np.arange(12.0).reshape(4, 3)

    def features(rows, x):
        picked = np.take(table, rows, axis=0)
        return torch.as_tensor(picked).sum(0) + x

    return features, [([0, 2], torch.ones(3))]


@memory_mapped_features.fix
def _() -> tuple[Any, Calls]:
    table = torch.arange(12.0, dtype=torch.double).reshape(4, 3)

    def features(rows, x):
        return table[rows].sum(0) + x

    return features, [([0, 2], torch.ones(3))]


@program()
def structured_records() -> tuple[Any, Calls]:
    records = np.zeros(2, dtype=[("x", "f4"), ("label", "i4")])
    records["x"] = 3

    def read(x):
        return x + torch.from_numpy(records["x"].copy())  # SB0101

    return read, [(torch.ones(2),)]


@structured_records.fix
def _() -> tuple[Any, Calls]:
    records = np.zeros(2, dtype=[("x", "f4"), ("label", "i4")])
    records["x"] = 3
    column = torch.from_numpy(records["x"].copy())

    def read(x):
        return x + column

    return read, [(torch.ones(2),)]


@program(same=False)
def seed_in_the_step() -> tuple[Any, Calls]:
    def augment(x, number):
        torch.manual_seed(number)
        return x + torch.rand(2)

    return augment, [(torch.ones(2), 3), (torch.ones(2), 3)]


@seed_in_the_step.fix
def _() -> tuple[Any, Calls]:
    torch.manual_seed(3)

    def augment(x):
        return x + torch.rand(2)

    return augment, [(torch.ones(2),)]


@program()
def state_of_the_generator_saved() -> tuple[Any, Calls]:
    def twice(x):
        state = torch.get_rng_state()
        first = F.dropout(x, 0.5)
        torch.set_rng_state(state)
        return first + F.dropout(x, 0.5)

    return twice, [(torch.ones(8),)]


@state_of_the_generator_saved.fix
def _() -> tuple[Any, Calls]:
    def twice(x):
        first = F.dropout(x, 0.5)
        return first + first

    return twice, [(torch.ones(8),)]


@program(same=False)
def layer_dropped_at_random() -> tuple[Any, Calls]:
    layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))

    def forward(x):
        for layer in layers:  # SB0601
            if random.random() < 0.5:  # SB0212
                continue
            x = layer(x)  # SB0601
        return x

    x = torch.ones(1, 2)
    return forward, [(x,), (x,), (x,)]


@layer_dropped_at_random.fix
def _() -> tuple[Any, Calls]:
    layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))

    def forward(x):
        for layer in layers:
            x = torch.where(torch.rand(()) < 0.5, x, layer(x))
        return x

    x = torch.ones(1, 2)
    return forward, [(x,), (x,), (x,)]


@program()
def a_generator_of_its_own() -> tuple[Any, Calls]:
    def noise(x):
        generator = torch.Generator().manual_seed(3)
        return x + torch.rand(2, generator=generator)

    return noise, [(torch.ones(2),)]


@a_generator_of_its_own.fix
def _() -> tuple[Any, Calls]:
    generator = torch.Generator().manual_seed(3)

    def noise(x):
        return x + torch.rand(2, generator=generator)

    return noise, [(torch.ones(2),)]
