"""What the first compilations of a process import, and what they leave to be imported by others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import stator
from stator.pytorch.fake import apart, origins, small
from stator.pytorch.fake.fakes import FakeMode
from stator.pytorch.fake.memo import Memo
from stator.pytorch.fake.metadata import meta_of
from stator.pytorch.state import disabling
from tests.pytorch.alone import run_alone
from tests.pytorch.programs import assert_same


def child(program: str) -> str:
    """What a process of its own prints."""
    done = run_alone(program)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.strip()


LOADED = """
def loaded(*packages):
    import sys
    return [name for name in sys.modules if name.startswith(packages)][:5]
"""

#: a backend of the program's own, which asks for nothing
OWN = """
def own(gm, example_inputs):
    return gm.forward
"""

LLAMA = f"""{LOADED}{OWN}
import torch, stator
from tests.pytorch.llama import Llama

torch.manual_seed(0)
model = Llama()
compiled = stator.compile(model, backend=BACKEND, fullgraph=True)
for count in (6, 6):
    ids = torch.randint(0, 50, (2, count))
    torch.testing.assert_close(compiled(ids), model(ids))
    compiled(ids).sum().backward()
print(loaded("torch._dynamo", "torch._inductor"), stator.stats().graphs)
"""


@pytest.mark.parametrize("backend", ["'eager'", "own"])
def test_a_model_is_compiled_and_run_without_torchs_tracer(backend: str) -> None:
    assert child(LLAMA.replace("BACKEND", backend)) == "[] 1"


SEVERAL = f"""{LOADED}{OWN}
import torch, stator

def program(x, y, flag):
    a = torch.relu(x @ y) + torch.tensor([1.0, 2.0])
    b = a.view(-1)[1:].clone()
    b.add_(x.sum())
    if flag:
        stator.graph_break()
    return a.softmax(-1), b.std(), torch.where(a > 1, a, 0), {{"cat": torch.cat([x, y.T])}}, x.view(4).mul_(2)

def operands():
    x = torch.ones(6)[2:].view(2, 2)
    x.grad = None
    return x, torch.nn.Parameter(torch.eye(2)), True

torch.testing.assert_close(stator.compile(program, backend=BACKEND)(*operands()), program(*operands()))

def fails(x):
    return x @ torch.ones(7)

try:
    stator.compile(fails, backend=BACKEND)(torch.ones(3))
except RuntimeError as e:
    print(type(e).__name__, loaded("torch._dynamo", "torch._inductor"))
"""


@pytest.mark.parametrize("backend", ["'eager'", "own"])
def test_views_breaks_writes_and_errors_do_without_it_as_well(backend: str) -> None:
    assert child(SEVERAL.replace("BACKEND", backend)) == "RuntimeError []"


SIZES = f"""{LOADED}{OWN}
import torch, stator

