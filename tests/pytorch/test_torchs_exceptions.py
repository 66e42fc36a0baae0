"""Torch's exceptions catch Stator's counterparts, whenever torch's compiler is imported."""

import copy
import pickle
import textwrap

import pytest
import torch
import torch._dynamo.exc
from torch._dynamo import exc

import stator
from tests.pytorch.alone import run_alone


@pytest.fixture(autouse=True)
def fresh():
    stator.reset()
    yield
    stator.reset()


def broken(x):
    stator.graph_break()
    return x


def add_one(x):
    return x + 1


def failing(gm, examples):
    raise ValueError("no")


def recompile(**settings):
    compiled = stator.compile(add_one, backend="eager", **settings)
    compiled(torch.ones(2))
    compiled(torch.ones(2, 2))


CASES = {
    "Unsupported": (
        stator.GraphBreakError,
        lambda: stator.compile(broken, backend="eager", fullgraph=True)(torch.ones(2)),
    ),
    "BackendCompilerFailed": (stator.BackendError, lambda: stator.compile(add_one, backend=failing)(torch.ones(2))),
    "InvalidBackend": (stator.BackendError, lambda: stator.compile(add_one, backend="nope")),
    "FailOnRecompileLimitHit": (
        stator.errors.RecompileLimitError,
        lambda: recompile(recompile_limit=1, fullgraph=True),
    ),
    "RecompileError": (stator.errors.RecompileError, lambda: recompile(options={"error_on_recompile": True})),
}


@pytest.mark.parametrize("name", CASES)
def test_is_caught_as_torchs(name):
    own, act = CASES[name]
    with pytest.raises(getattr(exc, name)) as caught:
        act()
    error = caught.value
    assert isinstance(error, own) and isinstance(error, stator.StatorError)
    assert type(error).__qualname__ in {own.__qualname__, "UnknownBackendError"}
    assert str(error) and error.__traceback__ is not None


def test_what_handlers_ask_of_it():
    with pytest.raises(exc.Unsupported) as caught:
        CASES["Unsupported"][1]()
    assert "SB0301" in caught.value.msg and caught.value.real_stack and caught.value.gb_type == "SB0301"
    with pytest.raises(exc.BackendCompilerFailed) as caught:
        CASES["BackendCompilerFailed"][1]()
    assert isinstance(caught.value.inner_exception, ValueError) and caught.value.backend_name == "failing"
    assert caught.value.remove_dynamo_frames() is caught.value


@pytest.mark.parametrize("name", CASES)
def test_is_copied_and_pickled(name):
    own, act = CASES[name]
    with pytest.raises(own) as caught:
        act()
    for again in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert isinstance(again, getattr(exc, name)) and isinstance(again, own)
        assert str(again) == str(caught.value)


def test_counts_of_torchs_stay():
    before = dict(torch._dynamo.utils.counters["unimplemented"])
    with pytest.raises(exc.Unsupported):
        CASES["Unsupported"][1]()
    assert torch._dynamo.utils.counters["unimplemented"] == before


def test_torchs_are_imported_by_the_handler():
    program = """
        import sys, torch, stator
        def f(x):
            stator.graph_break()
            return x
        caught = None
        try:
            stator.compile(f, backend="eager", fullgraph=True)(torch.ones(2))
        except stator.GraphBreakError as error:
            caught = error
        assert type(caught) is stator.GraphBreakError
        assert "torch._dynamo.exc" not in sys.modules
        for _ in range(2):
            try:
                stator.compile(f, backend="eager", fullgraph=True)(torch.ones(2))
            except torch._dynamo.exc.Unsupported as error:
                assert isinstance(error, stator.GraphBreakError)
            else:
                raise AssertionError
        assert isinstance(caught, torch._dynamo.exc.Unsupported)
    """
    done = run_alone(textwrap.dedent(program))
    assert done.returncode == 0, done.stderr
