"""Switches of autograd that a program turns: anomaly detection, and whether tensors that are saved may meet hooks."""

import warnings

import pytest
import torch
from torch.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks

import stator
from tests.pytorch.training import BACKENDS, trains_alike


def switches():
    message = torch._C._autograd._saved_tensors_hooks_get_disabled_error_message()
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled(), message


@pytest.fixture(autouse=True)
def as_before():
    before = switches()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    assert switches() == before


def detecting(x):
    with torch.autograd.detect_anomaly(check_nan=False):
        y = (x * 2).sin()
        inside = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    return y, inside, torch.is_anomaly_enabled()


def nested(x):
    with torch.autograd.set_detect_anomaly(True):
        with torch.autograd.set_detect_anomaly(False):
            off = torch.is_anomaly_enabled()
        return x.exp(), off, torch.is_anomaly_enabled()


def raising(x):
    try:
        with torch.autograd.detect_anomaly():
            x = x * 2
            raise KeyError
    except KeyError:
        return x.sin(), torch.is_anomaly_enabled()


def without_hooks(x):
    with disable_saved_tensors_hooks("none here"):
        try:
            with saved_tensors_hooks(lambda t: t, lambda t: t):
                return x, "no error"
        except RuntimeError as error:
            return (x.sin() * x).exp(), str(error)


def without_hooks_twice(x):
    with disable_saved_tensors_hooks("outer"), disable_saved_tensors_hooks("inner"):
        return x.sin()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [detecting, nested, raising, without_hooks, without_hooks_twice])
def test_switches_are_turned_in_a_graph(function, backend):
    compiled = stator.compile(function, backend=backend, fullgraph=True)
    for size in (3, 3, 5):
        outcomes = []
        for run in (function, compiled):
            x = torch.arange(1.0, size + 1, requires_grad=True)
            out = run(x)
            out = out if isinstance(out, tuple) else (out,)
            out[0].sum().backward()
            outcomes.append((out[0].detach(), x.grad, out[1:]))
        torch.testing.assert_close(outcomes[1][:2], outcomes[0][:2])
        assert outcomes[1][2] == outcomes[0][2]


def test_a_switch_in_a_graph_with_inductor():
    x = torch.arange(3.0, requires_grad=True)
    stator.compile(detecting, backend="inductor", fullgraph=True)(x)[0].sum().backward()
    torch.testing.assert_close(x.grad, 2 * (2 * x.detach()).cos())


def test_a_switch_that_stays_turned_is_guarded():
    def on(x):
        was = torch.is_anomaly_enabled()
        torch.autograd.set_detect_anomaly(True)
        return x * 2, was

    compiled = stator.compile(on, backend="eager", fullgraph=True)
    x = torch.ones(2)
    with torch.autograd.set_detect_anomaly(False):  # puts back what was
        assert compiled(x)[1] is False
        assert torch.is_anomaly_enabled()
        assert compiled(x)[1] is True
    assert stator.stats().graphs == 2


def test_a_switch_is_carried_over_a_break():
    def broken(x):
        with torch.autograd.detect_anomaly():
            y = x.sin()
            stator.graph_break()
            return y * x, torch.is_anomaly_enabled()

    x = torch.arange(3.0, requires_grad=True)
    out, inside = stator.compile(broken, backend="eager")(x)
    assert inside
    out.sum().backward()
    torch.testing.assert_close(x.grad, (x.cos() * x + x.sin()).detach())


def _training(mode):
    def make():
        w = torch.ones(3, requires_grad=True)

        def step(x):
            w.grad = None
            with torch.autograd.set_detect_anomaly(mode):
                (x @ w).sin().sum().backward()
            return w.grad

        return step, [w]

    return make


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("outside", [False, True])
def test_backward_is_traced_where_nothing_looks_at_it(backend, outside):
    with torch.autograd.set_detect_anomaly(outside):
        trains_alike(_training(False), backend=backend, breaks=0)
        stats = trains_alike(_training(True), backend=backend, breaks=None)
        assert {b.code for b in stats.breaks} == {"SB0205"}


@pytest.mark.parametrize("backend", BACKENDS)
def test_anomalies_are_detected(backend):
    def broken(x):
        with torch.autograd.detect_anomaly():
            ((x * 0).sqrt() * 0).sum().backward()

    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="nan"):
        stator.compile(broken, backend=backend)(x)
