"""Branches that lead to an error: assumed not to be taken, and checked.

PYTEST_DONT_REWRITE: what pytest makes of an assert is another program.
"""

from __future__ import annotations

import copy
import logging
import math
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
import torch
import torch.distributions as D
import torch.nn.functional as F

import stator
from tests.pytorch.programs import agree


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


def checked_before(x: Any) -> Any:
    if (x < 0).any():
        raise ValueError("negative")
    x.add_(1)
    return x


def checked_after(x: Any) -> Any:
    x.add_(1)
    assert (x > 0).all()
    return x * 2


def caught_between(x: Any) -> Any:
    x.mul_(2)
    try:
        assert (x > 0).all()
    except AssertionError:
        x.sub_(3)
    return x.add_(1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [checked_before, checked_after, caught_between])
def test_what_a_graph_writes_is_put_back(program: Any, backend: str) -> None:
    for size in (3, 5, 7):
        agree(lambda: (program, (torch.ones(size),)), breaks=0, graphs=1, calls=3, backend=backend)
        agree(lambda: (program, (torch.full((size,), -5.0),)), breaks=None, calls=3, backend=backend)


@pytest.mark.parametrize("program", [checked_before, checked_after])
def test_what_cannot_be_put_back_breaks(program: Any) -> None:
    def to_weights(x: Any, y: Any) -> Any:  # autograd knows of the write afterwards
        x.mul_(y)
        return program(x)

    def make(sign: int) -> Any:
        return to_weights, (sign * torch.ones(3), torch.ones(3, requires_grad=True))

    agree(lambda: make(1), breaks=1, calls=1)
    agree(lambda: make(-1), breaks=None, calls=1)
    with stator.config.patch(undo_limit=8):
        agree(lambda: (program, (torch.ones(3),)), breaks=1)
        agree(lambda: (program, (torch.full((3,), -5.0),)), breaks=None)


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


def _drawn(x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(0)
    return torch._standard_gamma(x.abs() + 1) * 2


def _enlarged(x: torch.Tensor) -> torch.Tensor:
    """Its kernel says that it is torch's bug."""
    return F.interpolate(x.expand(1, 1, -1, -1), scale_factor=1.5, mode="bicubic", antialias=True)


@pytest.mark.parametrize("function", [_drawn, _enlarged])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_operator_whose_backward_takes_no_symbols(
    function: Callable[[torch.Tensor], torch.Tensor], backend: str
) -> None:
    compiled = stator.compile(function, backend=backend)
    for size in (3, 5, 7):
        gradients = []
        for run in (function, compiled):
            x = torch.linspace(-1, 1, 4 * size).reshape(4, size).requires_grad_()
            run(x).sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients)


def test_distributions() -> None:
    def elbo(mean: Any, spread: Any) -> Any:
        q = torch.distributions.Normal(mean, spread)
        z = q.rsample()
        prior = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
        return torch.distributions.kl_divergence(q, prior).sum() + q.log_prob(z).sum()

    agree(lambda: (elbo, (torch.randn(3), torch.rand(3))))
    agree(lambda: (elbo, (torch.randn(3), -torch.rand(3))))


def covariance(x: Any) -> Any:
    return x.mT @ x + torch.eye(x.shape[-1])


DISTRIBUTIONS: dict[str, Any] = {
    "normal": lambda x: D.MultivariateNormal(x.sum(0), covariance_matrix=covariance(x)),
    "precision": lambda x: D.MultivariateNormal(x.sum(0), precision_matrix=covariance(x)),
    "wishart": lambda x: D.Wishart(torch.tensor(9.0), covariance_matrix=covariance(x)),
    "geometric": lambda x: D.Geometric(x.sigmoid()),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_made_inside(name: str, backend: str) -> None:
    def program(x: Any) -> Any:
        p = DISTRIBUTIONS[name](x)
        return p.entropy(), p.mean, D.kl_divergence(p, DISTRIBUTIONS[name](x * 1.1))

    for size in (3, 5) if backend == "eager" else (5,):  # each is compiled anew
        make = lambda size=size: (program, (torch.linspace(-1, 1, 4 * size).reshape(4, size).requires_grad_(),))  # noqa: E731
        agree(make, graphs=1, breaks=0, grad=True, backend=backend, rtol=1e-5)
        agree(lambda size=size: (program, (torch.full((4, size), float("nan")),)), breaks=None, backend=backend)


def test_distributions_made_inside_with_inductor() -> None:
    def program(x: Any) -> Any:
        p = DISTRIBUTIONS["normal"](x)
        return p.entropy(), p.log_prob(x[0])

    compiled = stator.compile(program, backend="inductor")
    for size in (3, 5, 7):
        grads = []
        for run in (program, compiled):
            x = torch.linspace(-1, 1, 4 * size).reshape(4, size).requires_grad_()
            sum(run(x)).backward()
            grads.append(x.grad)
        torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)
    assert stator.stats().graph_breaks == 0


