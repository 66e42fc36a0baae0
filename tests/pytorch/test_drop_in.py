"""What libraries find out about a compiled module or function, as they ask torch's own: copied from no library."""

from __future__ import annotations

import copy
import inspect
import pickle
from types import MethodType
from typing import Any

import pytest
import torch
from torch import nn

import stator
from stator.testing import CountingBackend
from tests.pytorch.alone import run_alone


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: Any) -> Any:
        return self.norm(self.linear(x))

    def training_step(self, x: Any) -> Any:
        return self(x).square().mean()


def compiled_net() -> Any:
    return stator.compile(Net(), backend="eager")


# -- is it compiled? --------------------------------------------------------------------------------------------------


def is_compiled_module(module: Any) -> bool:
    return hasattr(torch, "_dynamo") and isinstance(module, torch._dynamo.eval_frame.OptimizedModule)


def test_a_compiled_module_is_one_for_who_asks() -> None:
    compiled = compiled_net()
    assert is_compiled_module(compiled) and isinstance(compiled, (int, torch._dynamo.OptimizedModule))
    assert not is_compiled_module(compiled._orig_mod) and not is_compiled_module(Net) and not is_compiled_module(1)
    assert isinstance(compiled, Net) and compiled.__class__ is Net and issubclass(type(compiled), Net)
    wrapped = torch._dynamo.eval_frame.OptimizedModule(Net(), lambda f: f)
    assert type(wrapped) is torch._dynamo.OptimizedModule and is_compiled_module(wrapped)

    class Wrapper(torch._dynamo.OptimizedModule):
        pass

    assert not isinstance(compiled, Wrapper)
    assert not isinstance(wrapped, Wrapper) and isinstance(Wrapper(Net(), lambda f: f), Wrapper)
    assert pickle.loads(pickle.dumps(torch._dynamo.OptimizedModule)) is torch._dynamo.OptimizedModule


@pytest.mark.parametrize("load", ["import torch._dynamo", "from torch._dynamo import OptimizedModule", "torch._dynamo"])
@pytest.mark.parametrize("first", [True, False])
def test_whenever_torchs_compiler_is_loaded(load: str, first: bool) -> None:
    compiling = "compiled = stator.compile(torch.nn.Linear(2, 2), backend='eager')\n"
    lines = [load + "\n", compiling] if first else [compiling, load + "\n"]
    done = run_alone(  # what is loaded, and when, is what is tested
        f"import sys, torch, stator\n{''.join(lines)}assert isinstance(compiled, torch._dynamo.OptimizedModule)\n"
        "assert not any(type(f).__module__.startswith('stator') for f in sys.meta_path)\n"
        "import inspect; assert 'class OptimizedModule' in inspect.getsource(torch._dynamo.eval_frame)"
    )
    assert done.returncode == 0, done.stderr


def test_asked_inside_of_a_compiled_function() -> None:
    import torch._dynamo  # imports break graphs

    compiled = compiled_net().eval()

    def run(module: Any, x: Any) -> Any:
        if isinstance(module, torch._dynamo.OptimizedModule):
            module = module._orig_mod
            x = x + 1
        return module(x), isinstance(module, torch._dynamo.OptimizedModule)

    backend = CountingBackend()
    program = stator.compile(run, backend=backend, fullgraph=True)
    for module in (compiled, compiled._orig_mod, compiled):
        for n in (2, 3, 5):
            x = torch.randn(n, 4)
            got, expected = program(module, x), run(module, x)
            assert torch.equal(got[0], expected[0]) and got[1] is expected[1] is False


def test_parameters_keep_their_names_in_distributed_checkpoints() -> None:
    from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict

    compiled = compiled_net()
    state = get_model_state_dict(compiled)
    assert list(state) == list(compiled.state_dict())
    set_model_state_dict(compiled, {key: torch.zeros_like(value) for key, value in state.items()})
    assert compiled.linear.weight.abs().sum() == 0


# -- taking it out and putting it back --------------------------------------------------------------------------------


def test_the_original_is_taken_out_and_put_back() -> None:
    compiled = compiled_net()
    original = compiled._orig_mod
    assert type(original) is Net
    compiled._orig_mod = original
    assert "_orig_mod" not in compiled._modules and list(compiled.state_dict()) == list(original.state_dict())
    with pytest.raises(AttributeError, match="stands for one module"):
        compiled._orig_mod = Net()
    compiled.other = nn.Linear(2, 2)
    assert original.other is compiled.other


def test_attributes_assigned_inside_of_a_compiled_function() -> None:
    compiled = compiled_net().eval()

    def run(x: Any) -> Any:
        compiled.calls = getattr(compiled, "calls", 0) + 1
        return compiled(x)

    program = stator.compile(run, backend="eager", fullgraph=True)
    x = torch.randn(2, 4)
    for n in (1, 2, 3):
        assert torch.equal(program(x), compiled._orig_mod(x))
        assert compiled._orig_mod.calls == n


# -- checkpoints ------------------------------------------------------------------------------------------------------


def saved_by_torch(module: nn.Module) -> Any:
    return torch.compile(module, backend="eager").state_dict()


@pytest.mark.parametrize("strict", [True, False])
def test_checkpoints_with_and_without_the_prefix(strict: bool) -> None:
    saved = Net()
    for state in (saved.state_dict(), saved_by_torch(saved), dict(saved_by_torch(saved))):
        given = list(state)
        compiled = compiled_net()
        result = compiled.load_state_dict(state, strict=strict)
        assert not result.missing_keys and not result.unexpected_keys and list(state) == given
        assert all(torch.equal(a, b) for a, b in zip(compiled.parameters(), saved.parameters(), strict=True))


