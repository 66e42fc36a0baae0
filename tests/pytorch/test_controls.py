"""Torch's controls under `stator.install()`: each does what it does for torch, or is said not to."""

import logging
import os
import subprocess
import sys
import textwrap

import pytest
import torch
import torch._dynamo
from torch.fx.experimental.dynamic_spec import ShapesSpec, ShapeVar, TensorSpec

import stator
from stator.controls import dynamo_config
from tests.pytorch.old_torch import fails_on_old_torch


@pytest.fixture(autouse=True)
def installed():
    stator.reset()
    stator.install()
    yield
    stator.uninstall()
    stator.reset()


class Counted:
    """A backend that counts its graphs."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, gm, examples, **kwargs):
        self.graphs += 1
        return gm.forward


def add_one(x):
    return x + 1


def said(caplog, act, text):
    """How often something is said, when the user does it twice."""
    dynamo_config._said.clear()
    caplog.set_level(logging.WARNING, "stator")
    act()
    act()
    return sum(text in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("by_torch", [True, False])
def test_guard_filter_fn(caplog, by_torch, backend):
    def act():
        options = {"guard_filter_fn": lambda entries: [False for _ in entries]}
        compile = torch.compile if by_torch else stator.compile
        compiled = compile(lambda x, n: x * n, backend=backend, options=options)
        assert [compiled(torch.ones(1), n).item() for n in (2, 3, 4)] == [2, 3, 4]
        assert "guard_filter_fn" in options

    assert said(caplog, act, "guard_filter_fn") == 1


def test_mode_with_options():
    text = "Either mode or options can be specified, but both can't be specified at the same time."
    for compile in (torch.compile, torch._dynamo.eval_frame.torch.compile):
        with pytest.raises(RuntimeError) as caught:
            compile(add_one, mode="default", options={"max_autotune": True})
        assert str(caught.value) == text


def test_isolate_recompiles():
    stator.reset()
    for isolate, graphs in [(False, 1), (False, 1), (True, 2), (True, 3)]:
        assert torch.compile(add_one, backend="eager", isolate_recompiles=isolate)(torch.ones(1)).item() == 2
        assert stator.stats().graphs == graphs


def graphs_of(compiled, *sizes):
    before = stator.stats()
    for size in sizes:
        assert torch.equal(compiled(torch.ones(size)), torch.ones(size) + 1)
    return stator.stats().diff(before).graphs


@pytest.mark.parametrize("name", ["shapes_spec", "dynamic_shapes"])
def test_shape_specifications(name):
    assert graphs_of(torch.compile(add_one, backend="eager", **{name: {"x": ["rows"]}}), 2, 3, 4) == 1
    assert graphs_of(torch.compile(add_one, backend="eager", **{name: {"x": {0: None}}}), 2, 3, 4) == 3
    with pytest.raises(ValueError, match="dynamic"):
        torch.compile(add_one, dynamic=True, **{name: {}})


def test_dynamic_spec_decorator():
    def function(x):
        return x + 1

    function._dynamic_spec = ShapesSpec({"x": TensorSpec([ShapeVar("rows")])})  # as the decorator of torch 2.15 does

    assert graphs_of(torch.compile(function, backend="eager"), 2, 3, 4) == 1
    with pytest.raises(ValueError, match="Provide only one"):
        torch.compile(function, backend="eager", dynamic_shapes={})


def test_default_backend():
    backend = Counted()
    before = torch.compiler.get_default_backend()
    torch.compiler.set_default_backend(backend)
    try:
        torch.compile(add_one, isolate_recompiles=True)(torch.ones(1))
        torch.compile(add_one, backend=None, isolate_recompiles=True)(torch.ones(1))
    finally:
        torch.compiler.set_default_backend(before)
    assert backend.graphs == 2


@pytest.mark.parametrize("name", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", [torch.sin, torch.Tensor.sin, torch.exp, torch.nn.functional.gelu], ids=str)
def test_functions_in_c(function, name):
    compiled = torch.compile(function, backend=name, fullgraph=True)
    for n in (2, 3, 4):
        x = torch.ones(n, requires_grad=True)
        compiled(x).sum().backward()
        y = torch.ones(n, requires_grad=True)
        function(y).sum().backward()
        assert torch.allclose(x.grad, y.grad)
    assert stator.stats().graphs == 2
    assert compiled.__name__ == function.__name__


def test_bound_methods_in_c():
    x = torch.ones(3)
    compiled = torch.compile(x.add, backend="eager")
    assert torch.equal(compiled(x), x + x) and stator.stats().graphs == 1


def test_classes():
    class Module(torch.nn.Module):
        def forward(self, x):
            return x + 1

    class Plain:
        def __call__(self, x):
            return x + 1

    for cls in (Module, Plain):
        stator.reset()
        compiled = torch.compile(cls, backend="eager")
        assert compiled is cls
        made = compiled()
        assert isinstance(made, cls) and torch.equal(made(torch.ones(2)), torch.full((2,), 2.0))
        assert stator.stats().graphs == 1
    assert torch.nn.Module.__call__ is not Module.__call__


def test_aot_compile():
    with pytest.raises(NotImplementedError, match=r"aot_compile\(\) is not supported by Stator"):
        torch.compile(add_one, fullgraph=True).aot_compile(((torch.ones(1),), {}))


@pytest.mark.parametrize("reset", [torch.compiler.reset, torch._dynamo.reset])
def test_reset(reset):
    backend = Counted()
    compiled = torch.compile(add_one, backend=backend)
    for graphs in (1, 2, 3):
        compiled(torch.ones(1))
        compiled(torch.ones(1))
        assert backend.graphs == graphs
        reset()


def test_explain():
    def function(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    assert torch._dynamo.explain(torch.compile(function, backend="eager"))(torch.ones(1)).graph_count == 2


def test_disable_is_recursive():
    backend = Counted()

    def inner(x):
        return x.cos()

    @torch.compiler.disable
    def disabled(x):
        return inner(x) + inner(x)

    @torch.compiler.disable(recursive=False)
    def disabled_alone(x):
        return inner(x) + inner(x)

    compiled = torch.compile(lambda x: disabled(x + 1) + 1, backend=backend)
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(2)), 2 * torch.full((2,), 2.0).cos() + 1)
    assert backend.graphs == 2

    compiled = torch.compile(lambda x: disabled_alone(x + 1) + 1, backend=backend)
    compiled(torch.ones(2))
    assert backend.graphs == 5


@pytest.fixture
def misses():
    """The functions whose frames the hook finds no entry for."""
    from stator._core import set_miss_handler
    from stator.compiler import miss

    found = []

    def noted(region, function, code, args):
        found.append(function)
        return miss.on_miss(region, function, code, args)

    torch.compile(add_one, backend="eager")(torch.ones(1))
    set_miss_handler(noted)
    yield found
    set_miss_handler(miss.on_miss)


@pytest.mark.parametrize("name", ["eager", "aot_eager"])
@pytest.mark.parametrize("after_a_break", [False, True])
def test_disabled_functions_are_remembered(misses, name, after_a_break):
    disabled = [torch.compiler.disable(lambda x, i=i: x.cos() + i) for i in range(3)]

    def function(x):
        for one in disabled:
            x = x * 2
            if after_a_break:
                torch._dynamo.graph_break()
            x = one(x)
        return x

    compiled = torch.compile(function, backend=name)
    for n in (2, 3, 4, 5):
        x, y = torch.ones(n, requires_grad=True), torch.ones(n, requires_grad=True)
        result, expected = compiled(x), function(y)
        result.sum().backward()
        expected.sum().backward()
        assert torch.equal(result, expected) and torch.equal(x.grad, y.grad)
        if n < 4:
            misses.clear()
    assert not misses


def breaks(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def test_error_on_graph_break():
    def inside(x):
        with torch._dynamo.error_on_graph_break(True):
            return breaks(x)

    def allowed_inside(x):
        with torch._dynamo.error_on_graph_break(True):
            x = x + 1
            with torch._dynamo.error_on_graph_break(False):
                x = breaks(x)
            return x - 1

    def after(x):
        with torch._dynamo.error_on_graph_break(True):
            x = x + 1
        return breaks(x)

    def breaks_later(x):
        with torch._dynamo.error_on_graph_break(False):
            x = breaks(x)
        with torch._dynamo.error_on_graph_break(True):
            return breaks(x)

    x = torch.ones(1)
    decorated = torch._dynamo.error_on_graph_break(True)(breaks)
    for function in (inside, breaks_later, lambda x: decorated(x) + 1):
        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.compile(function, backend="eager")(x)
        torch._dynamo.utils._set_error_on_graph_break(False)
    for function in (allowed_inside, after):
        assert torch.equal(torch.compile(function, backend="eager")(x), function(x))
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(allowed_inside, backend="eager", fullgraph=True)(x)


@pytest.mark.parametrize("name", ["eager", "aot_eager"])
def test_nested_compile_region(name):
    @torch.compiler.nested_compile_region
    def region(x):
        return x.sin() * 2

    def function(x):
        return region(x) + region(x + 1)

    compiled = torch.compile(function, backend=name, fullgraph=True)
    for n in (2, 3, 4):
        x, y = torch.ones(n, requires_grad=True), torch.ones(n, requires_grad=True)
        compiled(x).sum().backward()
        function(y).sum().backward()
        assert torch.allclose(x.grad, y.grad)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_nonstrict_trace(backend):
    weight, module = torch.full((2,), 3.0, requires_grad=True), torch.nn.Linear(2, 2)

    @torch._dynamo.nonstrict_trace
    def region(x):
        return module(x).sin() * weight

    compiled = torch.compile(lambda x: region(x) + 1, backend=backend, fullgraph=True)
    leaves = [weight, *module.parameters()]
    for n in (2, 3, 4):
        x = torch.ones(n, 2)
        result, expected = compiled(x), region(x) + 1
        torch.testing.assert_close(result, expected)
        torch.testing.assert_close(*(torch.autograd.grad(y.sum(), leaves) for y in (result, expected)))


MARKS = pytest.mark.parametrize("mark", [torch._dynamo.mark_dynamic, stator.mark_dynamic], ids=["torch", "stator"])


def of_size(n, mark, **range):
    x = torch.ones(n, 3)
    mark(x, 0, **range)
    return x


@MARKS
@pytest.mark.parametrize("name", ["eager", "aot_eager"])
def test_marks_with_ranges(mark, name):
    def function(x):
        return x * 2 if x.size(0) > 5 else x + 1

    x = of_size(7, mark, min=6, max=10)
    assert {(r.dim, r.min, r.max) for r in x._dynamo_dynamic_range} == {(0, 6, 10)}
    compiled = torch.compile(function, backend=name)
    for n, graphs in ((7, 1), (6, 1), (10, 1), (20, 2), (30, 2), (3, 3), (8, 3)):
        x, y = torch.ones(n, 3, requires_grad=True), torch.ones(n, 3, requires_grad=True)
        if n == 7:
            mark(x, 0, min=6, max=10)
        compiled(x).sum().backward()
        function(y).sum().backward()
        assert torch.equal(x.grad, y.grad) and stator.stats().graphs == graphs


@MARKS
def test_a_range_answers_what_it_can(mark):
    graphs = []

    def backend(gm, examples):
        graphs.append(gm.code)
        return gm.forward

    compiled = torch.compile(lambda x: x.new_zeros(()) if x.size(0) > 5 else x, backend=backend)
    for n in (7, 8, 6, 10):
        assert compiled(of_size(n, mark, min=6, max=10)).shape == ()
    assert len(graphs) == 1


TORCHS_HINT = pytest.param(torch._dynamo.maybe_mark_dynamic, marks=fails_on_old_torch("its hints have no ranges"))
HINTS = pytest.mark.parametrize("hint", [TORCHS_HINT, stator.maybe_mark_dynamic])
Violation = torch.fx.experimental.symbolic_shapes.ConstraintViolationError


@pytest.mark.parametrize("mark", [torch._dynamo.mark_dynamic, TORCHS_HINT])
def test_sizes_out_of_their_ranges(mark):
    compiled = torch.compile(lambda x: x * 2, backend="eager")
    with pytest.raises(Violation, match=r"`x.size\(0\)` is marked to be 6 at least, and 10 at most, and is 3"):
        compiled(of_size(3, mark, min=6, max=10))


def narrows(x):
    return x * 2 if x.size(0) > 8 else x + 3


def branches(x):
    return x * 2 if x.size(0) == 9 else x + 3


def loops(x):
    return sum(row * 2 for row in x.unbind())


def views(x):
    return x.view(9, -1)


def adds(x):
    return x + torch.ones(9, 3)


@MARKS
@pytest.mark.parametrize("name", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", [branches, loops, views, adds])
def test_code_that_fixes_a_marked_size(mark, name, function):
    line = function.__code__.co_firstlineno + 1
    with pytest.raises(Violation, match=rf"needs x.size\(0\) == 9  # .*test_controls.py:{line}\n") as caught:
        torch.compile(function, backend=name)(of_size(9, mark))
    assert isinstance(caught.value, stator.ConstraintViolationError)
    x = torch.ones(9, 3)
    torch._dynamo.mark_static(x)
    assert torch.equal(torch.compile(function, backend=name)(x), function(x))


@MARKS
def test_a_marked_size_after_a_break(mark):
    def function(x):
        y = x + 1
        torch._dynamo.graph_break()
        return branches(y) + branches(x)

    with pytest.raises(Violation, match=r"x.size\(0\) == 9"):
        torch.compile(function, backend="eager")(of_size(9, mark))


@MARKS
def test_code_that_narrows_a_range(mark):
    text = (
        r"`x.size\(0\)` is marked to be 6 at least, and 10 at most, but the code needs 9 <= x.size\(0\) <= 10  # .*:\d"
    )
    with pytest.raises(Violation, match=text):
        torch.compile(narrows, backend="eager")(of_size(9, mark, min=6, max=10))
    x = of_size(9, mark)
    assert torch.equal(torch.compile(narrows, backend="eager")(x), x * 2)  # some range is left


@MARKS
def test_sizes_of_0_and_1_are_special(mark):
    for n in (0, 1):
        x = of_size(n, mark)
        assert torch.equal(torch.compile(add_one, backend="eager")(x), x + 1)


@HINTS
def test_hints(hint):
    for function in (narrows, branches):
        compiled = torch.compile(function, backend="eager")
        for n in (9, 7, 10, 6, 9):
            x = of_size(n, hint, min=6, max=10)
            assert torch.equal(compiled(x), function(x))
    assert stator.stats().graphs == 4
    stator.reset()
    x = of_size(9, hint)
    stator.mark_dynamic(x, 0)
    hint(x, 0)
    with pytest.raises(Violation):
        torch.compile(branches, backend="eager")(x)


def test_half_open_ranges():
    for range in ({"min": 6}, {"max": 6}):
        compiled = torch.compile(lambda x: x * 2, backend="eager")
        stator.reset()
        for n in (6, 6, 6):
            x = of_size(n, stator.mark_dynamic, **range)
            assert torch.equal(compiled(x), x * 2)
        assert stator.stats().graphs == 1


UNBACKED = {
    "whole": (lambda x: x * 2, 1),
    "a view": (lambda x: x.reshape(-1, 3) + x.size(0), 1),
    "a sum": (lambda x: x.sum(0) / x.size(0), 1),
    "a branch": (lambda x: x * 2 if x.size(0) > 3 else x + 1, 5),
}


@pytest.mark.parametrize("name", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", UNBACKED)
def test_nothing_is_known_of_unbacked_sizes(name, program):
    function, graphs = UNBACKED[program]
    compiled = torch.compile(function, backend=name)
    for n in (5, 2, 1, 0):
        x, y = torch.ones(n, 3, requires_grad=True), torch.ones(n, 3, requires_grad=True)
        if n == 5:
            stator.mark_unbacked(x, 0)
        mine, eager = compiled(x), function(y)
        mine.sum().backward()
        eager.sum().backward()
        torch.testing.assert_close(mine, eager, equal_nan=True)
        assert torch.equal(x.grad.nan_to_num(), y.grad.nan_to_num())
    assert stator.stats().graphs <= graphs


def test_code_that_fixes_an_unbacked_size():
    x = torch.ones(9, 3)
    torch._dynamo.decorators.mark_unbacked(x, 0)
    with pytest.raises(stator.errors.GraphBreakError, match="SB0201"):
        torch.compile(branches, backend="eager", fullgraph=True)(x)
    x = torch.ones(9, 3)
    torch._dynamo.decorators.mark_unbacked(x, 0, strict=True)
    with pytest.raises(Violation, match=r"x.size\(0\) == 9"):
        torch.compile(branches, backend="eager")(x)


def test_unbacked_marks():
    backend = Counted()
    compiled = torch.compile(add_one, backend=backend)
    x = torch.ones(4, 3)
    torch._dynamo.decorators.mark_unbacked(x, 0)
    compiled(x)
    for n in (5, 6):
        assert torch.equal(compiled(torch.ones(n, 3)), torch.ones(n, 3) + 1)
    assert backend.graphs == 1


@fails_on_old_torch("where one marked dimension has a range, its tracer wants one of each")
def test_marks_of_stators_are_read_by_torch():
    stator.uninstall()
    torch._dynamo.reset()
    x = torch.ones(5, 3)
    stator.mark_dynamic(x, 0, min=2, max=8)
    stator.mark_dynamic(x, 1)
    assert torch.equal(torch.compile(add_one, backend="eager")(x), x + 1)


PROGRAM = """
    import torch, torch._dynamo, stator
    stator.install()

    @torch.compile(backend="eager")
    def function(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    function(torch.ones(2))
    function(torch.ones(2, 2))
"""


@pytest.mark.parametrize(
    ("logs", "there", "absent"),
    [
        ("graph_breaks", "Graph break in user code at", "Recompiling"),
        ("recompiles", "Recompiling function function", "Graph break"),
        ("", "", "user code"),
    ],
)
def test_torch_logs(logs, there, absent):
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    environment = {**os.environ, "TORCH_LOGS": logs or "graph_code"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    assert there in done.stderr and absent not in done.stderr
