"""What a compiled call leaves behind when it is over, however it ends: no block of autocast, no mode, and nobody who
holds what the program has let go of until the garbage collector runs.
"""

import gc
import weakref

import pytest
import torch

import stator
from stator.pytorch.autograd.onlookers import is_all_known
from tests.pytorch.training import BACKENDS


def autocast():
    return torch.autocast("cpu", dtype=torch.bfloat16)


def state():
    torch.autocast_increment_nesting()
    nesting = torch.autocast_decrement_nesting()
    return nesting, torch.is_autocast_enabled("cpu"), torch.is_grad_enabled(), torch.is_inference_mode_enabled()


def raises(net, x):
    with autocast():
        net(x)
        raise ValueError


def raises_in_operation(net, x):
    with autocast():
        return net(x).view(7, 7)


def raises_in_graph(net, x):
    with autocast():
        y = net(x)
        torch._assert_async(y.sum() > 1e9)
    return y


def raises_in_nested_blocks(net, x):
    with autocast(), torch.autocast("cpu", enabled=False), torch.no_grad():
        y = net(x)
        torch._assert_async(y.sum() > 1e9)
    return y


def raises_in_inference_mode(net, x):
    with torch.inference_mode():
        y = net(x)
        torch._assert_async(y.sum() > 1e9)
    return y


def raises_after_break(net, x):
    with autocast(), autocast():
        net(x)
        stator.graph_break()
        raise ValueError


def handles_after_break(net, x):
    try:
        with autocast():
            net(x)
            stator.graph_break()
            raise ValueError
    except ValueError:
        return net(x)


def leaves_after_break(net, x):
    block = autocast()
    block.__enter__()
    y = net(x)
    stator.graph_break()
    block.__exit__(None, None, None)
    return y


def branches(net, x):
    with autocast():
        y = net(x)
        z = net(x) if y.sum() > 1e9 else y * 2
    z.float().sum().backward()
    return z.detach()


def trains(net, x):
    net(x).sum().backward()
    stator.graph_break()
    net(x).sum().backward()


def becomes_another(net, x):
    x.data = x.data * 2
    return net(x)


PROGRAMS = [
    *(raises, raises_in_operation, raises_in_graph, raises_in_nested_blocks, raises_in_inference_mode),
    *(raises_after_break, handles_after_break, leaves_after_break, branches, trains),
    becomes_another,
]


@pytest.fixture
def no_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_is_left(program, backend, no_collection):
    before = state()
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    compiled = stator.compile(program, backend=backend)
    for size in (3, 3, 5):
        x = torch.randn(size, 3)
        argument = weakref.ref(x)
        try:
            compiled(net, x)
        except (ValueError, RuntimeError):
            failed = True
        else:
            failed = False
        assert failed == program.__name__.startswith("raises")
        assert state() == before
        assert is_all_known(*net.parameters()), "somebody holds a place of a parameter in autograd's graph"
        del x
        assert argument() is None, "somebody holds the argument"