def program(x, y, scale):
    rows = x.view(x.size(0) // 2, -1) * y.size(0)
    return rows.sum(0) * scale + rows.t()[-1].sum(), x[1:]

for dynamic in (None, True):
    stator.reset()
    compiled = stator.compile(program, backend=BACKEND, dynamic=dynamic)
    for size in (4, 6, 8):
        x, y = torch.randn(size, 3, requires_grad=True), torch.ones(size + 1)
        torch.testing.assert_close(compiled(x, y, size + 0.5), program(x, y, size + 0.5))
        (mine,) = torch.autograd.grad(compiled(x, y, size + 0.5)[0].sum(), x)
        (plain,) = torch.autograd.grad(program(x, y, size + 0.5)[0].sum(), x)
        torch.testing.assert_close(mine, plain)
    print(stator.stats().graphs, loaded("torch._dynamo", "torch._inductor"))
"""


@pytest.mark.parametrize("backend", ["'eager'", "own"])
def test_symbolic_sizes_and_floats_do_without_it_as_well(backend: str) -> None:
    assert child(SIZES.replace("BACKEND", backend)).splitlines() == ["2 []", "2 []"]


def test_a_backend_that_loads_it_meets_the_symbols_made_before() -> None:
    program = SIZES.replace("BACKEND", "'eager' if dynamic is None else 'aot_eager'")
    told = child(program).splitlines()
    assert told[0] == "2 []" and told[1].startswith("2 ['torch._dynamo")


#: one thread compiles for the first time while another imports what Stator does without
AT_ONCE = """
import sys, threading
import torch, stator

sys.setswitchinterval(1e-5)
found = {}
start = threading.Barrier(2)

def imports():
    start.wait()
    import torch._dynamo
    found["name"] = torch._dynamo.config.__name__, type(torch._dynamo.source.LocalSource("x")).__name__

def f(x):
    return torch.relu(x).sum() + 1

def compiles():
    start.wait()
    for size in range(1, 30):
        found[size] = stator.compile(f, backend="eager", dynamic=False)(torch.ones(size)).item()

threads = [threading.Thread(target=t) for t in (imports, compiles)]
[t.start() for t in threads], [t.join() for t in threads]
assert found.pop("name") == ("torch._dynamo.config", "LocalSource"), found
assert found == {size: size + 1 for size in range(1, 30)}, found
torch._dynamo.config.recompile_limit = 3
print(torch.compile(f, backend="eager")(torch.ones(2)).item(), torch._dynamo.config.recompile_limit)
"""


def test_another_thread_may_import_it_at_the_same_time() -> None:
    assert child(AT_ONCE) == "3.0 3"


def fields(mode: Any) -> dict[str, Any]:
    """All that a fake mode holds, but for what differs on purpose or is an object of its own."""
    own = {"cache_enabled", "_stack_trace", "fake_tensor_converter"}
    return {name: str(value) for name, value in vars(mode).items() if name not in own}


def test_the_mode_has_the_fields_of_torchs() -> None:
    ours, theirs = FakeMode(), FakeTensorMode()
    assert fields(ours) == fields(theirs)
    assert vars(ours).keys() == vars(theirs).keys()
    assert vars(ours.fake_tensor_converter).keys() == vars(theirs.fake_tensor_converter).keys()
    converters = (ours.fake_tensor_converter.meta_converter, theirs.fake_tensor_converter.meta_converter)
    assert vars(converters[0]).keys() == vars(converters[1]).keys()


def test_what_is_not_imported_is_what_it_is_by_default() -> None:
    """An option that torch reads with another default than the one written here."""
    import torch._dynamo.config

    assert torch._dynamo.config._custom_ops_profile is None
    assert not torch._dynamo.config.automatic_dynamic_exclusion_guard
    symbols = apart._CONTENTS["torch.fx.experimental.symbolic_shapes"]
    for name, later in vars(symbols).items():
        if name != "_name":
            assert callable(getattr(torch.fx.experimental.symbolic_shapes, name)), name
            assert (later.module, later.name) == ("torch.fx.experimental.symbolic_shapes", name)


def test_origins_are_called_as_torchs_are() -> None:
    def names(module: Any) -> list[str]:
        x = module.LocalSource("x")
        parts = [module.AttrSource(x, member) for member in ("_base", "not a name")]
        sizes = [module.TensorPropertySource(x, module.TensorProperty[kind], 1) for kind in ("SIZE", "STRIDE")]
        offset = module.TensorPropertySource(x, module.TensorProperty.STORAGE_OFFSET)
        number = module.CallMethodItemSource(module.FloatTensorSource(parts[0]))
        every = [x, *parts, *sizes, offset, number, module.ConstantSource("c")]
        return [f"{origin.name} {origin.guard_source} {origin.is_ephemeral()}" for origin in every]

    import torch._dynamo.source

    assert names(origins) == names(torch._dynamo.source)
    base = origins.AttrSource(origins.LocalSource("x"), "_base")
    shown = origins.FloatTensorSource(base).as_torchs()
    assert shown == torch._dynamo.source.FloatTensorSource(base.as_torchs()) and shown.base.member == "_base"


def test_settings_hold_once_they_are_loaded() -> None:
    import torch._dynamo.config

    asked: list[Any] = []

    class Profiles:
        @property
        def data(self) -> Any:
            asked.append("data")
            return ()

    with torch._dynamo.config.patch(_custom_ops_profile=Profiles()), FakeMode():
        torch.ones(3).normal_()
    assert asked


def test_wrappers_do_what_they_are_for_once_there_is_a_tracer() -> None:
    import torch._dynamo

    disabling.spare_references()
    with FakeMode():
        torch.ones(3) + 1
    left = {wrapper for wrapper in disabling._wrappers() if wrapper.__name__ == "add"}
    assert left
    for wrapper in left:
        wrapper(torch.ones(3), 1)
        kept = vars(disabling._cells(wrapper)["fn"])["__dynamo_disable"]
        assert not isinstance(kept, disabling._NotYet)


def test_a_mode_has_no_numbers_of_existing_tensors() -> None:
    """torch's takes the number in a tensor for known, where there can be no symbols: nothing would guard it."""
    mode = FakeMode()
    number = mode.of(torch.tensor(3))
    with pytest.raises(Exception, match="_local_scalar_dense"), mode:
        number.item()


def views(base: torch.Tensor) -> list[torch.Tensor]:
    return [base, base[1:], base.t(), base.view(-1), base.detach()[:, 1]]


@pytest.mark.parametrize("grad", [False, True])
def test_fakes_of_existing_tensors_share_memory_as_they_do(grad: bool) -> None:
    base = torch.ones(3, 4, requires_grad=grad)
    found = views(base if not grad else base * 1)
    made = [FakeMode.of(mode, t) for mode in [FakeMode()] for t in found]
    storages = {t.untyped_storage()._cdata for t in made}
    assert len(storages) == 1
    for ours, real in zip(made, found, strict=True):
        assert (ours.shape, ours.stride(), ours.storage_offset()) == (real.shape, real.stride(), real.storage_offset())
        assert (ours.requires_grad, ours.is_leaf, ours._is_view()) == (
            real.requires_grad,
            real.is_leaf,
            real._is_view(),
        )


def static_then_dynamic(a: Any, b: Any) -> Any:
    v = a.view(-1)
    v.add_(1)  # needs the fake tensors of this trace, before there is a symbol
    half = v[: b.shape[0]]
    return half * b, b.sum(), v.mean() + b.shape[0]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_symbols_may_come_later(backend: str) -> None:
    compiled = stator.compile(static_then_dynamic, backend=backend, fullgraph=True)
    for size in (3, 4, 6, 5):
        args = [[torch.arange(8.0).view(2, 4), torch.ones(size)] for _ in range(2)]
        stator.mark_dynamic(args[0][1], 0)
        assert_same(compiled(*args[0]), static_then_dynamic(*args[1]), f"size {size}")
        assert_same(args[0], args[1], "the operands")
    assert stator.stats().graphs >= 1


TINY = f"""{LOADED}{OWN}
import torch, stator

def f(x, w):
    y = torch.relu(x + 1) * 2 @ w
    y.mul_(3)
    return y.t().sum(0), y > 1, x.view(-1).unsqueeze(0)

compiled = stator.compile(f, backend=BACKEND)
for size in (2, 2):
    x, w = torch.randn(size, 3), torch.randn(3, 3, requires_grad=True)
    assert all(map(torch.equal, compiled(x, w), f(x, w)))
    compiled(x, w)[0].sum().backward()
print(loaded("torch._dynamo", "torch._inductor", "sympy", "torch.fx.experimental.symbolic_shapes"))
"""


@pytest.mark.parametrize("backend", ["'eager'", "own"])
def test_simple_operations_do_without_sympy_too(backend: str) -> None:
    assert child(TINY.replace("BACKEND", backend)) == "[]"


ASKING = f"""{LOADED}
import torch, stator

def backend(gm, example_inputs):
    from torch._guards import TracingContext, detect_fake_mode
    assert not loaded("torch._dynamo", "torch._inductor", "sympy")
    first = next(iter(gm.graph.nodes))
    print(ASKED)
    from torch._functorch.aot_autograd import aot_module_simplified, make_boxed_func
    return aot_module_simplified(gm, example_inputs, lambda graph, _: make_boxed_func(graph.forward))

def f(x, w):
    return torch.relu(x + 1) @ w

x, w = torch.randn(2, 3), torch.randn(3, 3, requires_grad=True)
compiled = stator.compile(f, backend=backend)
assert torch.equal(compiled(x, w), f(x, w))
assert torch.equal(*(torch.autograd.grad(g(x, w).sum(), w)[0] for g in (compiled, f)))
"""


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("type(detect_fake_mode().shape_env).__name__", "ShapeEnv"),
        ("type(TracingContext.get().tensor_to_context[example_inputs[0]]).__name__", "StatefulSymbolicContext"),
        ("first._dynamo_source.name", "L['input0']"),
        ("TracingContext.get().output_strides", "None"),
    ],
)
def test_what_is_imported_for_a_backend_that_asks_is_there(asked: str, answer: str) -> None:
    assert child(ASKING.replace("ASKED", asked)) == answer


