"""compile() and what goes with it: arguments, errors, limits, marks, figures."""

import re
import subprocess
import sys
import traceback

import pytest

import stator


def double(x):
    return x * 2


def test_decorator_with_and_without_arguments():
    @stator.compile(backend="eager")
    def one(x):
        return x + 1

    assert one(1) == 2
    assert stator.compile(double, backend="eager")(4) == 8
    assert one.__name__ == "one"


def test_methods_bind():
    class Scaled:
        factor = 3

        @stator.compile(backend="eager")
        def times(self, x):
            return x * self.factor

    assert Scaled().times(2) == 6


def test_disable_returns_the_function_itself():
    assert stator.compile(double, disable=True, backend="eager") is double


@pytest.mark.parametrize("model", [3, "name", None.__class__.__name__])
def test_what_cannot_be_called_is_refused(model):
    with pytest.raises(TypeError, match="needs a function"):
        stator.compile(model, backend="eager")


def test_users_exception_arrives_as_it_is():
    def inner(x):
        raise KeyError("missing", x)

    def outer(x):
        return inner(x)

    with pytest.raises(KeyError) as caught:
        stator.compile(outer, backend="eager")(5)
    assert caught.value.args == ("missing", 5)
    shown = [f for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == __file__]
    assert [f.name for f in shown][-2:] == ["outer", "inner"]
    assert shown[-1].line == 'raise KeyError("missing", x)'


def test_recompile_limit_warns_once_and_runs_eagerly(caplog):
    wrapped = stator.compile(double, backend="eager", recompile_limit=2)
    assert [wrapped(x) for x in "ab"] == ["aa", "bb"]
    assert wrapped("c") == "cc"
    (record,) = caplog.records
    assert re.search("compiled 2 times(?s:.*)`x` was 'b', is 'c'", record.getMessage())
    assert [wrapped(x) for x in "dae"] == ["dd", "aa", "ee"]
    assert stator.stats().frames == 2


def test_recompile_limit_under_fullgraph_is_an_error():
    wrapped = stator.compile(double, backend="eager", recompile_limit=1, fullgraph=True)
    wrapped("a")
    with pytest.raises(stator.RecompileLimitError, match="recompile_limit"):
        wrapped("b")


def test_an_isolated_compile_owns_its_cache():
    first, second = (stator.compile(double, backend="eager", isolate_recompiles=True) for _ in range(2))
    first(1)
    assert stator.stats().frames == 1
    second(1)
    assert stator.stats().frames == 2
    first(1)
    assert stator.stats().frames == 2


def test_frame_skipped_for_one_argument_is_compiled_for_another():
    def program(n):
        if n == 0:
            stator.graph_break()
        return stator.is_compiling(), n

    for order in ((0, 1), (1, 0)):
        stator.reset()
        wrapped = stator.compile(program, backend="eager")
        assert [wrapped(n) for n in order] == [(True, n) for n in order]


def test_disabled_function_is_not_traced():
    ran = []

    @stator.disable(reason="it talks to hardware")
    def native(x):
        ran.append(stator.is_compiling())
        return x + 1

    def program(x):
        return native(x) * 2

    assert stator.compile(program, backend="eager")(1) == 4
    assert ran == [False]
    (record,) = stator.stats().breaks
    assert record.code == "SB0302"
    assert "it talks to hardware" in record.reason


def test_substitute_in_graph():
    import binascii

    @stator.substitute_in_graph(binascii.crc_hqx)
    def replacement(data, value):
        return len(data) + value

    def program(data):
        return binascii.crc_hqx(data, 1)

    assert stator.compile(program, backend="eager", fullgraph=True)(b"abc") == 4


def test_stances():
    wrapped = stator.compile(double, backend="eager")
    with stator.set_stance("force_eager"):
        wrapped(1)
    assert stator.stats().frames == 0
    with stator.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="fail_on_recompile"):
        wrapped(1)
    wrapped(1)
    with stator.set_stance("eager_on_recompile"):
        assert wrapped(2) == 4
    assert stator.stats().frames == 1
    with pytest.raises(stator.ConfigError, match="unknown stance"):
        stator.set_stance("lazy")


def test_stats_diff_and_json():
    before = stator.stats()
    stator.compile(double, backend="eager")(1)
    added = stator.stats().diff(before)
    assert (added.frames, added.graph_breaks) == (1, 0)
    assert '"frames": 1' in added.to_json()


def test_generated_source_is_readable():
    def program(x, items):
        items.append(x)
        return {"sum": x + 1}

    wrapped = stator.compile(program, backend="eager")
    wrapped(1, [])
    source = stator.generated_source(wrapped)
    assert source.startswith("def program(items")
    assert "items.append(1)" in source or "items.extend([1])" in source


HALF = """
import stator
from stator.pytorch.tensors import reader

def failing():
    raise ImportError("no such part of torch")

reader.configure = failing
for _ in range(2):
    try:
        stator.compile(lambda: 1)
    except stator.errors.InternalError as e:
        print(type(e.__cause__).__name__, e)
"""


@pytest.mark.needs_torch
def test_where_setting_up_has_failed_it_fails_again():
    """The second compile() does not go on with half of the torch layer."""
    done = subprocess.run([sys.executable, "-c", HALF], capture_output=True, text=True, timeout=120)
    line = "ImportError Stator could not be set up in this process: ImportError: no such part of torch"
    assert done.stdout.splitlines() == [line, line], done.stdout + done.stderr


AT_ONCE = """
import sys, threading
import torch, stator

sys.setswitchinterval(1e-5)
start, found = threading.Barrier(4), []

def work():
    start.wait()
    compiled = stator.compile(lambda x: x.sin() * 2, backend="eager", fullgraph=True, isolate_recompiles=True)
    found.append(torch.equal(compiled(torch.ones(3)), torch.ones(3).sin() * 2))

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(found, stator.stats().graphs)
"""


@pytest.mark.needs_torch
def test_the_first_compile_may_be_made_by_several_threads():
    done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[True, True, True, True] 4", done.stdout + done.stderr
