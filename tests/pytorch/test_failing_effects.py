"""Graphs that fail after they have written or drawn something: what came before is done, in the program's order.

Each program is run eagerly and compiled, with an index that the graph's operations refuse only when it runs.

PYTEST_DONT_REWRITE: what pytest makes of an assert is another program.
"""

from __future__ import annotations

import contextlib
import io
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op
from torch.nn import functional as F

import stator

LOG: list[Any] = []


def own(gm: Any, inputs: Any) -> Any:
    """A backend of the user's: whether it writes before it fails is not known."""
    return lambda *args: gm(*args)


def pick(x: Any, index: Any) -> Any:
    return x[index]


def prints_and_appends(x: Any, index: Any) -> Any:
    LOG.append(1)
    x.mul_(2)
    print("before")
    x = pick(x, index)
    LOG.append("not reached")
    return x


def handles(x: Any, index: Any) -> Any:
    try:
        LOG.append(1)
        x.mul_(2)
        return x[index]
    except IndexError as error:
        LOG.append(str(error))
        return x.add_(1).sum()
    finally:
        LOG.append("finally")


class Holder:
    count = 0
    last = None


HOLDER = Holder()


def attributes(x: Any, index: Any) -> Any:
    HOLDER.count += 1
    HOLDER.last = x.mul_(3)
    LOG.sort()
    y = torch.rand(3)
    LOG.append(0)
    z = y[index].sum() + x
    HOLDER.count += 10
    return z


def draws(x: Any, index: Any) -> Any:
    y = F.dropout(x, 0.5)
    LOG.append("dropped")
    return y[index]


@contextlib.contextmanager
def noted(name: str) -> Any:
    LOG.append(f"enter {name}")
    try:
        yield
    finally:
        LOG.append(f"leave {name}")


def within_with(x: Any, index: Any) -> Any:
    with noted("outer"), torch.no_grad():
        x.add_(1)
        with noted("inner"):
            LOG.append(torch.is_grad_enabled())
            return x[index]


def steps(x: Any, index: Any) -> Any:
    for i in range(3):
        LOG.append(f"step {i}")
        x.add_(i)
        yield x[index] if i else x


def generator(x: Any, index: Any) -> Any:
    total = torch.zeros(())
    for i, part in enumerate(steps(x, index)):
        LOG.append(i)
        total = total + part.sum()
    return total


def in_a_loop(x: Any, index: Any) -> Any:
    failed = 0
    for i in range(3):
        x[0] += 1
        try:
            x.add_(pick(x, index + i)[0])
        except IndexError:
            failed += 1
            LOG.append(i)
    return failed


def resumed(x: Any, index: Any) -> Any:
    LOG.append("first")
    x.add_(1)
    stator.graph_break()
    try:
        LOG.append("second")
        x.mul_(2)
        return pick(x, index)
    except IndexError:
        stator.graph_break()
        LOG.append("handled")
        raise


def inner_resumed(x: Any, index: Any) -> Any:
    try:
        return resumed(x, index)
    finally:
        x.neg_()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, index: Any) -> Any:
        LOG.append("forward")
        return x[index] * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad, None


def own_function(x: Any, index: Any) -> Any:
    x.add_(1)
    LOG.append("applying")
    return Doubled.apply(x, index)


torch.manual_seed(0)
NORM = nn.BatchNorm1d(4)


def running_statistics(x: Any, index: Any) -> Any:
    y = NORM(x.reshape(1, 4).expand(3, 4))
    LOG.append(len(LOG))
    return y[index].detach()


def keywords(x: Any, *args: Any, scale: int = 2, **named: Any) -> Any:
    LOG.append((scale, sorted(named)))
    x.mul_(scale)
    return x[args[0]]


def with_keywords(x: Any, index: Any) -> Any:
    return keywords(x, index, scale=3, other=1)


def view_of_input(x: Any, index: Any) -> Any:
    row = x[1:]
    LOG.append(len(row))
    row.mul_(2)
    x[0] = row.sum()
    return row[index]


def makes_it_require_gradients(x: Any, index: Any) -> Any:
    LOG.append(1)
    x[1:].add_(NORM.weight[1:])
    return x[index]


def reshapes(x: Any, index: Any) -> Any:
    LOG.append(1)
    x.unsqueeze_(0)
    x.mul_(2)
    return x[0][index]


def under_autocast(x: Any, index: Any) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x.mul_(2)
        try:
            return x[index]
        except IndexError:
            LOG.append(torch.is_autocast_enabled("cpu"))
            return x.reshape(2, 2) @ torch.ones(2, 2)


def with_a_check(x: Any, index: Any) -> Any:
    LOG.append(1)
    torch._assert_async((x > 0).all())
    x.mul_(2)
    return x[index]


def in_inference_mode(x: Any, index: Any) -> Any:
    with torch.inference_mode():
        LOG.append(x.mul_(2) is x)
        return x[index]


def half_of_a_write(x: Any, index: Any) -> Any:
    """What comes before the index that is out of range has been added, once."""
    return x.index_add_(0, index, torch.ones(2))


def half_of_a_write_handled(x: Any, index: Any) -> Any:
    try:
        return x.index_add_(0, index, torch.ones(2))
    except IndexError:
        return x * 2


