"""Branches that lead to an error: assumed not to be taken, and checked.

PYTEST_DONT_REWRITE: what pytest makes of an assert is another program.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

import stator
from tests.tensors.programs import agree


def validated(x: Any, *rest: Any, low: float = 0.0, **options: Any) -> Any:
    if (x < low).any():
        raise ValueError(f"values below {low}")
    assert x.isfinite().all(), "not finite"
    y = F.dropout(x, 0.5) + len(rest) + len(options)
    if not y.isfinite().all():
        raise ValueError(f"bad {y}")
    return y * 2


def run(x: Any) -> Any:
    return validated(x, 1, 2, low=0.5, extra=3)


@pytest.mark.parametrize("values", [[1.0, 2.0], [0.1, 2.0], [1.0, float("inf")], [1.0, float("nan")]])
def test_checks_hold_or_raise(values: list[float]) -> None:
    agree(lambda: (run, (torch.tensor(values),)), graphs=1, calls=3)
    agree(lambda: (validated, (torch.tensor(values), 5)), graphs=1, calls=3)


def test_failure_after_success() -> None:
    compiled = stator.compile(run, backend="eager", fullgraph=True)
    for values in ([1.0, 2.0], [0.0, 1.0], [3.0, 3.0]):
        x = torch.tensor(values)
        torch.manual_seed(0)
        expected, got = None, None
        try:
            expected = run(x)
        except ValueError as e:
            expected = str(e)
        state = torch.get_rng_state()
        torch.manual_seed(0)
        try:
            got = compiled(x)
        except ValueError as e:
            got = str(e)
        assert str(expected) == str(got)
        assert torch.equal(torch.get_rng_state(), state)
    assert stator.stats().frames == 1


def test_error_of_the_graph_itself() -> None:
    def sample(weights: Any) -> Any:
        if (weights < 0).any():
            raise ValueError("negative")
        return torch.multinomial(weights, 1)

    agree(lambda: (sample, (torch.tensor([0.2, 0.8]),)), calls=3)
    agree(lambda: (sample, (torch.tensor([-0.2, 0.8]),)), calls=3)


def test_effects_come_after_the_checks() -> None:
    seen: list[int] = []

    def act(x: Any) -> Any:
        seen.append(1)
        if x.sum() < 0:
            raise ValueError("negative")
        seen.append(2)
        return x + 1

    def make() -> Any:
        seen.clear()
        return (lambda x: (act(x), list(seen)), (torch.ones(3),))

    agree(make)
    compiled = stator.compile(act, backend="eager")
    for fn in (act, compiled):
        seen.clear()
        with pytest.raises(ValueError, match="negative"):
            fn(-torch.ones(3))
        assert seen == [1]


def test_written_inputs_are_not_written_twice() -> None:
    def write(x: Any) -> Any:
        if (x < 0).any():
            raise ValueError("negative")
        x.add_(1)
        return x

    agree(lambda: (write, (torch.ones(3),)), breaks=1, calls=3)
    agree(lambda: (write, (-torch.ones(3),)), breaks=None, calls=3)

    def write_first(x: Any) -> Any:
        x.add_(1)
        assert (x > 0).all()
        return x

    agree(lambda: (write_first, (torch.ones(3),)), breaks=1, calls=3)


def test_caught_error() -> None:
    def caught(x: Any) -> Any:
        try:
            assert (x > 0).all()
        except AssertionError:
            return x - 1
        return x + 1

    for values in ([1.0], [-1.0]):
        agree(lambda values=values: (caught, (torch.tensor(values),)))


def test_tensors_of_several_elements() -> None:
    def wrong(x: Any) -> Any:
        if x:
            raise ValueError
        return x

    agree(lambda: (wrong, (torch.ones(2),)), breaks=None)


def test_distributions() -> None:
    def elbo(mean: Any, spread: Any) -> Any:
        q = torch.distributions.Normal(mean, spread)
        z = q.rsample()
        prior = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
        return torch.distributions.kl_divergence(q, prior).sum() + q.log_prob(z).sum()

    agree(lambda: (elbo, (torch.randn(3), torch.rand(3))))
    agree(lambda: (elbo, (torch.randn(3), -torch.rand(3))))


def test_a_loop_until_a_tensor_says_so_breaks_once_a_round() -> None:
    def until(x: Any) -> Any:
        done = False
        while not done:
            x = x + 1
            done = bool(x.sum() > 10)
        return x

    for backend in ("eager", "aot_eager"):
        stator.reset()
        assert torch.equal(stator.compile(until, backend=backend)(torch.ones(2)), until(torch.ones(2)))
        assert {record.code for record in stator.stats().breaks} == {"SB0201"}
        assert stator.stats().graphs == 2
