"""`torch.compiler.disable(function)` called in a compiled function: what it makes breaks where it is called."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch._dynamo

import stator
from tests.pytorch.training import BACKENDS

DISABLES = [torch.compiler.disable, torch._dynamo.disable]
seen: list[bool] = []


def helper(x: Any) -> Any:
    seen.append(stator.is_compiling())
    return x.sin()


class Layer(torch.nn.Module):
    def scaled(self, x: Any) -> Any:
        return helper(x) * 2


LAYER = Layer()


def at_once(disable: Any) -> Any:
    return lambda x: disable(helper)(x.cos()) + 1


def by_name(disable: Any) -> Any:
    return lambda x: disable(fn=helper, reason="it logs")(x=x.cos()) + 1


def of_a_method(disable: Any) -> Any:
    return lambda x: disable(LAYER.scaled, recursive=True)(x.cos()) + 1


def not_recursive(disable: Any) -> Any:
    return lambda x: disable(helper, recursive=False)(x.cos()) + 1


def decorated(disable: Any) -> Any:
    def program(x: Any) -> Any:
        factor = x.shape[0]

        @disable
        def own(y: Any) -> Any:
            return helper(y) * factor

        return own(x.cos()) + 1

    return program


PROGRAMS = [at_once, by_name, of_a_method, not_recursive, decorated]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("disable", DISABLES)
@pytest.mark.parametrize("make", PROGRAMS)
def test_a_call_breaks_once_and_is_traced_once(make: Any, disable: Any, backend: str) -> None:
    program = make(disable)
    compiled = stator.compile(program, backend=backend, dynamic=False)
    for n in (3, 3, 3, 3, 3, 3, 3, 3, 3, 3):
        outcomes = []
        for run in (program, compiled):
            seen.clear()
            x = torch.linspace(-1, 1, n).requires_grad_()
            result = run(x)
            result.sum().backward()
            assert len(seen) == 1
            assert not seen[0] or make is not_recursive
            outcomes.append((result.detach(), x.grad))
        torch.testing.assert_close(*outcomes)
    stats = stator.stats()
    assert [(b.code, b.count) for b in stats.breaks] == [("SB0302", 1)]
    assert stats.recompiles == 0
    if make is by_name:
        assert "it logs" in stats.breaks[0].reason


@pytest.mark.parametrize("disable", DISABLES)
def test_what_is_kept_of_it_is_the_function_that_torch_makes(disable: Any) -> None:
    def program(x: Any) -> Any:
        made = disable(helper)
        return x + 1, made, made

    compiled = stator.compile(program, backend="eager")
    _, first, same = compiled(torch.ones(2))
    _, second, _ = compiled(torch.ones(2))
    assert first is same and first is not second
    assert first.__name__ == "helper" and first._torchdynamo_orig_callable is helper
    assert stator.stats().graph_breaks == 0


@pytest.mark.parametrize("disable", DISABLES)
@pytest.mark.parametrize("given", [3, LAYER, Layer])
def test_of_anything_but_a_function_it_is_left_to_torch(disable: Any, given: Any) -> None:
    def program(x: Any) -> Any:
        try:
            made = disable(given)
        except AssertionError as error:
            return x + 1, str(error)
        return x + 1, type(made).__name__

    given = Layer() if given is Layer else given
    compiled = stator.compile(program, backend="eager")
    assert compiled(torch.ones(2))[1] == program(torch.ones(2))[1]
    assert [b.code for b in stator.stats().breaks] == ["SB0115"]
