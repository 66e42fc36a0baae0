"""`compiled_module.forward(x)`: compiled as a call of the module is, with its hooks; torch itself sees the method."""

from __future__ import annotations

import copy
import inspect
import pickle
from types import MethodType
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

import stator
from stator.pytorch.modules.compiled_module import is_compiled_module
from stator.testing import CountingBackend


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        """Its doc."""
        return self.dropout(self.linear(x)).relu() * scale


@pytest.fixture(autouse=True)
def fresh() -> Any:
    stator.reset()
    yield
    stator.reset()


def nets(backend: Any = "eager") -> tuple[Any, Any]:
    """A compiled module and a plain copy."""
    plain = Net().eval()
    return stator.compile(copy.deepcopy(plain), backend=backend), plain


def assert_same(call: Any, expected: Any, compiled: Any, plain: Any, **kwargs: Any) -> None:
    """Results and gradients, at several sizes."""
    for n in (2, 3, 5, 7):
        x = torch.randn(n, 4, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        a, b = call(x, **kwargs), expected(y, **kwargs)
        a.sum().backward()
        b.sum().backward()
        assert torch.equal(a, b) and torch.equal(x.grad, y.grad)
    for p, q in zip(compiled.parameters(), plain.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_it_is_compiled_with_the_module(backend: str) -> None:
    compiled, plain = nets(backend)
    assert_same(compiled.forward, plain, compiled, plain)
    graphs = stator.stats().graphs
    assert graphs == 2
    for n in (2, 3, 9):
        x = torch.randn(n, 4, requires_grad=True)
        assert torch.equal(compiled(x), plain(x)) and torch.equal(compiled.forward(x), plain(x))
    assert stator.stats().graphs == graphs
    assert torch.equal(compiled.forward(x, scale=3.0), plain(x, scale=3.0))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_under_install(backend: str) -> None:
    stator.install()
    try:
        plain = Net().eval()
        compiled = torch.compile(copy.deepcopy(plain), backend=backend)
    finally:
        stator.uninstall()
    assert_same(compiled.forward, plain, compiled, plain)
    assert stator.stats().graphs == 2


def test_training_and_evaluation() -> None:
    compiled, plain = nets()
    x = torch.randn(3, 4)
    for mode in (True, False, True):
        compiled.train(mode)
        plain.train(mode)
        torch.manual_seed(1)
        got = compiled.forward(x)
        torch.manual_seed(1)
        assert torch.equal(got, plain(x))


def hooked(module: Any, log: list[str]) -> Any:
    module.register_forward_pre_hook(lambda m, a: log.append("before"))
    module.register_forward_hook(lambda m, a, r: (log.append("after"), r + 1)[1])
    module.register_forward_hook(lambda m, a, k, r: log.append(f"{k}"), with_kwargs=True)
    module.register_full_backward_hook(lambda m, i, o: log.append("backward"))
    return module


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hooks_run_once(backend: str) -> None:
    compiled, plain = nets(backend)
    logs: list[list[str]] = [[], []]
    hooked(compiled, logs[0])
    hooked(plain, logs[1])
    assert_same(compiled.forward, plain, compiled, plain, scale=3.0)
    assert logs[0] == logs[1] and len(logs[0]) == 16
    for call in (compiled, compiled.forward, compiled._orig_mod):
        logs[0].clear()
        call(torch.ones(2, 4))
        assert logs[0] == ["before", "after", "{}"]


@pytest.mark.parametrize("hooks", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_in_a_compiled_function(backend: str, hooks: bool) -> None:
    compiled, plain = nets(backend)
    log: list[str] = []
    if hooks:
        for module in (compiled, plain):
            module.register_forward_hook(lambda m, a, r: (log.append("hook"), r + 1)[1])
    program = stator.compile(lambda m, x: m.forward(x) * 2 + m(x), backend=backend, fullgraph=True)
    assert_same(lambda x: program(compiled, x), lambda x: plain(x) * 2 + plain(x), compiled, plain)
    assert stator.stats().graphs == 2
    assert log.count("hook") == (16 if hooks else 0)

    def breaks(x: Any) -> Any:
        y = compiled.forward(x)
        stator.graph_break()
        return compiled.forward(y) + compiled(y)

    program = stator.compile(breaks, backend=backend)
    for n in (2, 3, 5):
        x = torch.randn(n, 4)
        assert torch.equal(program(x), 2 * plain(plain(x)))


def test_stances() -> None:
    graphs = CountingBackend()
    compiled, plain = nets(graphs)
    log: list[str] = []
    compiled.register_forward_hook(lambda m, a, r: log.append("hook"))
    x = torch.randn(2, 4)
    with torch.compiler.set_stance("force_eager"):
        assert torch.equal(compiled.forward(x), plain(x))
    assert not graphs.graphs and log == ["hook"]
    with stator.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="fail_on_recompile"):
        compiled.forward(x)
    compiled.forward(x)
    with stator.set_stance("fail_on_recompile"):
        assert torch.equal(compiled.forward(x), plain(x))
    assert len(graphs.graphs) == 1


# -- what the program finds out about it ------------------------------------------------------------------------------


def test_what_it_is() -> None:
    compiled, plain = nets()
    forward = compiled.forward
    assert forward is compiled.forward and callable(forward)
    assert inspect.signature(forward) == inspect.signature(plain.forward)
    assert inspect.getfullargspec(forward).args[-2:] == ["x", "scale"]
    assert forward.__name__ == "forward" and forward.__doc__ == "Its doc."
    assert not hasattr(forward, "__func__") and not hasattr(forward, "__self__")  # as torch's
    assert type(compiled).forward is Net.forward and "forward" not in vars(compiled)
    assert isinstance(compiled, Net) and type(compiled._orig_mod) is Net
    assert compiled._orig_mod.forward.__func__ is Net.forward


def test_copies() -> None:
    compiled, plain = nets()
    x = torch.randn(3, 4)
    compiled.forward(x)
    for made in (copy.copy(compiled), copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        before = stator.stats().graphs
        assert is_compiled_module(made) and torch.equal(made.forward(x), plain(x))
        assert stator.stats().graphs == before and made.forward is not compiled.forward  # equal settings share
        assert list(made.state_dict()) == list(plain.state_dict())
    made.load_state_dict(plain.state_dict())
    assert torch.equal(copy.deepcopy(compiled.forward)(x), plain(x))


# -- assigned ---------------------------------------------------------------------------------------------------------


def wrapped(forward: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs) + 1

    call.__wrapped__ = forward
    return call


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_assigned_to_the_compiled_module(backend: str) -> None:
    """As torch's wrapper keeps it: the module itself is left as it is."""
    compiled, plain = nets(backend)
    log: list[str] = []
    compiled.register_forward_hook(lambda m, a, r: log.append("hook"))
    compiled.forward = wrapped(compiled.forward)
    assert "forward" not in vars(compiled._orig_mod)
    for call in (compiled, compiled.forward):
        assert_same(call, lambda x: plain(x) + 1, compiled, plain)
    assert len(log) == 8 and stator.stats().graphs
    x = torch.randn(2, 4)
    assert torch.equal(compiled._orig_mod(x), plain(x))
    program = stator.compile(lambda x: compiled(x) * 2, backend=backend, fullgraph=True)
    log.clear()
    assert torch.equal(program(x), (plain(x) + 1) * 2) and log == ["hook"]
    del compiled.forward
    assert torch.equal(compiled(x), plain(x)) and torch.equal(compiled.forward(x), plain(x))
    assert torch.equal(program(x), plain(x) * 2)


def test_assigned_to_the_module() -> None:
    compiled, plain = nets()
    module = compiled._orig_mod
    module.forward = MethodType(lambda self, x: Net.forward(self, x) + 1, module)
    x = torch.randn(2, 4)
    for call in (compiled, compiled.forward, module):
        assert torch.equal(call(x), plain(x) + 1)
    assert list(inspect.signature(compiled.forward).parameters) == ["x"]
    del module.forward
    assert torch.equal(compiled.forward(x), plain(x))


def test_assigned_what_it_was() -> None:
    compiled, plain = nets()
    compiled.forward = compiled.forward
    x = torch.randn(2, 4)
    assert torch.equal(compiled(x), plain(x)) and torch.equal(compiled.forward(x), plain(x))
    assert stator.stats().graphs == 1


# -- other tracers ----------------------------------------------------------------------------------------------------


class Around(nn.Module):
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner.forward(x)


class Calling(Around):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


TRACERS = {
    "symbolic_trace": lambda module, x: torch.fx.symbolic_trace(module),
    "script": lambda module, x: torch.jit.script(module),
    "trace": lambda module, x: torch.jit.trace(module, (x,)),
    "export": lambda module, x: torch.export.export(module, (x,), strict=False).module(),
    "strict export": lambda module, x: torch.export.export(module, (x,), strict=True).module(),
    "make_fx": lambda module, x: make_fx(module)(x),
    "dynamo": lambda module, x: torch._dynamo.optimize("eager", nopython=True)(module),
}


@pytest.mark.parametrize("tracer", list(TRACERS))
@pytest.mark.parametrize("around", [None, Around, Calling])
def test_other_tracers_see_the_program(tracer: str, around: Any) -> None:
    if around is Around and tracer in ("dynamo", "strict export") and "2.13" in torch.__version__:
        pytest.skip("Dynamo looks for a method's defaults in the dict of another class than it found it in")
    compiled, plain = nets()
    x = torch.randn(2, 4)
    compiled.forward(x)
    graphs = stator.stats().graphs
    made = TRACERS[tracer](compiled if around is None else around(compiled), x)
    if tracer != "trace":  # which compares with what it has traced
        assert stator.stats().graphs == graphs
    assert torch.equal(made(x), plain(x))


def test_what_torch_calls_between_the_hooks() -> None:
    compiled, plain = nets()
    log: list[str] = []
    compiled.register_forward_hook(lambda m, a, r: log.append("hook"))
    x = torch.randn(2, 4)
    assert torch.equal(nn.Module.__call__(compiled, x), plain(x)) and log == ["hook"]
    assert torch.equal(torch.func.functional_call(compiled, dict(plain.named_parameters()), (x,)), plain(x))


def test_unwrapped() -> None:
    """As accelerate does it."""
    compiled, plain = nets()
    model = compiled._orig_mod if isinstance(compiled, torch._dynamo.OptimizedModule) else None
    x = torch.randn(2, 4)
    assert torch.equal(model.forward(x), plain(x)) and not stator.stats().graphs
