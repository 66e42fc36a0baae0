"""`torch.utils.checkpoint`."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)

import stator
from stator.pytorch import internals
from tests.pytorch.gradients import BACKENDS, alike, plain, vector
from tests.pytorch.programs import agree


class Block(nn.Module):
    def __init__(self, *extra: nn.Module) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 4), *extra)
        self.options: dict[str, Any] = {"use_reentrant": False}

    def forward(self, x: Any) -> Any:
        y = checkpoint(self.inner, x, **self.options)
        return checkpoint(lambda a, scale: self.inner(a) * scale, y, scale=2.0, **self.options) + x


def make(*extra: Any, **options: Any) -> Any:
    block = Block(*extra)
    block.options |= options
    return block, (torch.randn(3, 4, requires_grad=True),)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_results_gradients_and_random_state(backend: str) -> None:
    agree(make, grad=True, backend=backend)


def test_options_that_change_nothing() -> None:
    agree(lambda: make(determinism_check="none", early_stop=False, preserve_rng_state=True, debug=False), grad=True)


@pytest.mark.parametrize("options", [{"preserve_rng_state": False}, {"debug": True}])
def test_options_left_to_python(options: Any) -> None:
    agree(lambda: make(**options), grad=True, breaks=None)


def test_statistics_updated_twice() -> None:
    agree(lambda: make(nn.BatchNorm1d(4)), grad=True, breaks=2)


def test_counter_updated_twice() -> None:
    class Counting(nn.Module):
        calls = 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return x.sin()

    agree(lambda: make(Counting()), grad=True, breaks=2)


def test_sequence() -> None:
    layers = nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)])
    run = lambda x: checkpoint_sequential(layers, 2, x, use_reentrant=False)  # noqa: E731
    agree(lambda: (run, (torch.randn(3, 4, requires_grad=True),)), grad=True)


def test_nodes_are_marked() -> None:
    seen = []

    def backend(gm: Any, inputs: Any) -> Any:
        seen.extend(n for n in gm.graph.nodes if "recompute" in n.meta)
        return gm.forward

    block, args = make()
    stator.compile(block, backend=backend)(*args)
    assert len(seen) == 9
    assert len({n.meta["ac_graph_id"] for n in seen}) == 2


# -- reentrant --------------------------------------------------------------------------------------------------------


def reentrant(x: Any) -> Any:
    return checkpoint(lambda a: (a.sin() * 2, None, a.argmax()), x * 2, use_reentrant=True)


def reentrant_sequence(x: Any) -> Any:
    return checkpoint_sequential([torch.sin, torch.cos, torch.tanh], 2, x, use_reentrant=True)


def without_draws(x: Any) -> Any:
    return checkpoint(torch.sin, x, use_reentrant=False, preserve_rng_state=False)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("inputs", [vector, plain])
@pytest.mark.parametrize("program", [reentrant, reentrant_sequence, without_draws])
def test_programs_without_a_break(program: Any, inputs: Any, backend: str) -> None:
    alike(lambda: (program, []), inputs, backend=backend, breaks=0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("inputs", [vector, plain])
def test_parameters_in_a_reentrant_checkpoint(inputs: Any, backend: str) -> None:
    def build() -> Any:
        weight = torch.ones(1, requires_grad=True)
        return (lambda x: checkpoint(lambda a: (a * weight).sin(), x, use_reentrant=True)), [weight]

    alike(build, inputs, backend=backend, breaks=0)


def test_a_reentrant_checkpoint_under_inductor() -> None:
    alike(lambda: (reentrant_sequence, []), backend="inductor", sizes=(3,), breaks=0, tolerance=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_result_that_only_a_reentrant_checkpoint_makes_require_gradients(backend: str) -> None:
    def program(x: Any) -> Any:
        return checkpoint(lambda a: (a.sin(), a.detach() * 2), x, use_reentrant=True)[0]

    alike(lambda: (program, []), backend=backend)


def test_no_argument_wants_gradients() -> None:
    with pytest.warns(UserWarning, match="Gradients will be None"):
        stator.compile(reentrant_sequence, backend="eager")(torch.ones(3))


# -- selective --------------------------------------------------------------------------------------------------------

mm = torch.ops.aten.mm.default


def policy(context: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
    return CheckpointPolicy.MUST_SAVE if operator is mm else CheckpointPolicy.PREFER_RECOMPUTE


def by_size(context: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
    return operator is mm and args[0].shape[0] > 1


def selective(contexts: Any) -> Any:
    def build() -> Any:
        weight = torch.eye(3).requires_grad_()

        def program(x: Any) -> Any:
            return checkpoint(lambda a: (a @ weight).sin(), x.expand(2, 3), use_reentrant=False, context_fn=contexts)

        return program, [weight]

    return build


policies = [
    functools.partial(create_selective_checkpoint_contexts, policy),
    functools.partial(create_selective_checkpoint_contexts, by_size),
    lambda: create_selective_checkpoint_contexts([mm]),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("contexts", policies)
def test_a_selective_checkpoint(contexts: Any, backend: str) -> None:
    alike(selective(contexts), lambda n: (torch.linspace(0, 1, 3, requires_grad=True),), backend=backend, breaks=0)


@pytest.mark.parametrize("contexts", policies)
def test_what_the_policy_says_is_on_the_nodes(contexts: Any) -> None:
    seen = {}

    def backend(gm: Any, inputs: Any) -> Any:
        seen.update({node.name: node.meta["recompute"].name for node in gm.graph.nodes if "recompute" in node.meta})
        return gm.forward

    program, _ = selective(contexts)()
    stator.compile(program, backend=backend)(torch.ones(3, requires_grad=True))
    assert seen == {"matmul": "MUST_SAVE", "sin": "PREFER_RECOMPUTE"}


def test_a_policy_that_acts_is_left_to_python() -> None:
    asked = []

    def build() -> Any:
        def counting(context: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
            asked.append(operator)
            return False

        return selective(functools.partial(create_selective_checkpoint_contexts, counting))()

    alike(build, lambda n: (torch.linspace(0, 1, 3, requires_grad=True),), sizes=(3,), calls=1)
    assert len(asked) > 2 and asked[: len(asked) // 2] == asked[len(asked) // 2 :]


def test_other_contexts_are_left_to_python() -> None:
    alike(
        selective(lambda: (contextlib.nullcontext(), contextlib.nullcontext())), lambda n: (torch.ones(3),), sizes=(3,)
    )


@pytest.mark.skipif(not internals.checkpoint_impl(), reason="a decorator since torch 2.14")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_decorated_function(backend: str) -> None:
    @checkpoint(use_reentrant=False)
    def layer(x: Any, scale: int = 2) -> Any:
        return x.sin() * scale

    alike(lambda: (lambda x: layer(x, scale=3), []), backend=backend, breaks=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_checkpoint_that_hooks_of_a_module_begin(backend: str) -> None:
    from torch.distributed._composable import checkpoint as by_hooks

    def build() -> Any:
        torch.manual_seed(0)
        block = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
        by_hooks(block)
        return (lambda x: block(x * 2).sin()), list(block.parameters())

    alike(build, backend=backend, tolerance=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_checkpoint_around_a_compiled_function(backend: str) -> None:
    def build() -> Any:
        layer = nn.Linear(3, 3)
        compiled = stator.compile(lambda x: layer(x).relu(), backend=backend, fullgraph=True)
        return torch.compiler.disable(lambda x: checkpoint(compiled, x, use_reentrant=False)), list(layer.parameters())

    alike(build, backend=backend, tolerance=1e-6)
