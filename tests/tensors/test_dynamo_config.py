"""`torch._dynamo.config`: every option is in the table, and what Stator says it honours it does."""

import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
import torch._dynamo.config as dynamo_config

import stator
from stator.controls import dynamo_config as reading
from stator.controls.page import CONTROLS
from stator.controls.table import HONOURED, IRRELEVANT, WARNED
from stator.report.controls import page

PAGE = Path(__file__).parents[2] / "docs" / "controls.md"


@pytest.fixture(autouse=True)
def fresh():
    stator.reset()
    yield
    stator.reset()


class Counted:
    """A backend that counts its graphs."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, gm, examples):
        self.graphs += 1
        return gm.forward


def add_one(x):
    return x + 1


def test_every_option_has_its_row():
    names = set(dynamo_config._config)
    rows = [set(HONOURED), set(WARNED), set(IRRELEVANT)]
    assert names <= set.union(*rows), "options of this torch that no table has"
    assert sum(map(len, rows)) == len(set.union(*rows)), "an option stands in two tables"


def test_the_defaults_are_torchs():
    for name, row in {**HONOURED, **WARNED}.items():
        if name in dynamo_config._config and not getattr(row, "variable", ""):
            assert getattr(dynamo_config, name) == row.default, name


def test_the_page_is_printed_from_the_tables():
    assert PAGE.read_text() == page() + "\n", "run `python -m stator.report.controls > docs/controls.md`"


def test_every_control_has_its_test():
    for control in CONTROLS:
        file, _, name = control.test.partition("::")
        assert f"\ndef {name}(" in (Path(__file__).parent / file).read_text(), control.test


@pytest.mark.parametrize("name", ["recompile_limit", "cache_size_limit"])
def test_recompile_limit(name):
    backend = Counted()
    compiled = stator.compile(lambda x, n: x + n, backend=backend)
    with dynamo_config.patch({name: 2}):
        for key in "abcd":
            compiled(torch.ones(2), torch.ones((1,) * (ord(key) - 96)))
    assert backend.graphs == 2


def test_what_the_call_has_set_itself_stays():
    backend = Counted()
    compiled = stator.compile(lambda x: x + 1, backend=backend, recompile_limit=3)
    with dynamo_config.patch(recompile_limit=1):
        for rank in range(4):
            compiled(torch.ones((1,) * rank))
    assert backend.graphs == 3


@pytest.mark.parametrize("name", ["accumulated_recompile_limit", "accumulated_cache_size_limit"])
def test_accumulated_recompile_limit(name):
    backends = Counted(), Counted()
    one, two = (stator.compile(add_one, backend=backend) for backend in backends)
    with dynamo_config.patch({name: 3}):
        for rank in range(4):
            one(torch.ones((1,) * rank))
            two(torch.ones((1,) * rank))
    assert sum(backend.graphs for backend in backends) == 3


@pytest.mark.parametrize("name", ["fail_on_recompile_limit_hit", "fail_on_cache_limit_hit"])
def test_fail_on_recompile_limit_hit(name):
    compiled = stator.compile(add_one, backend="eager", recompile_limit=1)
    compiled(torch.ones(1))
    with dynamo_config.patch({name: True}), pytest.raises(stator.errors.RecompileLimitError, match="add_one"):
        compiled(torch.ones(1, 1))


def test_error_on_recompile():
    compiled = stator.compile(add_one, backend="eager")
    compiled(torch.ones(1))
    with dynamo_config.patch(error_on_recompile=True):
        compiled(torch.ones(1))
        with pytest.raises(stator.errors.RecompileError, match="add_one"):
            compiled(torch.ones(1, 1))
    assert torch.equal(compiled(torch.ones(1, 1)), torch.full((1, 1), 2.0))


def test_suppress_errors():
    def broken(gm, examples):
        raise ValueError("no")

    def f(x):
        return torch.sin(x) + 1

    x = torch.ones(3)
    with pytest.raises(stator.errors.BackendError):
        stator.compile(f, backend=broken)(x)
    with dynamo_config.patch(suppress_errors=True):
        assert torch.equal(stator.compile(f, backend=broken)(x), f(x))
        with pytest.raises(stator.errors.BackendError):
            stator.compile(f, backend=broken, fullgraph=True)(x)


def test_disable():
    backend = Counted()
    compiled = stator.compile(add_one, backend=backend)
    with dynamo_config.patch(disable=True):
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
        assert backend.graphs == 0
    compiled(torch.ones(2))
    assert backend.graphs == 1


def test_automatic_dynamic_shapes():
    backend = Counted()
    compiled = stator.compile(add_one, backend=backend)
    with dynamo_config.patch(automatic_dynamic_shapes=False):
        for n in (2, 3, 4, 5):
            compiled(torch.ones(n))
    assert backend.graphs == 4


def test_assume_static_by_default():
    backend = Counted()
    compiled = stator.compile(add_one, backend=backend)
    with dynamo_config.patch(assume_static_by_default=False):
        for n in (2, 3, 4, 5):
            assert torch.equal(compiled(torch.ones(n)), torch.ones(n) + 1)
    assert backend.graphs == 1


@pytest.mark.parametrize(("name", "numbers"), [("specialize_int", (5, 6, 7)), ("specialize_float", (0.5, 0.6, 0.7))])
def test_specialisation_of_numbers(name, numbers):
    def graphs():
        backend = Counted()
        compiled = stator.compile(lambda x, n: x * n, backend=backend)
        for n in numbers:
            assert torch.equal(compiled(torch.ones(2), n), torch.ones(2) * n)
        return backend.graphs

    assert graphs() == 2
    with dynamo_config.patch({name: True}):
        assert graphs() == 3


def test_verbose():
    compiled = stator.compile(add_one, backend="eager")
    with dynamo_config.patch(verbose=True):
        assert compiled._stator_bucket.config.verbose
    assert not compiled._stator_bucket.config.verbose


def test_what_is_not_honoured_is_said_once(caplog):
    reading._said.clear()
    caplog.set_level(logging.WARNING, "stator")
    compiled = stator.compile(add_one, backend="eager")
    with dynamo_config.patch(only_allow_pt2_compliant_ops=True):
        compiled(torch.ones(1))
        compiled(torch.ones(1, 1))
    text = "torch._dynamo.config.only_allow_pt2_compliant_ops = True is not honoured by Stator"
    assert sum(record.getMessage().startswith(text) for record in caplog.records) == 1


PROGRAM = """
    import torch, stator
    graphs = 0
    def count(gm, examples):
        global graphs
        graphs += 1
        return gm.forward
    stator.install()
    compiled = torch.compile(lambda x: x + 1, backend=count)
    for n in (2, 3, 4, 5):
        assert torch.equal(compiled(torch.ones(n)), torch.ones(n) + 1)
    print(graphs)
"""


@pytest.mark.parametrize(
    ("variable", "value", "graphs"),
    [
        ("NOTHING", "", 2),
        ("TORCHDYNAMO_DISABLE", "1", 0),
        ("TORCH_COMPILE_DISABLE", "1", 0),
        ("TORCH_DYNAMO_AUTOMATIC_DYNAMIC_SHAPES", "0", 4),
    ],
)
def test_the_environment(variable, value, graphs):
    environment = {**os.environ, variable: value}
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == (f"{graphs}\n", 0), done.stderr


def test_the_environment_is_read_without_torch_dynamo(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._dynamo.config")
    monkeypatch.setenv("TORCHDYNAMO_SUPPRESS_ERRORS", "1")
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "0")
    config = reading.under_torchs(stator.config.Config(), frozenset())
    assert config == stator.config.Config(suppress_errors=True)
