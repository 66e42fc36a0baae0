"""What the first compilations of a process import, and what they leave to be imported by others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import stator
from stator.tensors import disabling, fakes
from stator.tensors.fakes import FakeMode
from tests.tensors.programs import assert_same

ROOT = Path(__file__).parents[2]


def child(program: str) -> str:
    """What a process of its own prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240, cwd=ROOT)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.strip()


LOADED = """
def loaded(*packages):
    import sys
    return [name for name in sys.modules if name.startswith(packages)][:5]
"""

LLAMA = f"""{LOADED}
import torch, stator
from tests.tensors.llama import Llama

torch.manual_seed(0)
model = Llama()
compiled = stator.compile(model, backend="eager", fullgraph=True)
for count in (6, 6):
    ids = torch.randint(0, 50, (2, count))
    torch.testing.assert_close(compiled(ids), model(ids))
    compiled(ids).sum().backward()
print(loaded("torch._dynamo", "torch._inductor"), stator.stats().graphs)
"""


def test_a_model_is_compiled_and_run_without_torchs_tracer() -> None:
    assert child(LLAMA) == "[] 1"


SEVERAL = f"""{LOADED}
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

torch.testing.assert_close(stator.compile(program, backend="eager")(*operands()), program(*operands()))

def fails(x):
    return x @ torch.ones(7)

try:
    stator.compile(fails, backend="eager")(torch.ones(3))
except RuntimeError as e:
    print(type(e).__name__, loaded("torch._dynamo", "torch._inductor"))
"""


def test_views_breaks_writes_and_errors_do_without_it_as_well() -> None:
    assert child(SEVERAL) == "RuntimeError []"


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
    symbols = fakes._CONTENTS["torch.fx.experimental.symbolic_shapes"]
    for name, later in vars(symbols).items():
        if name != "_name":
            assert callable(getattr(torch.fx.experimental.symbolic_shapes, name)), name
            assert (later.module, later.name) == ("torch.fx.experimental.symbolic_shapes", name)


def test_settings_hold_once_they_are_loaded() -> None:
    import torch._dynamo.config

    asked: list[Any] = []

    class Profiles:
        @property
        def data(self) -> Any:
            asked.append("data")
            return ()

    with torch._dynamo.config.patch(_custom_ops_profile=Profiles()), FakeMode():
        torch.ones(3).sin()
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
