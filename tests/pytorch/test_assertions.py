"""What a program asserts of numbers in tensors: assumed, checked when the graph runs, and raised as eager raises it.

PYTEST_DONT_REWRITE: what pytest makes of an assert is another program.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx.experimental.symbolic_shapes import sym_and, sym_or

import stator
from tests.pytorch.gradients import BACKENDS

cache = torch.zeros(16, 3)
log: list[object] = []
weight = torch.ones(3, requires_grad=True)


def narrowed(x: Any, i: Any) -> Any:
    n = i.item()
    torch._check(n >= 0)
    torch._check(n < x.shape[0], lambda: f"too large: {n}")
    return x.narrow(0, 0, n) * 2


def size(x: Any, i: Any) -> Any:
    n = i.item()
    torch._check_is_size(n, max=9)
    return torch.zeros(n, 3)


def branch(x: Any, i: Any) -> Any:
    n = i.item()
    torch._check(n != 9)
    torch._check(n < 8)
    if n < 9:
        return x + n
    return x


def into_cache(x: Any, i: Any) -> Any:
    n = i.item()
    torch._check_value(n >= 0)
    torch._check_index(n + x.shape[0] <= 16, lambda: f"no room at {n}")
    cache[n : n + x.shape[0]] = x
    return cache[: n + x.shape[0]].sum(0)


def after_a_write(x: Any, i: Any) -> Any:
    cache.add_(1)
    n = i.item()
    if n > 10:
        raise KeyError(n)
    return cache * n


def handled(x: Any, i: Any) -> Any:
    try:
        torch._check_index(i.item() < 5, lambda: "bad")
    except IndexError as e:
        return x - 1, str(e)
    return x + 1


def effects(x: Any, i: Any) -> Any:
    log.append(1)
    n = int(i)
    assert n < 5, n
    log.append(n)
    return x * n


def of_a_float(x: Any, i: Any) -> Any:
    value = (i * 0.5).item()
    assert value < 4.0
    return x * value


def of_truth(x: Any, i: Any) -> Any:
    n = i.item()
    if not n:
        raise ZeroDivisionError
    return x / n


def in_a_function(x: Any, i: Any) -> Any:
    def checked(n: int) -> int:
        if n >= 5:
            raise ValueError("n")
        return n

    return x * checked(i.item())


def in_a_body(x: Any, i: Any) -> Any:
    def checked(row: Any) -> Any:
        assert i.item() < 5
        return row * 2

    return torch.vmap(checked)(x)


def drawn(x: Any, i: Any) -> Any:
    y = torch.rand(3)
    torch._check(i.item() < 5)
    return y * x


def differentiated(x: Any, i: Any) -> Any:
    torch._check(i.item() < 5)
    torch._assert_async(i < 3, "three or more")
    return (x * weight * i.item()).exp()


def alone(x: Any, i: Any) -> None:
    torch._check(i.item() < 5)


def of_several(x: Any, i: Any) -> Any:
    n = i.item()
    torch._check(sym_and(n >= 0, n < x.shape[0], n != 2), lambda: f"not within: {n}")
    return x[:n] * 2


def of_one_of_several(x: Any, i: Any) -> Any:
    n = i.item()
    torch._check(sym_or(n < 3, n >= 9))
    torch._check(torch.sym_not(n > 13), lambda: "too large")
    return x * n


def of_connected(x: Any, i: Any) -> Any:
    n, plain = i.item(), x.ndim == 2
    if not ((n >= 0) & plain & (n < 9) | (n == 14)):
        raise ValueError(n)
    return x * n


def of_alternatives(x: Any, i: Any) -> Any:
    n = i.item()
    assert (n < 9) | False
    assert True & (n > -5) & (n < 8)
    return x * n


PROGRAMS = [
    *(of_several, of_one_of_several, of_connected, of_alternatives),
    *(narrowed, size, branch, into_cache, after_a_write, handled, effects, of_a_float, of_truth, in_a_function),
    *(in_a_body, drawn, differentiated, alone),
    lambda x, i: (torch._assert_async(i < 5), x * 2)[1],
    lambda x, i: (torch._assert_async((i < 5).all(), "too large"), x * 2)[1],
    lambda x, i: (cache.add_(1), torch._assert_async(i < 5, "too large"), x * 2)[2],
    lambda x, i: (torch.ops.aten._assert_async(i < 5), x * 2)[1],
    lambda x, i: (torch.ops.aten._assert_async.default(i < 5), x * 2)[1],
    lambda x, i: (torch.ops.aten._assert_async.msg(i < 5, "too large"), x * 2)[1],
    lambda x, i: (torch._assert_scalar(i.item() < 5, "too large"), x * 2)[1],
    lambda x, i: (torch.ops.aten._assert_scalar(i.item() < 5, "too large"), x * 2)[1],
    lambda x, i: (torch._assert(i < 5, "too large"), torch._assert(i.item() < 6, "larger"), x * 2)[2],
    lambda x, i: (torch._check_tensor_all(i < 5, lambda: "oh"), x * 2)[1],
]


def observed(function: Any, numbers: list[int]) -> list[Any]:
    cache.zero_()
    log.clear()
    torch.manual_seed(3)
    seen = []
    for n in numbers:
        x = torch.arange(3.0 * (4 + n % 2)).reshape(-1, 3)
        try:
            result = function(x, torch.tensor(n))
            if isinstance(result, torch.Tensor) and result.requires_grad:
                result.sum().backward()
                result = result.detach(), weight.grad
                weight.grad = None
        except Exception as e:
            result = type(e), str(e)
        seen.append((repr(result), cache.tolist(), list(log), torch.rand(1).item()))
    return seen


@pytest.mark.filterwarnings("ignore:_check_is_size")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_holds_is_one_graph_and_what_does_not_raises_as_in_eager(program: Any, backend: str) -> None:
    numbers = [1, 2, 14, 9, 7, -1, 0, 3]
    expected = observed(program, numbers)
    assert observed(stator.compile(program, backend=backend), numbers) == expected
    if program is not in_a_body:
        assert stator.stats().graphs <= 2
        assert stator.stats().graph_breaks == 0


def test_with_inductor() -> None:
    numbers = [1, 2, 14, 9, -1]
    for program in (
        narrowed,
        of_several,
        of_one_of_several,
        into_cache,
        effects,
        PROGRAMS[-1],
        lambda x, i: (torch._assert_async(i < 5), x * 2)[1],
    ):
        assert observed(stator.compile(program, backend="inductor"), numbers) == observed(program, numbers)
    assert stator.stats().graph_breaks == 0


def test_what_cannot_be_undone_breaks() -> None:
    @torch.library.custom_op("stator_tests::noted", mutates_args=())
    def noted(x: torch.Tensor) -> None:
        log.append("noted")

    noted.register_fake(lambda x: None)

    def program(x: Any, i: Any) -> Any:
        noted(x)
        torch._check(i.item() < 5, lambda: "too large")
        return x * 2

    numbers = [1, 9]
    expected = observed(program, numbers)
    assert observed(stator.compile(program, backend="eager"), numbers) == expected
    assert expected[1][2] == ["noted", "noted"]
    assert stator.stats().graph_breaks > 0


def into_both(x: Any, total: Any) -> Any:
    total.add_(1)
    n = (x > 5).sum().item()
    torch._check(n != 0)
    return total + n


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_inputs_share_is_written_once(backend: str) -> None:
    for size in (3, 4, 5):
        x = torch.ones(size)
        with pytest.raises(RuntimeError, match="Expected cond to be True"):
            stator.compile(into_both, backend=backend)(x, x.detach())
        assert torch.equal(x, torch.full((size,), 2.0))
