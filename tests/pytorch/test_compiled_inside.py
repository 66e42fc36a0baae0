"""`torch.compile(function)` in the traced program: a call of what it gives goes into the function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import stator
from tests.pytorch.gradients import BACKENDS, alike, vector


def scaled(x: Any, by: float = 2.0) -> Any:
    return x.sin() * by


class Layer(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        if not hasattr(self, "scaled"):
            self.scaled = torch.compile(scaled, backend="eager", dynamic=True)
        return self.scaled(x)

    def method(self, x: Any) -> Any:
        return x.cos()


def called_at_once(x: Any) -> Any:
    return torch.compile(scaled, backend="eager")(x, by=3.0) + torch.compile(model=scaled, backend="aot_eager")(x)


def decorated(x: Any) -> Any:
    @torch.compile(backend="eager", fullgraph=True)
    def within(y: Any) -> Any:
        return y * x

    return within(x + 1)


def a_method(x: Any) -> Any:
    return torch.compile(Layer().method, backend="aot_eager", dynamic=False)(x)


def by_stator(x: Any) -> Any:
    return stator.compile(scaled, backend="eager")(x)


def kept(x: Any) -> Any:
    compiled = torch.compile(scaled, backend="eager")
    kept.last = compiled  # type: ignore[attr-defined]
    return compiled(x)


@pytest.fixture(params=["torch's own", "routed"])
def routed(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "routed":
        stator.install()
    yield
    stator.uninstall()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [called_at_once, decorated, a_method, by_stator, kept])
def test_no_break_and_no_more_graphs(program: Any, backend: str) -> None:
    stats = alike(lambda: (program, []), vector, backend=backend, breaks=0)
    assert stats.graphs == 2  # one for the first size, one for all others


def test_what_is_kept_is_what_the_compiler_makes(routed: None) -> None:
    layer = Layer()
    compiled = stator.compile(lambda x: layer(x), backend="eager")
    x = torch.ones(3)
    for _ in range(2):
        assert torch.equal(compiled(x), scaled(x))
    assert type(layer.scaled) is type(torch.compile(scaled, backend="eager"))
    assert layer.scaled is not scaled
    assert torch.equal(layer.scaled(x), scaled(x))
    taker = stator.compile(lambda: torch.compile(backend="eager"), backend="eager")()
    assert torch.equal(taker(scaled)(x), scaled(x))


def test_what_is_asked_of_it_is_answered_as_by_the_compiler(routed: None) -> None:
    def program(x: Any) -> Any:
        compiled = torch.compile(scaled, backend="eager")
        return compiled(x), compiled.__name__, type(compiled), isinstance(compiled, torch.nn.Module), callable(compiled)

    got, want = stator.compile(program, backend="eager")(torch.ones(3)), program(torch.ones(3))
    assert torch.equal(got[0], want[0])
    assert got[1:] == want[1:]


@pytest.mark.parametrize("keywords", [{"backend": "no such backend"}, {"wrong": 1}])
def test_errors_are_the_compilers(keywords: Any, routed: None) -> None:
    def program(x: Any) -> Any:
        return torch.compile(scaled, **keywords)(x)

    with pytest.raises(Exception) as want:
        program(torch.ones(3))
    with pytest.raises(type(want.value)):
        stator.compile(program, backend="eager")(torch.ones(3))
