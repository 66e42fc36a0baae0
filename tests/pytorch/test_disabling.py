"""Functions that wear `torch._disable_dynamo` are traced through: the function called is the one they would call."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
import torch._refs  # the reference implementations wear it

import stator

X = torch.zeros(2)


def add_one(x: Any) -> Any:
    return x + 1


def add_two(x: Any) -> Any:
    return x + 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_types_are_promoted_by_reference_implementations(backend: str) -> None:
    """What they wear is itself dressed up as another function, so that its `__wrapped__` is that one."""

    def program(a: Any, b: Any) -> Any:
        return torch._refs.true_divide(a, b)

    a, b = torch.ones(3, dtype=torch.int64), torch.full((3,), 2.0)
    assert torch.equal(stator.compile(program, backend=backend)(a, b), program(a, b))


def test_what_a_wrapper_says_it_wraps_is_not_what_it_calls() -> None:
    wearing = functools.wraps(add_two)(torch._disable_dynamo(add_one))
    assert stator.compile(lambda x: wearing(x), backend="eager")(X).tolist() == [1, 1]


def test_the_function_may_be_another_later() -> None:
    wearing = torch._disable_dynamo(add_one)
    compiled = stator.compile(lambda x: wearing(x), backend="eager")
    assert compiled(X).tolist() == [1, 1]
    cell = wearing.__closure__[wearing.__code__.co_freevars.index("fn")]
    cell.cell_contents = add_two
    assert compiled(X).tolist() == [2, 2]


class Hooked(torch.nn.Linear):
    """A layer with hooks that are kept out of graphs."""

    def __init__(self, seen: list[str], *, after: bool = True) -> None:
        super().__init__(2, 2)
        self.before = self.register_forward_pre_hook(_hook(seen, "before"))
        self.after = self.register_forward_hook(_hook(seen, "after")) if after else None


def _hook(seen: list[str], name: str) -> Any:
    @torch.compiler.disable
    def hook(module: Any, *args: Any) -> Any:
        seen.append(name)
        return args[-1] * 2 if name == "after" else None

    return hook


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("after", [True, False])
def test_disabled_hooks_of_a_compiled_module_stand_around_its_graph(backend: str, after: bool) -> None:
    seen: list[str] = []
    module = Hooked(seen, after=after)
    stator.reset()
    compiled = stator.compile(module, backend=backend, fullgraph=True)
    for rows in (2, 3, 4):
        x = torch.randn(rows, 2, requires_grad=True)
        expected = torch.autograd.grad(module(x).sum(), x)
        torch.testing.assert_close(torch.autograd.grad(compiled(x).sum(), x), expected)
    assert seen == ["before", "after"][: 1 + after] * 6
    assert stator.stats().graphs == 2 and not stator.stats().breaks
    module.before.remove()
    compiled(X[None])
    assert seen[12 if after else 6 :] == ["after"][:after]


def test_disabled_hooks_on_both_sides_are_one_break() -> None:
    seen: list[str] = []
    layers = torch.nn.Sequential(*(Hooked(seen) for _ in range(4)))
    stator.reset()
    compiled = stator.compile(layers, backend="eager")
    for rows in (2, 3):
        x = torch.randn(rows, 2, requires_grad=True)
        torch.testing.assert_close(compiled(x), layers(x))
    assert seen == ["before", "after"] * 16
    assert stator.stats().graphs == 2 and {record.code for record in stator.stats().breaks} == {"SB0302"}
    assert sum(record.count for record in stator.stats().breaks) <= 3


def test_the_graph_of_forward_is_not_that_of_a_call_with_hooks() -> None:
    seen: list[str] = []
    with pytest.raises(stator.errors.StatorError, match="no graph is that of the call"):
        stator.trace(Hooked(seen), X[None])
    assert seen == []
