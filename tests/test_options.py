# needs: torch
"""Each option of `stator.config` does what it says: one test an option, called by its name."""

import ast
import io
import pathlib
import sys
import types

import pytest
import torch

import stator
from stator.guards.program import GuardProgram
from stator.pytorch.fake.memo import MEMO
from stator.report.events import EVENTS
from stator.report.progress import watch
from stator.testing import CountingBackend

SOURCES = pathlib.Path(stator.__file__).parent


def test_each_option_has_its_test():
    missing = [name for name in stator.config.names() if f"test_{name}" not in globals()]
    assert not missing


def test_each_option_is_read():
    trees = [ast.parse(path.read_text()) for path in SOURCES.rglob("*.py") if path.name != "config.py"]
    read = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not set(stator.config.names()) - read


def test_allow_ignore_mark_dynamic():
    def fixed(x):
        return x * 2 if x.size(0) == 3 else x

    x = torch.ones(3)
    stator.mark_dynamic(x, 0)
    assert graphs_of(fixed, [(x,)], allow_ignore_mark_dynamic=True) == 1
    with pytest.raises(stator.ConstraintViolationError, match="marked to be dynamic, but the code needs"):
        graphs_of(fixed, [(x,)])


def graphs_of(function, calls, **options):
    """How many graphs the calls take; each must give what the function gives."""
    backend = CountingBackend()
    compiled = stator.compile(function, backend=backend, options=options)
    for args in calls:
        torch.testing.assert_close(compiled(*args), function(*args))
    return len(backend.graphs)


def breaks_of(function, args, **options):
    """The codes of the graph breaks of a first call."""
    before = stator.stats()
    compiled = stator.compile(function, backend="eager", options=options)
    assert compiled(*args) == function(*args)
    return [record.code for record in stator.stats().diff(before).breaks]


def add(x, k=1):
    return x + k


def sizes(*several):
    return [(torch.ones(n),) for n in several]


TYPES = [(torch.ones(3, dtype=dtype),) for dtype in (torch.float32, torch.float64, torch.int32, torch.int64)]


def test_recompile_limit():
    assert graphs_of(add, TYPES) == 4
    assert graphs_of(add, TYPES, recompile_limit=2) == 2


def test_accumulated_recompile_limit():
    def mul(x):
        return x * 2

    assert graphs_of(mul, TYPES[:2]) == 2
    first = stator.compile(mul, backend="eager")
    first(*TYPES[0]), first(*TYPES[1])
    assert graphs_of(mul, TYPES[2:], accumulated_recompile_limit=3) == 1


def test_fail_on_recompile_limit_hit():
    compiled = stator.compile(add, backend="eager", options={"recompile_limit": 1, "fail_on_recompile_limit_hit": True})
    compiled(*TYPES[0])
    with pytest.raises(stator.errors.RecompileLimitError, match="add"):
        compiled(*TYPES[1])


def test_error_on_recompile():
    compiled = stator.compile(add, backend="eager", options={"error_on_recompile": True})
    compiled(*TYPES[0])
    with pytest.raises(stator.errors.RecompileError, match="add"):
        compiled(*TYPES[1])


def test_disable():
    assert graphs_of(add, TYPES, disable=True) == 0


def test_strict(monkeypatch):
    asked = []

    def disagreement(self, func, args, outputs):
        asked.append(func)

    monkeypatch.setattr(GuardProgram, "reference_outcome", disagreement)
    plain = stator.compile(add, backend="eager", options={"strict": False})
    plain(torch.ones(3)), plain(torch.ones(3))
    assert not asked
    strict = stator.compile(add, backend="eager", options={"strict": True})
    strict(torch.ones(3))
    asked.clear()
    strict(torch.ones(3))
    assert asked == [add]
    plain(torch.ones(3))
    assert asked == [add]


def test_strict_raises_where_the_two_disagree(monkeypatch):
    strict = stator.compile(add, backend="eager", options={"strict": True})
    strict(torch.ones(3))
    monkeypatch.setattr(GuardProgram, "reference_outcome", lambda *args: "the reference finds nothing wrong")
    with pytest.raises(RuntimeError, match="disagree: the reference finds nothing wrong"):
        strict(torch.ones(3))


