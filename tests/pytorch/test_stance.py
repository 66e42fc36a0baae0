"""`torch.compiler.set_stance` and `stator.set_stance`: all stances, as function, context manager and decorator."""

import textwrap

import pytest
import torch

import stator
from tests.pytorch.alone import run_alone

SETTERS = pytest.mark.parametrize("set_stance", [torch.compiler.set_stance, stator.set_stance], ids=["torch", "stator"])


@pytest.fixture(autouse=True)
def fresh():
    stator.reset()
    yield
    torch.compiler.set_stance("default")
    stator.set_stance("default")
    stator.reset()


def add_one(x):
    return x + 1


def compiled_and_graphs(function=add_one, **settings):
    graphs = []

    def backend(gm, examples):
        graphs.append(gm)
        return gm.forward

    return stator.compile(function, backend=backend, **settings), graphs


@SETTERS
def test_force_eager(set_stance):
    seen = []
    compiled, _ = compiled_and_graphs(lambda x: (seen.append(torch.compiler.is_compiling()), x + 1)[1])
    compiled(torch.ones(2))
    with set_stance("force_eager"):
        compiled(torch.ones(2))
    compiled(torch.ones(2))
    assert seen == [True, False, True]


@SETTERS
def test_as_function_and_as_decorator(set_stance):
    compiled, graphs = compiled_and_graphs()
    set_stance("force_eager")
    compiled(torch.ones(2))
    set_stance("default")
    assert not graphs

    @set_stance("force_eager")
    def eagerly():
        return compiled(torch.ones(2))

    eagerly()
    assert not graphs
    compiled(torch.ones(2))
    assert len(graphs) == 1
    eagerly()


@SETTERS
def test_eager_on_recompile(set_stance):
    compiled, graphs = compiled_and_graphs()
    compiled(torch.ones(2))
    with set_stance("eager_on_recompile"):
        assert torch.equal(compiled(torch.ones(3)), torch.ones(3) + 1)
        compiled(torch.ones(2))
    assert len(graphs) == 1
    compiled(torch.ones(3))
    assert len(graphs) == 2


@SETTERS
def test_fail_on_recompile(set_stance):
    compiled, graphs = compiled_and_graphs()
    compiled(torch.ones(2))
    with set_stance("fail_on_recompile"):
        compiled(torch.ones(2))
        with pytest.raises(RuntimeError, match=r"stance is 'fail_on_recompile'(?s:.*)test_stance(?s:.*)add_one"):
            compiled(torch.ones(3))
    assert torch.equal(compiled(torch.ones(3)), torch.ones(3) + 1) and len(graphs) == 2


@SETTERS
def test_eager_then_compile(set_stance):
    compiled, graphs = compiled_and_graphs()
    with set_stance("eager_then_compile"):
        compiled(torch.ones(2))
        assert not graphs
        for n in (3, 4, 5):
            assert torch.equal(compiled(torch.ones(n)), torch.ones(n) + 1)
    assert len(graphs) == 1, "the size was another in the first call: it is dynamic from the first trace on"


@SETTERS
def test_aot_eager_then_compile(set_stance):
    compiled, graphs = compiled_and_graphs()
    with set_stance("aot_eager_then_compile"):
        x = torch.ones(2, requires_grad=True)
        compiled(x).sum().backward()
        assert torch.equal(x.grad, torch.ones(2)) and not graphs and stator.stats().graphs == 1
        for n in (3, 4, 5):
            assert torch.equal(compiled(torch.ones(n)), torch.ones(n) + 1)
    assert len(graphs) >= 1


@SETTERS
def test_aot_eager_then_compile_goes_on_after_a_break(set_stance):
    def f(x):
        y = x + 1
        stator.graph_break()
        return y * 2

    compiled, graphs = compiled_and_graphs(f)
    with set_stance("aot_eager_then_compile"):
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 4.0))
        assert not graphs
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 4.0))
    assert len(graphs) == 2


@pytest.mark.parametrize("set_stance", [torch.compiler.set_stance, torch._dynamo.set_stance, stator.set_stance])
def test_not_in_a_compiled_function(set_stance):
    def f(x):
        with set_stance("force_eager"):
            return x + 1

    compiled, _ = compiled_and_graphs(f)
    with pytest.raises(RuntimeError, match="attempted to set_stance in a torch.compile region"):
        compiled(torch.ones(2))
    f(torch.ones(2))


@pytest.mark.parametrize("set_stance", [torch.compiler.set_stance, stator.set_stance])
def test_a_function_with_a_stance_runs_as_ordinary_python(set_stance):
    @set_stance("force_eager")
    def with_stance(x):
        return x.sin()

    def f(x):
        return with_stance(x * 2) + 1

    compiled, graphs = compiled_and_graphs(f)
    for size in (2, 2, 3):
        x = torch.ones(size)
        torch.testing.assert_close(compiled(x), f(x))
    assert {record.code for record in stator.stats().breaks} == {"SB0302"}
    assert len(graphs) == 4


def test_what_is_not_honoured_is_said_once(caplog):
    from stator.controls import dynamo_config

    dynamo_config._said.clear()
    compiled, _ = compiled_and_graphs()
    with torch.compiler.set_stance(skip_guard_eval_unsafe=True, force_backend="aot_eager"):
        compiled(torch.ones(2))
        compiled(torch.ones(3))
    said = [record.getMessage() for record in caplog.records]
    assert sum("skip_guard_eval_unsafe" in text for text in said) == 1
    assert sum("force_backend" in text for text in said) == 1


def test_torchs_stance_is_noticed_where_its_compiler_is_imported_late():
    program = """
        import sys, torch, stator
        seen = []
        def f(x):
            seen.append(torch.compiler.is_compiling())
            return x
        compiled = stator.compile(f, backend="eager")
        compiled(torch.ones(2))
        assert "torch._dynamo.eval_frame" not in sys.modules
        with torch.compiler.set_stance("force_eager"):
            compiled(torch.ones(2))
        compiled(torch.ones(2))
        assert seen == [True, False, True], seen
        assert not any(type(finder).__module__ == "stator.host.waiting" for finder in sys.meta_path)
    """
    done = run_alone(textwrap.dedent(program))
    assert done.returncode == 0, done.stderr
