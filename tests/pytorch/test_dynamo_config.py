"""torch's options: every one is in the table, and what Stator says it honours it does."""

import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
import torch._dynamo.config as dynamo_config
import torch._functorch.config
import torch.compiler.config as compiler_config

import stator
from stator.controls import dynamo_config as reading
from stator.controls.page import CONTROLS
from stator.controls.table import COMPILER, DYNAMO, Irrelevant
from stator.report.controls import page
from tests.pytorch.programs import agree

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "controls.md"


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


@pytest.mark.parametrize(("module", "table"), [(dynamo_config, DYNAMO), (compiler_config, COMPILER)])
def test_every_option_has_its_row(module, table):
    names = {name for name, option in module._config.items() if not option.alias}
    assert names <= set(table), "options of this torch that no table has"
    aliases = {option.alias.rpartition(".")[2] for option in module._config.values() if option.alias}
    assert aliases <= set(DYNAMO)


@pytest.mark.parametrize(("module", "table"), [(dynamo_config, DYNAMO), (compiler_config, COMPILER)])
def test_the_defaults_are_torchs(module, table):
    for name, row in table.items():
        if name in module._config and not isinstance(row, Irrelevant) and not getattr(row, "variable", ""):
            assert getattr(module, name) == row.default, name


def test_the_page_is_printed_from_the_tables():
    assert PAGE.read_text() == page() + "\n", "run `python -m stator.report.controls > docs/guide/controls.md`"


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


def test_allow_ignore_mark_dynamic():
    x = torch.ones(3)
    torch._dynamo.mark_dynamic(x, 0)
    with dynamo_config.patch(allow_ignore_mark_dynamic=True):
        compiled = stator.compile(lambda x: x * 2 if x.size(0) == 3 else x, backend="eager")
        assert torch.equal(compiled(x), x * 2)
    with pytest.raises(stator.ConstraintViolationError):
        stator.compile(lambda x: x * 2 if x.size(0) == 3 else x, backend="eager")(x)


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


def reads_a_number(x):
    return x * x.sum().item()


def breaks_at(function, **keywords):
    before = stator.stats().graph_breaks
    compiled = stator.compile(function, backend="eager", **keywords)
    for n in (2, 3, 4):
        assert torch.equal(compiled(torch.ones(n)), function(torch.ones(n)))
    return stator.stats().graph_breaks - before


@pytest.fixture
def untouched():
    """The options as torch has them before anybody sets one, and again afterwards."""
    options = [dynamo_config._config[name] for name in ("capture_scalar_outputs", "allow_empty_graphs")]
    options.append(dynamo_config._config["capture_dynamic_output_shape_ops"])
    tokens = [option.user_override.set(option.user_override.get(_UNSET)) for option in options]
    for option in options:
        option.user_override.set(_UNSET)
    yield
    for option, token in zip(options, tokens, strict=True):
        option.user_override.reset(token)


_UNSET = dynamo_config._config["verbose"].__class__.__init__.__globals__["_UNSET_SENTINEL"]


def test_capture_scalar_outputs(untouched):
    assert breaks_at(reads_a_number) == 0
    dynamo_config.capture_scalar_outputs = True
    assert breaks_at(reads_a_number) == 0
    dynamo_config.capture_scalar_outputs = False
    assert breaks_at(reads_a_number) > 0
    assert breaks_at(reads_a_number, fullgraph=True) == 0
    assert breaks_at(reads_a_number, options={"capture_scalar_outputs": True}) == 0


def test_scalar_outputs_that_torch_has_put_back(untouched):
    x = torch.ones(2)
    torch.cond(torch.tensor(True), lambda x: x.sin(), lambda x: x.cos(), (x,))
    torch.export.export(torch.nn.Linear(2, 2), (x,), strict=True)
    assert breaks_at(reads_a_number) == 0


def graphs_of(function, *calls, **keywords):
    """How many graphs these calls make, each right."""
    backend = Counted()
    compiled = stator.compile(function, backend=backend, **keywords)
    for args in calls:
        assert torch.equal(compiled(*args), function(*args))
    return backend.graphs


SIZES = [(torch.ones(n, 3),) for n in (4, 5, 6, 7)]


@pytest.mark.parametrize("name", ["dynamic_sources", "unbacked_sources"])
@pytest.mark.parametrize(
    ("entries", "graphs"),
    [("L['x']", 1), ("L['x']:0", 1), ("L['x']:1", 2), (r"L\\['x.*", 1), ("L['y'], .*:0", 1), ("L['y']", 2), ("", 2)],
)
def test_dynamic_sources(name, entries, graphs):
    def function(x):
        return x * 2

    with compiler_config.patch({name: entries.replace("\\\\", "\\")}):
        assert graphs_of(function, *SIZES) == graphs
        numbers = [(torch.ones(2), n) for n in (5, 6, 7)]
        assert graphs_of(lambda y, x: y * x, *numbers) == (1 if entries == "L['x']" else graphs_of_numbers(entries))


def graphs_of_numbers(entries):
    return 1 if "x" in entries or ".*" in entries else 2


def test_sources_of_modules():
    linear = torch.nn.Linear(3, 3)
    for entries, graphs in (("L['input']:0", 1), ("L['self'].weight", 2)):
        with compiler_config.patch(dynamic_sources=entries):
            assert graphs_of(linear, *SIZES) == graphs