def _policy_steps(wrap: Callable[[Any], Any], sizes: tuple[int, ...], optimizer: str, to_none: bool) -> list[Any]:
    """What is seen of a policy that is trained: of one size the states are bad, and the step raises."""
    torch.manual_seed(0)
    policy = torch.nn.Linear(4, 3)
    made = getattr(torch.optim, optimizer)(policy.parameters(), lr=0.1)

    def step(states: Any, actions: Any) -> Any:
        made.zero_grad(set_to_none=to_none)
        policy_now = D.Categorical(logits=policy(states))
        loss = -policy_now.log_prob(actions).mean() - 0.1 * policy_now.entropy().mean()
        loss.backward()
        made.step()
        return loss

    run, seen = wrap(step), list[Any]()
    for size in sizes:
        states = torch.randn(abs(size), 4) if size > 0 else torch.full((-size, 4), math.nan)
        try:
            seen.append(run(states, torch.arange(abs(size)) % 3).detach())
        except ValueError as e:
            seen.append(str(e))
        kept = [made.state[parameter] for parameter in policy.parameters() if parameter in made.state]
        gradients = [parameter.grad for parameter in policy.parameters()]
        weights = [parameter.detach() for parameter in policy.parameters()]
        seen.append(copy.deepcopy((weights, gradients, kept)))
    return seen


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(("optimizer", "to_none"), [("Adam", True), ("SGD", False)])
def test_a_step_of_training_that_checks_is_one_graph(optimizer: str, to_none: bool, backend: str) -> None:
    sizes = (5, 5, 5, -5, 6, -6, 7)
    expected = _policy_steps(lambda step: step, sizes, optimizer, to_none)
    stator.reset()
    got = _policy_steps(lambda step: stator.compile(step, backend=backend), sizes, optimizer, to_none)
    for have, want in zip(got, expected, strict=True):
        if isinstance(want, str):
            assert have == want
        else:
            torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-5)
    assert stator.stats().breaks == ()


# -- sides that warn, or return what has not passed: the program may go on from there ------------------


def symmetric(x: Any) -> Any:
    return torch.isclose(x, x.mT).all(-1)


def definite(x: Any) -> Any:
    fine = symmetric(x)
    if not fine.all():
        return fine
    return torch.linalg.cholesky_ex(x).info.eq(0)


def refused(x: Any) -> Any:
    if not definite(x).all():
        raise ValueError("not positive definite")
    return torch.linalg.cholesky(x) * 2


def looked_at(x: Any) -> Any:
    return torch.where(definite(x).all(), x + 1, x * 2)


def warned_of(x: Any) -> Any:
    if not torch.isclose(x, x.mT).all():
        warnings.warn("not symmetric", stacklevel=1)
        x = x + x.mT
    return torch.linalg.cholesky(x) * 2


def number_warned_of(x: Any) -> Any:
    if (x - x.mT).abs().max().item() > 0.5:
        warnings.warn("not symmetric", stacklevel=1)
    return x * 2


def fine_or_warned_of(x: Any) -> Any:
    if torch.isclose(x, x.mT).all():
        x = x * 2
    else:
        warnings.warn("not symmetric", stacklevel=1)
    return x + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [refused, looked_at, warned_of, number_warned_of, fine_or_warned_of])
def test_a_side_that_is_hardly_ever_taken(program: Any, backend: str) -> None:
    grad = program is not looked_at
    for size in (3, 5, 7):

        def make(lower: float, size: int = size) -> Any:
            return program, ((torch.eye(size) * 3 + torch.ones(size, size).tril(-1) * lower).requires_grad_(grad),)

        agree(lambda: make(0.0), graphs=1, breaks=0, calls=3, grad=grad, backend=backend, rtol=1e-6)
        agree(lambda: make(1.0), breaks=None, calls=5, grad=grad, backend=backend, rtol=1e-6)