def test_verbose(monkeypatch, capsys):
    def fails(*args):
        raise ValueError("a defect of the tracer's")

    def program(x):
        return x @ x

    monkeypatch.setattr("stator.pytorch.graph.recorder.Recorder.record", fails)
    x = torch.ones(2, 2)
    assert torch.equal(stator.compile(program, backend="eager")(x), program(x))
    assert "a defect" not in capsys.readouterr().err
    assert torch.equal(stator.compile(program, backend="eager", options={"verbose": True})(x), program(x))
    assert "ValueError: a defect of the tracer's" in capsys.readouterr().err


@pytest.mark.parametrize(("wanted", "listeners"), [("always", 1), ("never", 0), ("terminal", 0)])
def test_progress(monkeypatch, wanted, listeners):
    """What it tells is tested in tests/report/test_progress.py."""
    monkeypatch.setattr(EVENTS, "all", ())
    monkeypatch.setattr(sys, "__stderr__", io.StringIO())
    with stator.config.patch(progress=wanted):
        watch()
    assert len(EVENTS.all) == listeners


def test_suppress_errors(caplog):
    def broken(gm, examples):
        raise ValueError("no")

    with pytest.raises(stator.BackendError, match="no"):
        stator.compile(add, backend=broken)(torch.ones(3))
    compiled = stator.compile(add, backend=broken, options={"suppress_errors": True})
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 2.0))
    warnings = [record.message for record in caplog.records if "suppress_errors" in record.message]
    assert len(warnings) == 1 and "add runs as ordinary Python" in warnings[0]


def test_automatic_dynamic():
    assert graphs_of(add, sizes(3, 4, 5, 6)) == 2
    assert graphs_of(add, sizes(3, 4, 5, 6), automatic_dynamic=False) == 4


def test_assume_static_by_default():
    assert graphs_of(add, sizes(3, 4, 5)) == 2
    assert graphs_of(add, sizes(3, 4, 5), assume_static_by_default=False) == 1


def test_specialize_int():
    calls = [(torch.ones(3), k) for k in (2, 3, 4, 5)]
    assert graphs_of(add, calls) == 2
    assert graphs_of(add, calls, specialize_int=True) == 4


def test_specialize_float():
    calls = [(torch.ones(3), k) for k in (0.2, 0.3, 0.4, 0.5)]
    assert graphs_of(add, calls) == 2
    assert graphs_of(add, calls, specialize_float=True) == 4


def doubled_sum(x):
    return x.sum().item() * 2


def test_capture_scalar_outputs():
    assert breaks_of(doubled_sum, (torch.ones(3),)) == []
    assert breaks_of(doubled_sum, (torch.ones(3),), capture_scalar_outputs=False) != []


def test_capture_branches():
    def signed(x):
        return x * 2 if x.sum() > 0 else x - 1

    assert graphs_of(signed, [(torch.ones(3),), (-torch.ones(3),)]) > 1
    assert graphs_of(signed, [(torch.ones(3),), (-torch.ones(3),)], capture_branches=True) == 1


def test_trace_backward():
    leaf = torch.ones(3, requires_grad=True)

    def step(x):
        (leaf * x).sum().backward()
        return x.dim()

    assert breaks_of(step, (torch.ones(3),)) == []
    assert breaks_of(step, (torch.ones(3),), trace_backward=False) == ["SB0205"]


def test_dynamic_sources():
    assert graphs_of(add, sizes(3, 4, 5), dynamic_sources="L['x']") == 1


def test_static_sources():
    assert graphs_of(add, sizes(3, 4, 5, 6), static_sources="L['x']") == 4


def test_unbacked_sources():
    assert graphs_of(add, sizes(3, 4, 5), unbacked_sources="L['x']") == 1


def test_dynamic_values():
    assert graphs_of(add, sizes(3, 4, 5), dynamic_values="3") == 1


def test_link_outputs():
    def two(x):
        y = x * 2
        return y, y.sin()

    x = torch.ones(3, requires_grad=True)
    assert graphs_of(two, [(x,)]) == 1
    y, z = stator.compile(two, backend="aot_eager", options={"link_outputs": True})(x)
    assert torch.autograd.grad(z.sum(), y)[0].shape == (3,)


def many_steps(n):
    return sum([i * i for i in range(n)])


