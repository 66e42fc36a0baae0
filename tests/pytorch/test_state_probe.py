"""The probe of torch's global state notices each part of it, on the thread that asks."""

from __future__ import annotations

import contextlib
import threading

import pytest

torch = pytest.importorskip("torch")

from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from stator import _core  # noqa: E402
from stator.guards.guard import GlobalState  # noqa: E402
from stator.guards.program import compile_guards  # noqa: E402
from stator.pytorch.state.state_probe import state_probe  # noqa: E402

pytestmark = pytest.mark.needs_torch


@contextlib.contextmanager
def set_and_back(setter, value, before):
    setter(value)
    try:
        yield
    finally:
        setter(before)


@contextlib.contextmanager
def inside_vmap():
    level = torch._C._functorch._vmap_increment_nesting(2, "error")
    assert level
    try:
        yield
    finally:
        torch._C._functorch._vmap_decrement_nesting()


CHANGES = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "autocast of another device": lambda: set_and_back(lambda on: torch.set_autocast_enabled("cuda", on), True, False),
    "autocast dtype": lambda: set_and_back(
        lambda dtype: torch.set_autocast_dtype("cpu", dtype), torch.float16, torch.bfloat16
    ),
    "autocast cache": lambda: set_and_back(torch.set_autocast_cache_enabled, False, True),
    "default dtype": lambda: set_and_back(torch.set_default_dtype, torch.float64, torch.float32),
    "deterministic": lambda: set_and_back(torch.use_deterministic_algorithms, True, False),
    "threads": lambda: set_and_back(torch.set_num_threads, torch.get_num_threads() + 1, torch.get_num_threads()),
    "TorchFunctionMode": TorchFunctionMode,
    "TorchDispatchMode": TorchDispatchMode,
    "no torch function for subclasses": torch._C.DisableTorchFunctionSubclass,
    "no torch function": torch._C.DisableTorchFunction,
    "vmap": inside_vmap,
    "default device": lambda: torch.device("meta"),
    "multithreading": lambda: torch.autograd.set_multithreading_enabled(False),
}
CUDA_CHANGES = {
    "tf32": lambda: set_and_back(
        lambda on: setattr(torch.backends.cuda.matmul, "allow_tf32", on), True, torch.backends.cuda.matmul.allow_tf32
    ),
}


if torch.backends.cuda.is_built():
    CHANGES |= CUDA_CHANGES


@pytest.fixture
def program():
    probe = state_probe()
    assert isinstance(probe, _core.Probe)
    return compile_guards([GlobalState(probe, "the state")])


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_each_part_is_noticed(change, program):
    assert program.check(None, ())
    with change():
        assert not program.check(None, ())
        assert state_probe() is not program.guards[0].fn
    assert program.check(None, ())


def test_warn_only_is_noticed(program):
    torch.use_deterministic_algorithms(True)
    try:
        strict = state_probe()
        torch.use_deterministic_algorithms(True, warn_only=True)
        assert not strict()
    finally:
        torch.use_deterministic_algorithms(False)
    assert program.check(None, ())


def test_equal_states_have_one_probe():
    assert state_probe() is state_probe()
    with torch.no_grad():
        assert state_probe() is not first_of_all()


def first_of_all():
    with torch.enable_grad():
        return state_probe()


def test_threads_have_their_own_state(program):
    outcomes = []

    def work():
        outcomes.append(program.check(None, ()))
        with torch.no_grad():
            outcomes.append(program.check(None, ()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert outcomes == [True, False]
    with torch.no_grad():
        other = threading.Thread(target=work)
        other.start()
        other.join()
    assert outcomes == [True, False] * 2


def test_malformed_questions():
    for bad in [(5,), ((1, 2),), (("a", 1, 2),)]:
        with pytest.raises(TypeError):
            _core.Probe(bad)