def test_a_side_that_is_taken_often_breaks() -> None:
    compiled = stator.compile(warned_of, backend="eager")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for call in range(6):
            x = torch.tensor([[4.0, 0.0], [1.0 if call % 2 else 0.0, 4.0]])
            assert torch.equal(compiled(x), warned_of(x))
            assert stator.stats().graph_breaks == 0
        assert len(caught) == 6
        x = torch.tensor([[4.0, 0.0], [1.0, 4.0]])
        assert torch.equal(compiled(x), warned_of(x))
        assert {record.code for record in stator.stats().breaks} == {"SB0201"}
        assert len(caught) == 8


def test_a_logger_that_warns(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("checks")

    def program(x: Any) -> Any:
        if x.isnan().any():
            log.warning("there are NaNs")
        return x.nan_to_num()

    agree(lambda: (program, (torch.ones(3),)), graphs=1)
    agree(lambda: (program, (torch.tensor([1.0, float("nan")]),)), breaks=None)
    assert [record.message for record in caplog.records] == ["there are NaNs"] * 4


def test_what_is_waited_for_in_a_loop_is_no_early_return() -> None:
    def until(x: Any) -> Any:
        while True:
            done = x > 3
            if done.all():
                return done
            x = x + 1

    def deeper(x: Any) -> Any:
        done = x > 3
        if done.all():
            return done
        return deeper(x + 1)

    for program in (until, deeper):
        agree(lambda program=program: (program, (torch.ones(2),)), breaks=None)
        assert "SB0201" in {record.code for record in stator.stats().breaks}


def test_a_side_that_is_hardly_ever_taken_cannot_be_assumed_of_a_graph_that_cannot_be_undone() -> None:
    def program(x: Any, y: Any) -> Any:
        x.mul_(y)
        if not x.isfinite().all():
            warnings.warn("not finite", stacklevel=1)
        return x + 1

    def make(number: float) -> Any:
        return program, (torch.full((3,), number), torch.ones(3, requires_grad=True))

    agree(lambda: make(1.0), breaks=1, calls=1)
    agree(lambda: make(float("inf")), breaks=1, calls=1)


# -- truth values that are made before the branch, which may stand in a caller --------------------------


def positive(x: Any) -> bool:
    return bool((x > 0).all())


def not_positive(x: Any) -> bool:
    return not (x > 0).all()


class Positive:
    def __init__(self, x: Any) -> None:
        if not self.holds(x):
            raise ValueError(f"not positive: {x}")
        self.x = x

    def holds(self, x: Any) -> bool:
        return not not_positive(x) and positive(x)


def returned(x: Any) -> Any:
    if not positive(x):
        raise ValueError("not positive")
    return x * 2


def negated(x: Any) -> Any:
    assert not not_positive(x), "not positive"
    return x * 2


def at_once(x: Any) -> Any:
    if bool((x < 0).any()):
        raise ValueError("negative")
    return x * 2


def property_of(x: Any) -> Any:
    class Checked:
        @property
        def fine(self) -> bool:
            return positive(x)

    if not Checked().fine:
        raise ValueError("not positive")
    return x * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("program", [returned, negated, at_once, property_of])
def test_a_truth_value_that_goes_straight_to_the_branch(program: Any, sign: int, backend: str) -> None:
    for size in (3, 5, 7):
        agree(lambda: (program, (sign * torch.ones(size),)), graphs=1, calls=2, backend=backend)


@pytest.mark.parametrize("program", [returned, negated, at_once])
def test_its_gradients(program: Any) -> None:
    agree(lambda: (program, (torch.ones(3, requires_grad=True),)), graphs=1, breaks=0, grad=True)
    agree(lambda: (program, (-torch.ones(3, requires_grad=True),)), calls=2)


#: where the truth value is used otherwise than by one branch of which one side raises
KEPT: dict[str, Any] = {
    "variable": lambda x: (flag := positive(x), x + 1 if flag else x - 1),
    "result": lambda x: (positive(x), x * 2),
    "branch": lambda x: x + 1 if positive(x) else x - 1,
    "negated": lambda x: (not positive(x), x * 2),
    "map": lambda x: (list(map(positive, [x, x])), x * 2),
    "bools": lambda x: (list(map(bool, [(x > 0).all()])), x * 2),
    "key": lambda x: sorted([x, x], key=positive)[0] + 1,
    "and": lambda x: positive(x) and x,
    "object": lambda x: Positive(x).x + 1,
    "instance": lambda x: type("", (), {"__bool__": lambda self: positive(x)})() is None or x + 1,
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("use", KEPT)
def test_a_truth_value_that_is_kept(use: str, sign: int) -> None:
    agree(lambda: (KEPT[use], (sign * torch.ones(3),)), breaks=None, calls=2)


def test_what_is_written_after_it_is_not_written_twice() -> None:
    def write(x: Any) -> Any:
        if not positive(x):
            raise ValueError("not positive")
        x.add_(1)
        return x

    agree(lambda: (write, (torch.ones(3),)), breaks=0, calls=3)
    agree(lambda: (write, (-torch.ones(3),)), breaks=None, calls=3)


def test_of_several_elements_it_is_an_error() -> None:
    def program(x: Any) -> Any:
        if not bool(x > 0):
            raise ValueError
        return x

    agree(lambda: (program, (torch.ones(3),)), breaks=None)
    agree(lambda: (program, (torch.ones(1, 1),)))


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


# -- comparisons of two tensors as a whole ---------------------------------------------------------------------------


def close(x: Any, y: Any) -> Any:
    assert torch.allclose(x, y, atol=1e-3), "not close"
    return x * y


def equal(x: Any, y: Any) -> Any:
    if not torch.equal(x, y):
        raise ValueError("not equal")
    return x * y


def not_equal(x: Any, y: Any) -> Any:
    if x.equal(y):
        raise ValueError("equal")
    return x * y


def close_method(x: Any, y: Any) -> Any:
    if not x.allclose(y, equal_nan=True):
        warnings.warn("not close", stacklevel=1)
    return x * y


def kept(x: Any, y: Any) -> Any:
    return torch.equal(x, y), x.allclose(y), x * y


def branched(x: Any, y: Any) -> Any:
    return x * y if torch.equal(x, y) else x - y


COMPARING = {close: 0, equal: 0, not_equal: 0, close_method: 0, kept: 0, branched: None}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", COMPARING)
def test_comparisons_of_tensors(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for size in (3, 5, 7):
        for other in (1.0, 2.0, 1.00001, float("nan")):
            outcomes = []
            for run in (program, compiled):
                x = torch.ones(size, requires_grad=True)
                y = x.detach() if other == 1.0 else torch.full((size,), other)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    try:
                        result = run(x, y)
                        *flags, last = result if isinstance(result, tuple) else (result,)
                        last.sum().backward()
                        result = flags, last.detach()
                    except Exception as e:
                        result = (type(e), str(e))
                told = [str(warning.message) for warning in caught if "close" in str(warning.message)]
                outcomes.append((str(result), str(x.grad), told))
            assert outcomes[0] == outcomes[1], outcomes
    if COMPARING[program] == 0:
        # where it warns often, it breaks
        assert stator.stats().graph_breaks == 0 or program is close_method, stator.stats().breaks


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (torch.ones(3), torch.ones(4)),
        (torch.ones(3), torch.ones(3, dtype=torch.float64)),
        (torch.ones(3), torch.ones(4, dtype=torch.float64)),
        (torch.ones(3), torch.ones(3, 1)),
        (torch.ones(0), torch.ones(0)),
        (torch.full((2,), float("nan")), torch.full((2,), float("nan"))),
    ],
)
def test_comparisons_of_unlike_tensors(x: Any, y: Any) -> None:
    for program in (kept, equal, close):
        agree(lambda program=program: (lambda x, y: program(x, y)[:2], (x, y)), breaks=None)
        agree(lambda program=program: (lambda x: program(x, x)[:2], (x,)), breaks=None)


# -- truth values of several tensors, and sides that say something before they raise ---------------------------------


class Watch:
    def __init__(self) -> None:
        self.failed = False

    def check(self, x: Any) -> Any:
        if (x < 0).any():
            self.failed = True
            print("negative", x.min().item())
            raise ValueError("negative")
        return x * 2


def all_of(x: Any) -> Any:
    assert all((part > 0).all() for part in (x, x + 1)), "not positive"
    return x * 2


def none_of(x: Any) -> Any:
    if any([(x < -5).any(), x.isnan().any()]):
        raise ValueError("out of range")
    return x * 2


def kept_of_all(x: Any) -> Any:
    fine = all((part > 0).all() for part in (x, x + 1))
    return x * 2 if fine else x * 3


class Strict:
    """Its errors are raised by methods, of which some are reached only on some ways."""

    def fail(self, message: str) -> NoReturn:
        raise ValueError(message)

    def required(self, x: Any) -> Any:
        if (x > 0).all():
            return x * 2
        if x.ndim == 2:
            message = f"a row is not positive: {x.min().item()}"
        else:
            message = "not positive"
        self.fail(message)
        return None


def failed(message: str) -> NoReturn:
    raise ValueError(message)


def in_steps(x: Any) -> Any:
    if not (x > 0).all():
        failed("not positive" if x.ndim > 1 else "negative")
    return x * 2


def close_to_itself(x: Any) -> Any:
    torch.testing.assert_close(x.abs(), x)
    return x * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [all_of, none_of, Watch().check, Strict().required, in_steps, close_to_itself])
