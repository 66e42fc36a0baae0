"""Values and gradients shown by a compiled program: the text and order of eager execution, and no graph break."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import pytest
import torch

import stator

BACKENDS = ["eager", "aot_eager"]
LOGGER = logging.Logger("tests.debug_prints", logging.INFO)


def shows(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    stator.print("y {} first {:.3f} of {n}", y, y[0], n=y.shape[0])
    print("between")
    stator.print("{}", [1, "two"])
    y = y.detach().add_(1) + y
    stator.print("then {y}", y=y)
    return y.sum()


def logs_results(x: torch.Tensor) -> torch.Tensor:
    y, other = x * 3, x.cos()
    z = y.exp()
    stator.debug_grad_log(x, y, z, other)
    if sum(y.shape) % 2:
        return uses_one(y.sum(), z)
    return z.sum() + other.sum()


@stator.disable
def uses_one(y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return y + z.detach().sum()


def logs_gradients(x: torch.Tensor) -> torch.Tensor:
    y = x * 3
    z = y.sin() + x.shape[0]
    stator.debug_grad_log(y, z)
    return (z * y).sum()


def outcome(
    function: Callable[[torch.Tensor], torch.Tensor], sizes: list[int], capfd: pytest.CaptureFixture[str]
) -> tuple[list[torch.Tensor], str]:
    """Results, gradients, and what is printed."""
    found = []
    for size in sizes:
        x = torch.arange(1.0, size + 1).requires_grad_()
        loss = function(x)
        loss.backward()  # type: ignore[no-untyped-call]
        assert x.grad is not None
        found += [loss.detach(), x.grad]
    return found, capfd.readouterr().out


def check(
    function: Callable[[torch.Tensor], torch.Tensor],
    backend: str,
    capfd: pytest.CaptureFixture[str],
    fullgraph: bool = True,
) -> str:
    sizes = [3, 3, 4, 5]
    expected, text = outcome(function, sizes, capfd)
    found, shown = outcome(stator.compile(function, backend=backend, fullgraph=fullgraph), sizes, capfd)
    torch.testing.assert_close(found, expected)
    assert shown == text
    return text


@pytest.mark.parametrize("backend", BACKENDS)
def test_print(backend: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = check(shows, backend, capfd)
    assert text.startswith(
        "y tensor([2., 4., 6.]) first 2.000 of 3\nbetween\n[1, 'two']\nthen tensor([ 6., 10., 14.])\n"
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients(backend: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = check(logs_gradients, backend, capfd, fullgraph=True)
    assert text.count("[backward] t0_grad_norm=") == 4 == text.count("[backward] t1_grad_norm=")


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_of_results_and_arguments(backend: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = check(logs_results, backend, capfd, fullgraph=False)
    assert text.count("t0_grad_norm=") == text.count("t1_grad_norm=") == 4
    assert text.count("t2_grad_norm=") == text.count("t3_grad_norm=") == 1


def test_with_inductor(capfd: pytest.CaptureFixture[str]) -> None:
    check(shows, "inductor", capfd)
    check(logs_gradients, "inductor", capfd, fullgraph=False)


@pytest.mark.parametrize("backend", BACKENDS)
def test_installed_in_a_module(backend: str, capfd: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    x = torch.ones(2, 2)
    compiled = stator.compile(model, backend=backend, fullgraph=True)
    with stator.install_debug_prints(model):
        model(x).sum().backward()
        text = capfd.readouterr().out
        compiled(x).sum().backward()
        assert capfd.readouterr().out == text
    lines = [line.partition(":")[0] for line in text.splitlines() if line[0] != " "]
    assert lines == ["0", "1", "Sequential"]
    compiled(x)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("backend", BACKENDS)
def test_installed_with_gradients(backend: str, capfd: pytest.CaptureFixture[str]) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    x = torch.ones(2, 2)
    prints = stator.install_debug_prints(model, gradients=True)
    model(x).sum().backward()
    text = capfd.readouterr().out
    stator.compile(model, backend=backend, fullgraph=True)(x).sum().backward()
    assert capfd.readouterr().out == text and "[backward] 0_grad_norm=" in text
    assert "[backward] Sequential_grad_norm=" in text
    prints.remove()
    model(x).sum().backward()
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_was_printed_before_the_graph_raises_is_printed(backend: str, capfd: pytest.CaptureFixture[str]) -> None:
    def raises(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        stator.print("before {}", x)
        x = x[index]
        stator.print("behind {}", x)
        return x

    for function in (raises, stator.compile(raises, backend=backend, fullgraph=True)):
        for value in (1, 7):
            index = torch.tensor([value])
            try:
                function(torch.ones(3), index)
            except IndexError:
                print("raised")
    out = capfd.readouterr().out
    half = len(out) // 2
    assert out[:half] == out[half:] and out.startswith("before tensor([1., 1., 1.])\nbehind tensor([1.])\nbefore")


@pytest.mark.parametrize("backend", BACKENDS)
def test_tensors_are_logged_with_their_value_of_then_and_in_order(
    backend: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def logs(x: torch.Tensor) -> torch.Tensor:
        LOGGER.warning("at first %s of %s", x, x.shape[0])
        print("between")
        x.mul_(2)
        LOGGER.warning(f"sum {x.sum():.2f} 100%")
        LOGGER.debug("not shown %s", x)
        LOGGER.warning("%(value)s", {"value": x})
        return x + 1

    handler = logging.StreamHandler(sys.__stdout__)
    LOGGER.addHandler(handler)
    try:
        compiled = stator.compile(logs, backend=backend, fullgraph=True)
        for size in (2, 3, 4):
            expected, text = logs(torch.ones(size)), capfd.readouterr().out
            assert torch.equal(compiled(torch.ones(size)), expected)
            assert capfd.readouterr().out == text
        assert text.splitlines() == [
            "at first tensor([1., 1., 1., 1.]) of 4",
            "between",
            "sum 8.00 100%",
            "tensor([2., 2., 2., 2.])",
        ]
    finally:
        LOGGER.removeHandler(handler)
