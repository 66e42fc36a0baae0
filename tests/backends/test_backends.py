"""Backends: the registry, what they are handed, what may go wrong."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import stator
from stator import backends


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x: Any) -> Any:
        return self.norm(self.linear(x)).relu()


def test_names() -> None:
    assert {"eager", "aot_eager", "inductor"} <= set(stator.list_backends())


def test_an_unknown_name_is_met_with_advice() -> None:
    with pytest.raises(stator.errors.BackendError, match=r"unknown backend 'inducto'; did you mean 'inductor'\?"):
        stator.compile(lambda x: x, backend="inducto")


def test_backends_of_torchs_registry_are_found() -> None:
    assert callable(backends.lookup_backend("aot_eager_decomp_partition"))


def test_registering() -> None:
    @backends.register_backend(name="mine_for_this_test")
    def mine(gm: Any, inputs: Any) -> Any:
        return lambda *args: tuple(t * 10 for t in gm.forward(*args))

    try:
        assert "mine_for_this_test" in stator.list_backends()
        assert stator.compile(lambda x: x + 1, backend="mine_for_this_test")(torch.ones(1)).item() == 20
    finally:
        backends.registry._registry.pop("mine_for_this_test")


def test_neither_name_nor_callable() -> None:
    with pytest.raises(TypeError, match="a backend is a name or a callable, not int"):
        stator.compile(lambda x: x, backend=3)


def test_options_and_mode_reach_the_backend() -> None:
    seen: dict[str, Any] = {}

    def backend(gm: Any, inputs: Any, **keywords: Any) -> Any:
        seen.update(keywords)
        return gm.forward

    stator.compile(lambda x: x + 1, backend=backend, mode="max-autotune", options={"level": 3})(torch.ones(1))
    assert seen == {"mode": "max-autotune", "options": {"level": 3}}


@pytest.mark.parametrize("options", [None, {"level": 2}])
def test_what_a_backend_wants_done_before_it_is_called(options: Any) -> None:
    calls: list[str] = []

    def mine(gm: Any, example_inputs: Any, **keywords: Any) -> Any:
        calls.append("compile")
        return gm.forward

    prepared: Any = mine
    prepared._dynamo_backend_init = lambda: calls.append("prepare")
    compiled = stator.compile(lambda x: x + 1, backend=prepared, options=options)
    assert calls == ["prepare"]
    compiled(torch.ones(2))
    assert calls == ["prepare", "compile"]


def test_what_a_backend_is_handed() -> None:
    seen: list[Any] = []

    def backend(gm: Any, inputs: Any) -> Any:
        outputs = next(n for n in gm.graph.nodes if n.op == "output")
        seen.append((gm, inputs, type(outputs.args[0]), torch.is_grad_enabled()))
        return gm.forward

    x = torch.ones(2, 4)
    net = Net()
    with torch.no_grad():
        stator.compile(net, backend=backend)(x)
    gm, inputs, kind, grad = seen[0]
    assert kind is tuple and grad is False
    assert inputs[0] is x and any(i is net.linear.weight for i in inputs)
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    assert [n.meta["example_value"].shape for n in placeholders] == [i.shape for i in inputs]
    marks = {i for n, i in zip(placeholders, inputs) if n.meta["tensor_dict"]}
    assert marks == {*net.parameters(), *net.buffers()}


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("mark", [None, stator.mark_dynamic, stator.maybe_mark_dynamic, stator.mark_unbacked])
def test_a_backend_that_fails_whatever_the_sizes_are_is_named(mark: Any, fullgraph: bool) -> None:
    def duck(gm: Any, inputs: Any) -> Any:
        raise RuntimeError("duck!")

    compiled = stator.compile(lambda a, b: a + b, backend=duck, dynamic=mark is None or None, fullgraph=fullgraph)
    given = [torch.ones(6), torch.ones(6)]
    for tensor in given if mark is not None else []:
        mark(tensor, 0)
    for _ in range(2):
        with pytest.raises(stator.BackendError, match="duck!"):
            compiled(*given)


def test_a_failing_backend_is_named() -> None:
    def broken(gm: Any, inputs: Any) -> Any:
        raise KeyError("oh")

    with pytest.raises(stator.errors.BackendError, match=r"backend 'broken' failed: KeyError: 'oh'") as caught:
        stator.compile(lambda x: x + 1, backend=broken)(torch.ones(1))
    assert isinstance(caught.value.__cause__, KeyError)


def _without_symbols(gm: Any, inputs: Any) -> Any:
    if any(isinstance(number, torch.SymInt) for tensor in inputs for number in getattr(tensor, "shape", [tensor])):
        raise NotImplementedError("sizes that vary")
    return gm.forward


def test_a_backend_that_takes_no_symbols() -> None:
    compiled = stator.compile(step, backend=_without_symbols)
    for n in (3, 5, 7):
        x, w = torch.randn(n, 3), torch.randn(3, 3)
        torch.testing.assert_close(compiled(x.clone(), w), step(x.clone(), w))
    assert stator.stats().graphs == 3


def test_what_a_backend_says_of_sizes_that_are_marked_is_told() -> None:
    x, w = torch.randn(4, 3), torch.randn(3, 3)
    torch._dynamo.mark_dynamic(x, 0)
    with pytest.raises(stator.errors.BackendError, match="sizes that vary"):
        stator.compile(step, backend=_without_symbols)(x, w)


def test_a_backend_that_returns_nothing_callable() -> None:
    def useless(gm: Any, inputs: Any) -> Any:
        return None

    with pytest.raises(stator.errors.BackendError, match="backend 'useless' returned NoneType, which is not callable"):
        stator.compile(lambda x: x + 1, backend=useless)(torch.ones(1))


def step(x: Any, w: Any) -> Any:
    x.add_(1)
    with torch.no_grad():
        z = x.sum()
    return torch.relu(x @ w).sum() + z, x.shape[0] * 2, x.t()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [None, True])
def test_training_and_mutation(backend: str, dynamic: bool | None) -> None:
    compiled = stator.compile(step, backend=backend, fullgraph=True, dynamic=dynamic)
    for n in (3, 5, 7, 1):
        x, w = torch.randn(n, 4), torch.randn(4, 5, requires_grad=True)
        x2, w2 = x.clone(), w.detach().clone().requires_grad_()
        got, expected = compiled(x, w), step(x2, w2)
        got[0].backward()
        expected[0].backward()
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close((x, w.grad), (x2, w2.grad))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_modules(backend: str) -> None:
    net = Net()
    other = copy.deepcopy(net)
    compiled = stator.compile(net, backend=backend, fullgraph=True)
    for n in (3, 5, 6):
        x = torch.randn(n, 4)
        got, expected = compiled(x).square().sum(), other(x).square().sum()
        got.backward()
        expected.backward()
        torch.testing.assert_close(got, expected)
    torch.testing.assert_close(net.linear.weight.grad, other.linear.weight.grad)
    torch.testing.assert_close(net.state_dict(), other.state_dict())


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_inputs_that_turn_out_to_share_memory(backend: str) -> None:
    def fn(x: Any, y: Any) -> Any:
        x.add_(1)
        return y * 2

    compiled = stator.compile(fn, backend=backend)
    compiled(torch.ones(3), torch.ones(3))
    x = torch.ones(3)
    assert compiled(x, x).tolist() == [4, 4, 4]
    memory = torch.ones(6)
    assert compiled(memory[:3], memory[1:4]).tolist() == [4, 4, 2]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_numbers_from_contents(backend: str) -> None:
    def fn(x: Any) -> Any:
        n = int(x.sum())
        return torch.zeros(n).fill_(2), x + n, x[x > 1]

    compiled = stator.compile(fn, backend=backend, fullgraph=True)
    for x in (torch.tensor([1, 2]), torch.tensor([3, 4]), torch.tensor([0, 0])):
        torch.testing.assert_close(compiled(x), fn(x))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_numbers_that_vary(backend: str) -> None:
    def fn(x: Any, k: float, n: int) -> Any:
        return x * k + n

    compiled = stator.compile(fn, backend=backend)
    for k, n in ((0.5, 2), (0.25, 3), (1.75, 4), (-2.5, 7)):
        torch.testing.assert_close(compiled(torch.ones(3), k, n), fn(torch.ones(3), k, n))
    assert stator.stats().graphs == 2


def test_unknown_inductor_options() -> None:
    with pytest.raises(stator.errors.ConfigError, match="unknown option 'no_such'"):
        stator.compile(lambda x: x + 1, backend="inductor", options={"no_such": 1})(torch.ones(1))
    with pytest.raises(stator.errors.ConfigError, match="unknown mode 'fastest'"):
        stator.compile(lambda x: x + 1, backend="inductor", mode="fastest")(torch.ones(1))
