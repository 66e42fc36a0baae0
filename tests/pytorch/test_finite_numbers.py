"""`math.isfinite`, `isnan` and `isinf` of numbers that tensors hold."""

import math
import sys

import pytest
import torch

import stator
from tests.pytorch.each_backend import each_backend

NAN, INF = float("nan"), float("inf")


def of_item(x):
    if not math.isfinite(x.sum().item()):
        raise ValueError("not finite")
    return x * 2


def of_tensor(x):
    norm = x.norm()
    if math.isnan(norm) or math.isinf(norm):
        sys.exit("stopped")
    return x / (norm + 1)


def of_half(x):
    if math.isinf(x.to(torch.bfloat16).sum()):
        raise OverflowError
    return x + 1


def of_integers(x):
    return x * math.isfinite((x > 0).sum().item()) + math.isnan((x > 0).sum()) + int(math.isinf((x > 0).any().item()))


PROGRAMS = [of_item, of_tensor, of_half, of_integers]


def outcome(function, x):
    x = x.clone().requires_grad_()
    try:
        result = function(x)
    except (Exception, SystemExit) as e:
        return f"{type(e).__name__}: {e}"
    result.sum().backward()
    return result.detach(), x.grad


def alike(compiled, program, x):
    ours, theirs = outcome(compiled, x), outcome(program, x)
    if isinstance(theirs, str):
        assert ours == theirs
    else:
        torch.testing.assert_close(ours, theirs, equal_nan=True)


@pytest.mark.parametrize(("kind", "backend"), each_backend(range(len(PROGRAMS)), inductor=range(len(PROGRAMS))))
def test_no_break(kind, backend):
    program = PROGRAMS[kind]
    stator.reset()
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for values in ([1.0, 2.0], [3.0, 4.0, 5.0], [1.0, NAN], [INF, 1.0, 2.0], [3e38, 3e38, 3e38, 3e38], [1.0, -1.0]):
        alike(compiled, program, torch.tensor(values))
    assert stator.stats().graph_breaks == 0


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_conditions_are_numbers(backend):
    def count(x):
        return x * int(math.isnan(x.sum().item())) + int(math.isinf(x.prod()))

    compiled = stator.compile(count, backend=backend, fullgraph=True)
    for values in ([1.0, 2.0], [INF, 1.0, 2.0], [3e38, 3e38, 2.0], [1.0, 2.0, 3.0, 4.0]):
        alike(compiled, count, torch.tensor(values))


def test_what_has_more_than_one_element_fails_as_in_eager():
    def many(x):
        return math.isfinite(x)

    for program in (many, stator.compile(many, backend="eager")):
        with pytest.raises(ValueError, match="only one element"):
            program(torch.ones(3))


def test_floats_that_exist():
    def scaled(x, rate):
        return x * rate if math.isfinite(rate) else x

    compiled = stator.compile(scaled, backend="eager")
    for rate in (0.5, 0.25, NAN, 0.125, INF):
        assert torch.equal(compiled(torch.ones(2), rate), scaled(torch.ones(2), rate))
