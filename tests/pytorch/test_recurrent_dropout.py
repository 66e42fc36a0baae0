"""Recurrent layers that drop out elements between their layers: the numbers of eager execution, and one mask."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import stator
from tests.pytorch.gradients import BACKENDS, alike

backends = pytest.mark.parametrize("backend", BACKENDS)
KINDS = [nn.LSTM, nn.GRU, nn.RNN]
#: of the layers
OPTIONS: dict[str, Any] = {"num_layers": 3, "dropout": 0.5}


def wanting(n: int) -> Any:
    return (torch.linspace(-1, 1, n * 6).reshape(n, 2, 3).requires_grad_(),)


def build(kind: Any, use: Any, **options: Any) -> Any:
    def make() -> Any:
        torch.manual_seed(0)
        module = kind(3, 4, **OPTIONS, **options)
        return (lambda x: use(module, x)), list(module.parameters())

    return make


def once(module: Any, x: Any) -> Any:
    return module(x)[0] * 2


def squared(module: Any, x: Any) -> Any:
    """Of one input: two masks, though a backend may make equal operations one."""
    return module(x)[0] * module(x)[0]


def twice(module: Any, x: Any) -> Any:
    return squared(module, x), torch.rand(3)


def among_others(module: Any, x: Any) -> Any:
    before = torch.rand(x.shape)
    made = module(nn.functional.dropout(x, 0.5))[0]
    return made, before, torch.rand(2)


def unread(module: Any, x: Any) -> Any:
    """What is drawn for a result that nobody reads is drawn."""
    module(x)
    return x * torch.rand(x.shape)


def packed(module: Any, x: Any) -> Any:
    out, _ = module(pack_padded_sequence(x, [x.shape[0], 1]))
    return out.data * 2, torch.rand(2)


def evaluated(module: Any, x: Any) -> Any:
    module.eval()
    before = module(x)[0]
    module.train()
    return before + module(x)[0]


@backends
@pytest.mark.parametrize("use", [once, twice, among_others, unread, packed, evaluated])
@pytest.mark.parametrize("kind", KINDS)
def test_alike(kind: Any, use: Any, backend: str) -> None:
    alike(build(kind, use), wanting, backend=backend, breaks=0, tolerance=1e-5)


@backends
@pytest.mark.parametrize("options", [{"bidirectional": True}, {"bias": False}, {"batch_first": True}])
@pytest.mark.parametrize("kind", KINDS)
def test_options(kind: Any, options: Any, backend: str) -> None:
    alike(build(kind, twice, **options), wanting, backend=backend, sizes=(3, 4), breaks=0, tolerance=1e-5)


@pytest.mark.parametrize("use", [once, squared])
def test_under_inductor(use: Any) -> None:
    alike(build(nn.GRU, use), wanting, backend="inductor", sizes=(3, 5), calls=1, breaks=0, tolerance=1e-4)


@backends
def test_the_generator_is_left_as_in_eager(backend: str) -> None:
    module = nn.LSTM(3, 4, **OPTIONS)
    states = []
    for run in (module, stator.compile(module, backend=backend, fullgraph=True)):
        torch.manual_seed(3)
        (x,) = wanting(4)
        out, _ = run(x)
        after = torch.get_rng_state()
        torch.rand(5)  # what is drawn meanwhile is not drawn again
        out.sum().backward()
        states += [after, torch.get_rng_state(), x.grad]
    for expected, got in zip(states[:3], states[3:], strict=True):
        torch.testing.assert_close(got, expected)


@backends
def test_without_gradients(backend: str) -> None:
    def program(x: Any) -> Any:
        with torch.no_grad():
            return module(x)

    module = nn.LSTM(3, 4, **OPTIONS)
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for n in (3, 3, 6):
        outcomes = []
        for run in (program, compiled):
            torch.manual_seed(n)
            outcomes.append((run(*wanting(n)), torch.rand(2)))
        torch.testing.assert_close(*outcomes)
