"""`capture_branches`: a branch on a tensor whose sides only compute is one `torch.cond`, up to where they meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import stator
from tests.pytorch.gradients import BACKENDS, alike

backends = pytest.mark.parametrize("backend", BACKENDS)


@pytest.fixture(autouse=True)
def _captured() -> Iterator[None]:
    with stator.config.patch(capture_branches=True):
        yield


def program(make: Callable[..., Any]) -> Any:
    """Builds a program of a tensor with a history, and of a weight, a leaf whose gradient is compared."""

    def built() -> Any:
        w = torch.full((), 0.5, requires_grad=True)
        return lambda x: make(x * 1, w), [w]

    return built


def signed(n: int) -> tuple[torch.Tensor, ...]:
    """Arguments that take one side at 3 and at 2, and the other at 5."""
    return (torch.linspace(0.5, 1.5, n).mul(-1 if n == 5 else 1).requires_grad_(),)


def assigned(x: Any, w: Any) -> Any:
    h = x * w
    if h.sum() > 0:
        scale = h * 2
        h = scale + w
    else:
        h = h - w
    return h + 1


def returned(x: Any, w: Any) -> Any:
    if x.sum() > 0:
        return x * w, {"sum": x.sum()}["sum"]
    y = x + 1
    return y * w, y.sum()


def left_as_it_is(x: Any, w: Any) -> Any:
    h = x * w
    if h.abs().max() > 0.5:
        h = h / 2
    h += 1  # of the only name that it has
    return h * x


def with_the_old_one(x: Any, w: Any) -> Any:
    h = x * w
    y = h
    if h.sum() > 0:
        y = y * 2
    return y.sin() + h


def views(x: Any, w: Any) -> Any:
    h = x * w
    part = h[:1] if h.sum() > 0 else h[1:2]
    return part * 2 + h


def in_loops(x: Any, w: Any) -> Any:
    rounds = []
    for i in range(2):
        x = x * w
        rounds.append(x)
        if x.max() > 0.3:
            x = x - 0.1 * w
            if i == 1:
                continue
        x = x + w
    return torch.stack(rounds)


def in_calls(x: Any, w: Any) -> Any:
    def pick(t: Any) -> Any:
        if t.sum() > 0:
            return t.sin()
        return t.cos()

    return pick(x * w) + pick(w - x)


def nested(x: Any, w: Any) -> Any:
    if x.sum() > 0 and w.item() < 2:
        y = x * w
    else:
        y = x / w
    return y * w


def handled(x: Any, w: Any) -> Any:
    try:
        if x.sum() > 0:
            raise ValueError
        y = x * w
    except ValueError:
        y = x - w
    return y


def random(x: Any, w: Any) -> Any:
    y = x * w + torch.rand(3) if x.sum() > 0 else x * w - torch.rand(2, 3)[1]
    return y + torch.rand(())


CAPTURED: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (assigned, returned, left_as_it_is, with_the_old_one, views, in_loops, in_calls, nested, handled)
}


@backends
@pytest.mark.parametrize("name", CAPTURED)
def test_both_sides_are_in_the_graph(name: str, backend: str) -> None:
    alike(program(CAPTURED[name]), signed, backend=backend, calls=1, breaks=0, tolerance=1e-6)


@backends
def test_only_the_side_that_is_taken_draws(backend: str) -> None:
    for sign in (1, -1):
        inputs = lambda n, sign=sign: (torch.full((n,), 1.0 * sign),)  # noqa: E731
        alike(lambda: (lambda x: random(x, 2), []), inputs, backend=backend, sizes=(3,), breaks=0, tolerance=1e-6)


def test_compiled_by_inductor() -> None:
    alike(program(assigned), signed, backend="inductor", sizes=(3, 5), calls=1, breaks=0, tolerance=1e-5)


def test_one_entry_is_for_both_sides() -> None:
    compiled = stator.compile(assigned, backend="eager", fullgraph=True)
    w = torch.ones(())
    for x in (torch.ones(3), -torch.ones(3)):
        assert torch.equal(compiled(x, w), assigned(x, w))
    assert stator.stats().graphs == 1


def test_without_the_option_it_breaks() -> None:
    with stator.config.patch(capture_branches=False):
        stats = alike(program(assigned), signed, sizes=(3, 5), calls=1)
    assert {b.reason for b in stats.breaks} == {"a branch depends on the value of a tensor"}


class _Seen:
    items: list[Any] = []


def appends(x: Any, w: Any) -> Any:
    if x.sum() > 0:
        _Seen.items.append(1)
    return x * w


def prints(x: Any, w: Any) -> Any:
    if x.sum() > 0:
        print("positive")
    return x * w


def writes(x: Any, w: Any) -> Any:
    if x.sum() > 0:
        x.mul_(2)
    return x * w


def marks(x: Any, w: Any) -> Any:
    if x.sum() > 0:
        x.seen = 1
    return x * w, getattr(x, "seen", 0)


def hooks(x: Any, w: Any) -> Any:
    y = x * w
    if x.sum() > 0:
        y.register_hook(lambda g: g * 2)
    return y * 2


def in_a_cell(x: Any, w: Any) -> Any:
    y = x * w
    later = lambda: y + 1  # noqa: E731
    if x.sum() > 0:
        y = y * 2
    return later()


def leaves_a_loop(x: Any, w: Any) -> Any:
    for _ in range(3):
        if x.sum() > 0:
            break
        x = x + w
    return x * w


def goes_round(x: Any, w: Any) -> Any:
    while x.sum() > 0:
        x = x - w
    return x * w


def raises(x: Any, w: Any) -> Any:
    if x.sum() > 0:
        y = x * w[None][3]
    else:
        y = x * w
    return y


def breaks(x: Any, w: Any) -> Any:
    if x.sum() > 0:
        stator.graph_break()
    return x * w


def other_shapes(x: Any, w: Any) -> Any:
    return x * w if x.sum() > 0 else x.sum() * w


def other_kinds(x: Any, w: Any) -> Any:
    return x * w * (2.0 if x.sum() > 0 else 3.0)


def other_names(x: Any, w: Any) -> Any:
    if x.sum() > 0:
        y = x * w
    else:
        z = x
    return (y if x.sum() > 0 else z) * w


def other_gradients(x: Any, w: Any) -> Any:
    y = x.detach() if x.sum() > 0 else x
    return y * w, y.requires_grad


def leaves_no_grad(x: Any, w: Any) -> Any:
    with torch.no_grad():
        if x.sum() > 0:
            return x * w
        y = x - w
    return y * w


def written_later(x: Any, w: Any) -> Any:
    h = x * w
    old = h
    if h.sum() > 0:
        h = h / 2
    h += 1
    return h * old


def old_written_later(x: Any, w: Any) -> Any:
    h = x * w
    y = h * 2 if h.sum() > 0 else h
    h += 1
    return y.sin() + h


def same_object(x: Any, w: Any) -> Any:
    h = x * w
    old = h
    if h.sum() > 0:
        h = h / 2
    return x * (2 if h is old else 3) * h.sum()


def both_given(x: Any, w: Any) -> Any:
    h = x * w
    return h, h * 2 if h.sum() > 0 else h


LEFT: dict[Callable[..., Any], str] = {
    appends: "its true side changes objects that exist outside of it",
    prints: "its true side changes objects",
    writes: "its true side writes to a tensor that exists outside of it",
    marks: "its true side changes objects",
    hooks: "its true side changes objects",
    in_a_cell: "its true side changes objects",
    leaves_a_loop: "it is the condition of a loop, or leaves one",
    goes_round: "it is the condition of a loop",
    raises: "its true side raises IndexError",
    breaks: "one side breaks: ",
    other_shapes: "its value is a tensor of shape ",
    other_kinds: "its value is 2.0 on one side and 3.0 on the other",
    other_names: "only one side gives `y` a value",
    other_gradients: "its value is a tensor of requires_grad False on one side and True on the other",
    random: "its true side draws random numbers, which the backward pass would draw again",
    leaves_no_grad: "its true side leaves the grad mode, or other global state, changed",
    written_later: "which is written to later",
    old_written_later: "which is written to later",
    same_object: "given on",
    both_given: "exists elsewhere and is given on",
}


@pytest.mark.parametrize("function", LEFT, ids=lambda function: str(function.__name__))
def test_what_is_left_to_python_says_why(function: Callable[..., Any]) -> None:
    stats = alike(program(function), signed, backend="aot_eager", sizes=(3, 5), calls=1, tolerance=1e-6)
    assert stats.graph_breaks and any(LEFT[function] in b.reason for b in stats.breaks), [
        b.reason for b in stats.breaks
    ]


def test_an_argument_is_not_copied_for_who_has_it() -> None:
    def function(x: Any) -> Any:
        if x.sum() > 0:
            x = x * 2
        return x

    compiled = stator.compile(function, backend="eager")
    for x in (torch.ones(3), -torch.ones(3)):
        assert (compiled(x) is x) is (function(x) is x)
    assert "given on" in stator.stats().breaks[0].reason


def test_branches_inside_of_branches_end() -> None:
    def function(x: Any) -> Any:
        return function(x - 1) if x.sum() > 0 else x * 2

    x = torch.full((3,), 2.0)
    assert torch.equal(stator.compile(function, backend="eager")(x), function(x))
    assert any("inside of 8 others" in b.reason for b in stator.stats().breaks)