def test_several_tensors_and_a_side_that_tells(program: Any, backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    for size in (3, 5, 7):
        make = lambda value, size=size: (program, (torch.full((size,), value, requires_grad=True),))  # noqa: E731
        agree(lambda: make(1.0), graphs=1, breaks=0, grad=True, backend=backend, rtol=1e-6)
        capsys.readouterr()
        agree(lambda: make(-9.0), breaks=None, backend=backend)
        told = capsys.readouterr().out.splitlines()
        assert told == (["negative -9.0"] * 4 if program.__name__ == "check" else [])
        agree(lambda: make(float("nan")), breaks=None, backend=backend)


def test_comparisons_of_a_test_with_inductor() -> None:
    for size in (3, 5, 7):
        make = lambda value, size=size: (close_to_itself, (torch.full((size,), value),))  # noqa: E731
        agree(lambda: make(1.0), graphs=1, breaks=0, backend="inductor")
        agree(lambda: make(-9.0), breaks=None, backend="inductor")


def sometimes_raised(x: Any) -> Any:
    if (x > 0).all():
        if x.ndim == 2:
            raise ValueError("rows")
        x = x + 1
    return x * 2


def raised_in_a_loop(x: Any) -> Any:
    while True:
        if (x > 3).all():
            x = x - 1
            continue
        if (x < 0).all():
            raise ValueError("negative")
        return x


def kept_for_later(x: Any) -> Any:
    if (x > 0).all():
        tell: Any = failed
        x = x + 1
    else:
        tell = Strict().fail
    return x * 2, tell.__name__


@pytest.mark.parametrize("program", [sometimes_raised, raised_in_a_loop])
def test_a_side_of_which_a_way_goes_on_is_no_error(program: Any) -> None:
    for value in (1.0, -1.0, 9.0):
        agree(lambda value=value: (program, (torch.full((3,), value),)), breaks=None)


def test_a_function_that_raises_and_is_only_kept_is_no_error() -> None:
    compiled = stator.compile(kept_for_later, backend="eager")
    for value in (1.0, -1.0):
        x = torch.full((3,), value)
        y, name = compiled(x)
        assert (y.tolist(), name) == (kept_for_later(x)[0].tolist(), kept_for_later(x)[1])
    assert [b.code for b in stator.stats().breaks] == ["SB0201"]


def test_the_truth_of_several_tensors_that_decides_no_raise() -> None:
    for value in (1.0, -1.0):
        agree(lambda value=value: (kept_of_all, (torch.full((3,), value),)), breaks=None)


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("torch.equal", lambda x: x + 1 if torch.equal(x, x * 1) else x - 1),
        ("torch.allclose", lambda x: x + 1 if torch.allclose(x, x * 1) else x - 1),
        ("Tensor.equal", lambda x: x + 1 if x.equal(x * 1) else x - 1),
        ("Tensor.item", lambda x: x + 1 if x.sum().item() > 3 else x - 1),
    ],
)
def test_a_branch_is_told_by_the_name_of_what_the_program_has_called(name: str, program: Any) -> None:
    x = torch.ones(3)
    torch.testing.assert_close(stator.compile(program, backend="eager")(x), program(x))
    assert [f"a number from {name} depends" in b.reason for b in stator.stats().breaks] == [True]