_ONE, _TWO = torch.ones(2, 3), torch.ones(3, dtype=torch.int32)
_LEAF = torch.ones(2, 3, requires_grad=True)
_TURNED = torch.ones(3, 2).t()
_SIMPLE: list[tuple[Any, list[Any], dict[str, Any]]] = [
    *((op, [a, b], {}) for op in (torch.add, torch.mul, torch.true_divide) for a in (_ONE, _LEAF) for b in (_TWO, 2)),
    *((op, [a], {}) for op in (torch.relu, torch.sin, torch.sigmoid) for a in (_ONE, _LEAF * 1, _TURNED, _TWO[1:])),
    *((op, [_ONE.t(), _ONE], {}) for op in (torch.mm, torch.matmul, torch.Tensor.__matmul__)),
    (torch.nn.functional.linear, [_LEAF, torch.ones(4, 3), torch.ones(4)], {}),
    (torch.nn.functional.gelu, [_ONE], {"approximate": "tanh"}),
    *((torch.Tensor.sum, [a], {"dim": 0, "keepdim": keep}) for a in (_ONE, _LEAF) for keep in (True, False)),
    *((op, [_LEAF * 1, 1], {}) for op in (torch.Tensor.add_, torch.Tensor.mul_)),
    *((op, [a], {}) for op in (torch.t, torch.Tensor.contiguous, torch.clone, torch.detach) for a in (_ONE, _LEAF)),
    *((torch.Tensor.view, [a, -1], {}) for a in (_ONE, _ONE.expand(2, 2, 3)[:1])),
    (torch.where, [_ONE > 0, _ONE, _TURNED], {}),
    (torch.eq, [_ONE, _TURNED], {}),
    (torch.eq, [_TURNED, _TURNED], {}),
    (torch.Tensor.copy_, [torch.ones(2, 3), _TURNED], {}),
    (torch.addcmul, [_ONE, _ONE, _TURNED], {}),
    (torch.nn.functional.layer_norm, [_LEAF, (3,)], {}),
    (torch.nn.functional.embedding, [torch.ones(4, dtype=torch.int64), _LEAF], {}),
    (torch.nn.functional.cross_entropy, [_LEAF, torch.ones(2, dtype=torch.int64)], {}),
]
_OTHERS: list[tuple[Any, list[Any], dict[str, Any]]] = [
    (torch.nonzero, [_ONE], {}),
    (torch.bernoulli, [_ONE], {}),
    (torch.add, [_ONE, torch.ones(7)], {}),
    (torch.add, [torch.ones(1 << 13, 1), torch.ones(1, 1 << 13)], {}),
    (torch.nn.functional.dropout, [_ONE, 0.5, True], {}),
    (torch.Tensor.item, [_ONE[0, 0]], {}),
    (torch.masked_select, [_ONE, _ONE > 0], {}),
    (torch.Tensor.clone, [torch.ones(1 << 13, 1).expand(-1, 1 << 13)], {}),
]