def test_a_compiled_part_of_a_module_that_is_not() -> None:
    saved = nn.Sequential(nn.Linear(2, 2), torch.compile(Net(), backend="eager"))
    for make in (lambda module: module, lambda module: stator.compile(module, backend="eager")):
        model = make(nn.Sequential(nn.Linear(2, 2), compiled_net()))
        model.load_state_dict(saved.state_dict())
        assert torch.equal(model[1].linear.weight, saved[1].linear.weight)
        model = make(nn.Sequential(nn.Linear(2, 2), compiled_net()))
        model.load_state_dict(saved_by_torch(saved) if is_compiled_module(model) else saved.state_dict())
        assert torch.equal(model[1].linear.weight, saved[1].linear.weight)


def test_layers_keep_their_versions() -> None:
    state = saved_by_torch(Net())
    del state["_orig_mod.norm.num_batches_tracked"]  # which only old checkpoints may lack
    assert compiled_net().load_state_dict(state, strict=False).missing_keys == ["norm.num_batches_tracked"]


def test_a_module_that_has_a_member_of_that_name() -> None:
    module = nn.ModuleDict({"_orig_mod": nn.Linear(2, 2)})
    compiled, saved = stator.compile(module, backend="eager"), copy.deepcopy(module)
    assert "_orig_mod.weight" in compiled.state_dict()
    saved["_orig_mod"].reset_parameters()
    compiled.load_state_dict(saved.state_dict())
    assert torch.equal(module["_orig_mod"].weight, saved["_orig_mod"].weight)


# -- the rest of a module's methods -----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_methods_compiled_by_the_modules_own_compiler(backend: str) -> None:
    """As Lightning does it: the steps that a trainer calls, compiled as the module was."""
    compiled = stator.compile(Net(), backend=backend)
    stator.reset()
    plain = copy.deepcopy(compiled._orig_mod)
    original = compiled._orig_mod
    compiler, step = compiled.dynamo_ctx, original.training_step
    original.forward = compiler(original.forward)
    original.training_step = compiler(step)
    for n in (3, 5, 7):
        x = torch.randn(n, 4)
        loss, expected = original.training_step(x), plain.training_step(x)
        assert torch.equal(loss, expected)
        loss.backward()
        expected.backward()
    grads = [(a.grad, b.grad) for a, b in zip(original.parameters(), plain.parameters(), strict=True)]
    assert all(torch.equal(a, b) for a, b in grads) and stator.stats().graphs
    original.training_step = step
    assert original.training_step(x).shape == ()
    for again in (copy.deepcopy(compiler), pickle.loads(pickle.dumps(compiled_net().dynamo_ctx))):
        assert torch.equal(again(plain.training_step)(x), plain.training_step(x))


def test_compiled_in_place() -> None:
    graphs = CountingBackend()
    stator.install()
    try:
        model = Net()
        model.compile(backend=graphs)
    finally:
        stator.uninstall()
    plain = copy.deepcopy(model)
    assert plain._compiled_call_impl is None and not is_compiled_module(model)
    for n in (3, 5, 7):
        x = torch.randn(n, 4)
        assert torch.equal(model(x), plain(x))
    assert graphs.graphs
    assert list(model.state_dict()) == list(plain.state_dict())


# -- functions --------------------------------------------------------------------------------------------------------


def function(x: Any, y: Any = 2, *, z: Any = 3) -> Any:
    """Its doc."""
    return x * y + z


class Plain:
    def method(self, x: Any, y: int = 2) -> Any:
        return x * y


@pytest.mark.parametrize("make", [lambda: function, lambda: Plain().method], ids=["function", "method"])
def test_a_compiled_function_is_a_function(make: Any) -> None:
    wrapped = make()
    compiled = stator.compile(wrapped, backend="eager")
    torchs = torch.compile(wrapped, backend="eager")
    for question in (
        inspect.isfunction,
        inspect.isroutine,
        inspect.ismethod,
        inspect.signature,
        callable,
        inspect.getdoc,
    ):
        assert question(compiled) == question(torchs), question
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        assert getattr(compiled, name) == getattr(torchs, name)
    assert inspect.unwrap(compiled) == inspect.unwrap(torchs)
    assert inspect.getsource(compiled) == inspect.getsource(wrapped)
    assert (compiled.__defaults__, compiled.__kwdefaults__) == (
        wrapped.__defaults__,
        wrapped.__func__.__kwdefaults__ if isinstance(wrapped, MethodType) else wrapped.__kwdefaults__,
    )
    assert inspect.getfullargspec(compiled) == inspect.getfullargspec(wrapped)
    assert inspect.getclosurevars(compiled) == inspect.getclosurevars(wrapped)


def test_comparisons() -> None:
    compiled, module = stator.compile(function, backend="eager"), compiled_net()
    assert compiled == compiled and compiled != function and compiled != stator.compile(function, backend="eager")
    assert module == module._orig_mod and module != compiled_net() and hash(module) == hash(module._orig_mod)
    assert {compiled: 1, module: 2}[compiled] == 1 and {module._orig_mod: 3}[module] == 3

    class Holder:
        method = stator.compile(function, backend="eager")

    held = Holder()
    assert held.method == held.method and held.method != Holder().method