PROGRAMS = [
    *(half_of_a_write, half_of_a_write_handled),
    *(prints_and_appends, handles, attributes, draws, within_with, generator, in_a_loop, resumed, inner_resumed),
    *(own_function, running_statistics, keywords, with_keywords, view_of_input),
    *(makes_it_require_gradients, reshapes, under_autocast, in_inference_mode, with_a_check),
]


def fresh(values: Any = (1.0, 2.0, 3.0, 4.0)) -> Any:
    return torch.tensor(values)


def observed(called: Callable[..., Any], function: Any, x: Any, index: Any) -> list[Any]:
    """Everything that shows of a call."""
    LOG.clear()
    LOG.extend([3, 1] if function is attributes else [])
    HOLDER.count, HOLDER.last = 0, None
    NORM.reset_running_stats()
    torch.manual_seed(1)
    out = io.StringIO()
    result: Any
    try:
        with contextlib.redirect_stdout(out):
            result = called(x, index)
    except Exception as error:
        lines = [f"{entry.name}: {entry.line}" for entry in traceback.extract_tb(error.__traceback__)[1:]]
        result = [type(error), error.args, lines, type(error.__context__)]
    same = HOLDER.last is x
    found = [result, x, list(LOG), out.getvalue(), HOLDER.count, same, NORM.running_mean.clone(), torch.rand(2)]
    return [*found, torch.is_grad_enabled(), NORM.num_batches_tracked.item()]


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, torch.Tensor):
        return bool(torch.equal(left, right)) and left.requires_grad == right.requires_grad
    if isinstance(left, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def agree(function: Any, backend: Any, index: Any = (0, 9)) -> None:
    compiled = stator.compile(function, backend=own if backend == "own" else backend)
    for given in ((0, 1), index, index, (0, 1)):
        expected = observed(function, function, fresh(), torch.tensor(given))
        got = observed(compiled, function, fresh(), torch.tensor(given))
        assert equal(expected, got), (given, expected, got)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "own"])
@pytest.mark.parametrize("function", PROGRAMS)
def test_as_in_eager(function: Any, backend: str) -> None:
    agree(function, backend)


def test_inductor_that_has_written() -> None:
    agree(handles, "inductor")


def test_one_graph() -> None:
    for function in (prints_and_appends, handles, attributes, draws, generator, within_with):
        compiled = stator.compile(function, backend="eager", fullgraph=True)
        expected = observed(function, function, fresh(), torch.tensor([9]))
        assert equal(expected, observed(compiled, function, fresh(), torch.tensor([9]))), function


def test_the_history_of_what_was_written_is_put_back() -> None:
    def f(x: Any, index: Any) -> Any:
        LOG.append(1)
        x.mul_(2)
        return x[index]

    compiled = stator.compile(f, backend="eager", fullgraph=True)
    for called in (f, compiled):
        LOG.clear()
        leaf = torch.ones(3, requires_grad=True)
        x = leaf * 3
        square = x**2
        with pytest.raises(IndexError):
            called(x, torch.tensor([9]))
        assert x.tolist() == [6.0, 6.0, 6.0] and x._version == 1 and LOG == [1]
        (grad,) = torch.autograd.grad(x.sum(), leaf)
        assert grad.tolist() == [6.0, 6.0, 6.0]
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            square.sum().backward()


def shows(x: Any, index: Any) -> Any:
    try:
        LOG.append(1)
        torch._higher_order_ops.print("v {}", x)
        return x[index]
    except IndexError as error:
        LOG.append(str(error))
        return x


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "own"])
def test_what_was_shown_is_shown_again_so_that_handlers_run(backend: str) -> None:
    compiled = stator.compile(shows, backend=own if backend == "own" else backend, fullgraph=True)
    for given in ((0, 1), (0, 9), (0, 1)):
        expected = observed(shows, shows, torch.ones(3), torch.tensor(given))
        got = observed(compiled, shows, torch.ones(3), torch.tensor(given))
        expected[3] *= 1 + (9 in given)  # all else is as in eager execution
        assert equal(expected, got), (given, expected, got)


@torch.library.custom_op("stator_tests::tell", mutates_args=())
def tell(x: torch.Tensor) -> torch.Tensor:
    LOG.append("told")
    return x.clone()


tell.register_fake(torch.empty_like)
_register_effectful_op(torch.ops.stator_tests.tell.default, _EffectType.ORDERED)


def tells(x: Any, index: Any) -> Any:
    LOG.append(1)
    tell(x)
    return x[index]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_operator_that_acts_does_so_once_and_the_error_says_what_is_lost(backend: str) -> None:
    compiled = stator.compile(tells, backend=backend, fullgraph=True)
    LOG.clear()
    compiled(torch.ones(3), torch.tensor([1]))
    assert LOG == ["told", 1]
    LOG.clear()
    with pytest.raises(IndexError) as caught:
        compiled(torch.ones(3), torch.tensor([9]))
    assert LOG == ["told"]
    assert "tells() was not executed again" in caught.value.__notes__[0]


@pytest.mark.parametrize(("limit", "log"), [(16, [1]), (15, [])])
def test_what_an_unknown_backend_writes_is_copied_up_to_a_limit(limit: int, log: list[int]) -> None:
    LOG.clear()
    x = torch.ones(4)
    with pytest.raises(IndexError):
        stator.compile(prints_and_appends, backend=own, options={"undo_limit": limit})(x, torch.tensor([9]))
    assert log == LOG and x.tolist() == [2.0] * 4
