"""`"%.3f" % loss`, in a program or a call of logging: made of the number when the graph has run, and no break."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator

BEGUN = time.perf_counter()
LOGGER = logging.Logger("tests.percent", logging.INFO)


def step(w: torch.Tensor, x: torch.Tensor) -> Any:
    loss = (w * x).sum()
    LOGGER.info("loss %.3f", loss)
    LOGGER.info("%(loss)8.3f of %(count)d", {"loss": loss, "count": (x > 1).sum()})
    LOGGER.info("%s: %d, %+.2e and %*.*f of %s", "all", loss, loss.item(), 8, 2, w.norm(), loss.detach())
    loss.backward()  # type: ignore[no-untyped-call]
    print("norm %.2f" % torch.nn.utils.clip_grad_norm_([w], 0.5))  # noqa: UP031
    return loss.detach() * 2


def texts(w: torch.Tensor, x: torch.Tensor) -> Any:
    """Of all that can be converted: numbers of torch's and NumPy's, conditions, more than 64 bits."""
    above = x > 1
    of_ints = "%d %i %x %#o %.1f" % ((above.sum(),) * 5)  # noqa: UP031
    of_floats = "%d %g %E %5d" % (*[x.double().mean()] * 3, x[:1].item())  # noqa: UP031
    of_others = "%d %.1f" % (above.any(), above.all())  # noqa: UP031
    of_limits = "%.2f %.3g %d" % (x.sum() / 0, x.sum() * float("nan"), x.sum() * 1e30)  # noqa: UP031
    of_arrays = "%.3f %d" % (x.numpy().mean(), x.numpy().argmax())  # noqa: UP031
    return of_ints, of_floats, of_others, of_limits, of_arrays


def known_later(w: torch.Tensor, x: torch.Tensor) -> Any:
    total = x.sum().item()
    return "%.0f s, %.1f" % ((time.perf_counter() - BEGUN) / 1e9, total)  # noqa: UP031


def outcomes(function: Callable[..., Any], capfd: pytest.CaptureFixture[str]) -> list[Any]:
    found = []
    for size in (3, 4, 6):
        w = torch.ones(size, requires_grad=True)
        found += [function(w, torch.arange(size) + 0.25), w.grad]
    return [*found, capfd.readouterr().out]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", [step, texts, known_later])
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
def test_no_break_for_a_number_that_is_shown(
    program: Callable[..., Any], backend: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOGGER, "handlers", [logging.StreamHandler(sys.stdout)])
    expected = outcomes(program, capfd)
    found = outcomes(stator.compile(program, backend=backend, fullgraph=True), capfd)
    assert repr(found) == repr(expected)


def failing(template: str, x: Any) -> str:
    try:
        return template % x
    except (TypeError, ValueError, OverflowError) as e:
        return repr(e)


class Measure:
    """What is converted by its methods, wrongly."""

    def __float__(self) -> float:
        return 3

    def __int__(self) -> int:
        raise TypeError("no number")

    def __index__(self) -> int:
        raise ValueError("no index")


@pytest.mark.parametrize("template", ["%f", "%d", "%x"])
def test_what_cannot_be_converted_fails_as_in_python(template: str) -> None:
    for operand in (torch.tensor(2.5), Measure()):
        compiled = stator.compile(failing, backend="eager")
        assert compiled(template, operand) == failing(template, operand)


def test_a_number_that_is_no_int_fails_after_the_graph() -> None:
    def shows(x: torch.Tensor) -> str:
        return "%d" % (x / 0)  # noqa: UP031

    for backend in ("eager", "aot_eager"):
        with pytest.raises(OverflowError, match="cannot convert float infinity to integer"):
            stator.compile(shows, backend=backend)(torch.tensor(1.0))