def test_trace_step_limit():
    assert breaks_of(many_steps, (300,)) == []
    assert "SB0404" in breaks_of(many_steps, (300,), trace_step_limit=1000)


def test_fullgraph_step_limit():
    assert stator.compile(many_steps, backend="eager", fullgraph=True)(300) == many_steps(300)
    compiled = stator.compile(many_steps, backend="eager", fullgraph=True, options={"fullgraph_step_limit": 1000})
    with pytest.raises(stator.GraphBreakError):
        compiled(300)


def nested(n):
    return nested(n - 1) + 1 if n else 0


def test_inline_depth_limit():
    assert breaks_of(nested, (30,)) == []
    assert breaks_of(nested, (30,), inline_depth_limit=10) != []


def test_memo_metadata():
    def hits(**options):
        before = MEMO.hits
        graphs_of(lambda x: x.cosh().cosh() + 1, [(torch.ones(7, 3),)], **options)
        return MEMO.hits - before

    hits()
    assert hits() == 3
    assert hits(memo_metadata=False) == 0


def test_undo_limit():
    def writes(x, i):
        x.add_(1)
        return x[i]

    def outcome(**options):
        x = torch.zeros(1000)
        compiled = stator.compile(writes, backend="inductor", options=options)
        compiled(torch.zeros(1000), torch.tensor([3]))
        with pytest.raises((IndexError, RuntimeError)) as caught:
            compiled(x, torch.tensor([4000]))
        return type(caught.value), x[0].item()

    assert outcome() == (IndexError, 1.0)  # as in eager execution, which has written before it fails
    assert outcome(undo_limit=0)[0] is not IndexError


def test_show_tracer():
    def calls_of(**options):
        seen = []

        def program(x):
            return x * 3

        compiled = stator.compile(program, backend="eager", options=options)
        sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_filename))
        try:
            compiled(torch.ones(2))
        finally:
            sys.setprofile(None)
        return {pathlib.Path(name).name for name in seen if name.startswith(str(SOURCES))}

    assert "frame.py" not in calls_of()
    assert "frame.py" in calls_of(show_tracer=True)


def test_check_ir(monkeypatch):
    from stator.codegen import ir_check

    checked = []
    monkeypatch.setattr(ir_check, "complaints", lambda traced: checked.append(traced) or [])
    graphs_of(add, TYPES[:2], check_ir=False)
    assert not checked
    graphs_of(add, TYPES[:2], check_ir=True)
    assert len(checked) == 2


def test_check_ranks(monkeypatch):
    from stator.pytorch.ranks import listener, session

    checked = []
    monkeypatch.setattr(listener, "in_company", lambda: True)
    monkeypatch.setattr(session, "current", lambda: types.SimpleNamespace(check=lambda *args: checked.append(args)))
    graphs_of(add, TYPES[:2])
    assert not checked
    graphs_of(add, [*TYPES[:2], *TYPES[:2]], check_ranks=True)
    assert len(checked) == 2  # and none for a call that an entry fits


def test_optimize_ddp():
    """A graph goes to the backend whole, and not in pieces of one Linear each."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    alone = not dist.is_initialized()  # other tests of the process may have a group
    if alone:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        counts = []
        for split in (True, False):
            backend = CountingBackend()
            compiled = stator.compile(
                DistributedDataParallel(model, bucket_cap_mb=1e-6), backend=backend, options={"optimize_ddp": split}
            )
            compiled(torch.ones(2, 4))
            counts.append(len(backend.graphs))
    finally:
        if alone:
            dist.destroy_process_group()
    assert counts == [2, 1]


def test_merge_collectives():
    """AOTAutograd looks for equal operations while it compiles the graph."""
    import torch._functorch.config as aot_config
    import torch.distributed as dist
    from torch.distributed._functional_collectives import all_reduce

    merges = []

    def backend(gm, inputs):
        merges.append(aot_config.cse)
        return gm.forward

    def reduced(x):
        return all_reduce(x, "sum", dist.group.WORLD) * 2

    alone = not dist.is_initialized()
    if alone:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        for merge in (False, True):
            stator.compile(reduced, backend=backend, options={"merge_collectives": merge})(torch.ones(2))
        stator.compile(add, backend=backend)(*TYPES[0])
    finally:
        if alone:
            dist.destroy_process_group()
    assert merges == [False, True, True]