def test_dynamic_sources_go_before_the_call():
    def function(x):
        return x * 2

    assert graphs_of(function, *SIZES, dynamic=False) == 4
    with compiler_config.patch(dynamic_sources="L['x']"):
        assert graphs_of(function, *SIZES, dynamic=False) == 1


def test_static_sources():
    def function(x, n):
        return x * n

    calls = [(*args, n) for args, n in zip(SIZES, (5, 6, 7, 8), strict=True)]
    with dynamo_config.patch(assume_static_by_default=False):
        assert graphs_of(lambda x: x * 2, *SIZES) == 1
    fives = [(x, 5) for x, _ in calls]
    with stator.config.patch(static_sources="L['x']"):
        assert graphs_of(function, *fives) == 4
        assert graphs_of(function, *fives, dynamic=True) == 4
    with stator.config.patch(static_sources="L['n']", dynamic_sources="L['n'], L['x']"):
        assert graphs_of(function, *calls) == 4
        assert graphs_of(function, *fives) == 1
    with stator.config.patch(static_sources=".*"):
        marked = [torch.ones(n, 3) for n in (4, 5, 6)]
        for x in marked:
            torch._dynamo.mark_dynamic(x, 0)
        assert graphs_of(function, *[(x, 5) for x in marked]) == 1


@pytest.mark.skipif(not hasattr(compiler_config, "static_sources"), reason="torch 2.15")
def test_static_sources_of_torch():
    with compiler_config.patch(static_sources="L['x']"):
        assert graphs_of(lambda x: x * 2, *SIZES) == 4


@pytest.mark.skipif(not hasattr(compiler_config, "dynamic_values"), reason="torch has no such option")
def test_dynamic_values():
    with compiler_config.patch(dynamic_values="4, 17"):
        assert graphs_of(lambda x: x * 2, *SIZES) == 1
        assert graphs_of(lambda x, n: x * n, *[(torch.ones(2), n) for n in (17, 18, 19)]) == 1
    assert graphs_of(lambda x, n: x * n, *[(torch.ones(2), n) for n in (17, 18, 19)]) == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_sources_with_gradients(backend):
    def function(x):
        return (x * x.shape[0]).sin()

    with compiler_config.patch(dynamic_sources="L['x']"):
        compiled = stator.compile(function, backend=backend)
        for n in (2, 3, 5, 8):
            x, y = torch.ones(n, 3, requires_grad=True), torch.ones(n, 3, requires_grad=True)
            compiled(x).sum().backward()
            function(y).sum().backward()
            assert torch.equal(x.grad, y.grad)
    assert stator.stats().graphs == 1


def test_options_of_the_compiler_that_are_not_honoured(caplog):
    reading._said.clear()
    caplog.set_level(logging.WARNING, "stator")
    with compiler_config.patch(job_id="one", unbacked_sources="L['x']"):
        graphs_of(add_one, *SIZES)
    for text in ("torch.compiler.config.job_id = 'one'", "torch.compiler.config.unbacked_sources = \"L['x']\""):
        assert sum(text in record.getMessage() for record in caplog.records) == 1


def test_verbose():
    compiled = stator.compile(add_one, backend="eager")
    with dynamo_config.patch(verbose=True):
        assert compiled._stator_region.config.verbose
    assert not compiled._stator_region.config.verbose


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
        ("TORCH_COMPILE_DYNAMIC_SOURCES", "L['x']", 1),
        ("TORCH_COMPILE_DYNAMIC_SOURCES", "L['x']:0", 1),
        ("TORCH_COMPILE_STATIC_SOURCES", "L['x']", 4 if hasattr(compiler_config, "static_sources") else 2),
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


def patched(x):
    with dynamo_config.patch(capture_scalar_outputs=True, recompile_limit=4):
        y, inside = x * 2, dynamo_config.recompile_limit
    return y, inside, dynamo_config.recompile_limit


def patched_by_name(x):
    with (
        dynamo_config.patch("automatic_dynamic_shapes", False),
        torch._functorch.config.patch({"donated_buffer": False}),
    ):
        inside = dynamo_config.automatic_dynamic_shapes, torch._functorch.config.donated_buffer
    return x.sin(), inside, dynamo_config.automatic_dynamic_shapes


@dynamo_config.patch(assume_static_by_default=False)
def decorated(x):
    return x.cos(), dynamo_config.assume_static_by_default


def patched_around_a_break(x):
    with dynamo_config.patch(recompile_limit=4):
        y = x + 1
        stator.graph_break()
        inside = dynamo_config.recompile_limit
    return y * 2, inside, dynamo_config.recompile_limit


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [patched, patched_by_name, decorated, patched_around_a_break])
def test_options_patched_inside(program, backend, untouched):
    agree(
        lambda: (program, (torch.ones(3, requires_grad=True),)),
        backend=backend,
        grad=True,
        breaks=int(program is patched_around_a_break),
    )


def test_what_was_made_under_other_settings_of_torchs_is_not_shared(untouched):
    def add(x):
        return x + x.sum().item()

    calls = [stator.compile(add, backend="eager") for _ in range(2)]
    for call, captured in zip(calls, (False, True), strict=True):
        with torch._dynamo.config.patch(capture_scalar_outputs=captured):
            before = stator.stats().graph_breaks
            call(torch.ones(2))
            assert (stator.stats().graph_breaks == before) is captured