def described(outcome: Any) -> Any:
    def of(result: Any) -> Any:
        names = [name for cls in type(result).__mro__ for name in getattr(cls, "__slots__", ())]
        parts = {name: getattr(result, name) for name in names}
        return type(result), {k: [of(item) for item in v] if k == "items" else v for k, v in parts.items()}

    return {name: getattr(outcome, name) for name in type(outcome).__slots__ if name != "result"}, of(outcome.result)


def asked(memory: Memo, case: tuple[Any, list[Any], dict[str, Any]], way: str) -> Any:
    """The outcome of an operation, by one of the memory's ways to find it."""
    function, args, kwargs = case
    positions = [i for i, arg in enumerate(args) if isinstance(arg, torch.Tensor)]

    def fill(template: Any, operands: list[Any]) -> Any:
        if isinstance(template, dict):
            return template
        return [operands[positions.index(i)] if i in positions else arg for i, arg in enumerate(template)]

    return getattr(memory, way)(function, args, kwargs, [meta_of(args[i]) for i in positions], fill)


@pytest.mark.parametrize("case", _SIMPLE, ids=lambda case: case[0].__name__)
def test_what_is_seen_on_real_tensors_is_what_fake_ones_tell(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = asked(Memo(), case, "_seen")
    monkeypatch.setattr(small, "preferable", lambda metas: False)
    assert described(seen) == described(asked(Memo(), case, "_ask"))


@pytest.mark.parametrize("case", _OTHERS, ids=lambda case: case[0].__name__)
def test_what_may_look_at_numbers_fails_or_is_large_is_left_to_fake_ones(case: Any) -> None:
    assert asked(Memo(), case, "_seen") is None


def test_only_small_operands_are_run_on() -> None:
    assert not small._is_small(meta_of(torch.empty(1 << 15)))
    assert not small._is_small(meta_of(torch.empty(2, 2, device="meta")))
    assert not small._is_small(meta_of(torch.empty(1 << 16)[:: 1 << 15]))
    assert small._is_small(meta_of(torch.empty(0, 5)))
