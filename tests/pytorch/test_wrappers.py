"""Wrappers: tensors that hold others, and whose class says in `__torch_dispatch__` what operations do to these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import return_and_correct_aliasing

import stator
from tests.pytorch.programs import assert_same


class Pair(torch.Tensor):
    """Two tensors on which each operation is performed; `note` belongs to the context."""

    @staticmethod
    def __new__(cls, a: Any, b: Any, note: Any = None) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, a.shape, strides=a.stride(), dtype=a.dtype, device=a.device, requires_grad=a.requires_grad
        )

    def __init__(self, a: Any, b: Any, note: Any = None) -> None:
        self.a = a
        self.b = b
        self.note = note

    def __tensor_flatten__(self) -> Any:
        return ["a", "b"], self.note

    @staticmethod
    def __tensor_unflatten__(inner: Any, note: Any, size: Any, stride: Any) -> Any:
        return Pair(inner["a"], inner["b"], note)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        note = next(x.note for x in pytree.tree_leaves(args) if isinstance(x, Pair))
        first = pytree.tree_map(lambda x: x.a if isinstance(x, Pair) else x, (args, kwargs))
        second = pytree.tree_map(lambda x: x.b if isinstance(x, Pair) else x, (args, kwargs))
        results, spec = pytree.tree_flatten(func(*first[0], **first[1]))
        others, _ = pytree.tree_flatten(func(*second[0], **second[1]))
        made = [Pair(x, y, note) if isinstance(x, torch.Tensor) else x for x, y in zip(results, others, strict=True)]
        return return_and_correct_aliasing(func, args, kwargs, pytree.tree_unflatten(made, spec))

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Pair({self.a!r}, {self.b!r})"

    def doubled(self) -> Any:
        return self * 2

    @property
    def total(self) -> Any:
        return self.a.sum() + self.b.sum()


class Quantised(torch.Tensor):
    """A weight of integers and a scale; a linear layer multiplies with what it stands for."""

    @staticmethod
    def __new__(cls, integers: Any, scale: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, integers.shape, dtype=scale.dtype)

    def __init__(self, integers: Any, scale: Any) -> None:
        self.integers = integers
        self.scale = scale

    def __tensor_flatten__(self) -> Any:
        return ["integers", "scale"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
        return Quantised(inner["integers"], inner["scale"])

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Quantised({self.integers!r}, {self.scale!r})"

    def dequantise(self) -> Any:
        return self.integers.to(self.scale.dtype) * self.scale

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.linear:
            return func(args[0], args[1].dequantise(), *args[2:])
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.detach.default:
            return Quantised(args[0].integers, args[0].scale)
        raise NotImplementedError(func)


def parts(value: Any) -> Any:
    """What can be compared: a wrapper as the tensors in it."""
    if isinstance(value, Pair):
        return ["Pair", parts(value.a), parts(value.b), value.note, value.requires_grad, tuple(value.shape)]
    if isinstance(value, TwoTensor):
        return ["TwoTensor", parts(value.a), parts(value.b), value.requires_grad, tuple(value.shape)]
    if isinstance(value, torch.Tensor) and value.is_nested:
        return ["jagged", parts(value.values()), parts(value.offsets())]
    if isinstance(value, list | tuple):
        return [parts(item) for item in value]
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def agree(
    program: Callable[..., Any],
    make: Callable[[int], tuple[Any, ...]],
    *,
    backend: str,
    grad: bool = False,
    fullgraph: bool = True,
) -> None:
    """The program does the same compiled, at three sizes: results, what it changes, gradients."""

    def outcomes(run: Callable[..., Any]) -> list[Any]:
        torch.manual_seed(3)
        found = []
        for size in (2, 4, 1):
            args = make(size)
            result = run(*args)
            found.append([parts(result), parts(args)])
            if grad:
                result.sum().backward()
                found.append([parts(arg.grad) for arg in args])
        return found

    expected = outcomes(program)
    stator.reset()
    assert_same(outcomes(stator.compile(program, backend=backend, fullgraph=fullgraph)), expected, "outcomes")


def pair(n: int, note: Any = "note") -> Any:
    return Pair(torch.randn(n, 3), torch.randn(n, 3), note)


def plain(n: int) -> Any:
    return torch.randn(n, 3)


def written(x: Any) -> Any:
    x.add_(1)
    return x * 2


def written_inside(x: Any) -> Any:
    x.a.mul_(2)
    return x + 1


def written_by_a_view(x: Any) -> Any:
    x.view(-1).mul_(2)
    return x + 1


EXISTING: dict[str, Callable[[Any], Any]] = {
    "operations": lambda x: (x * 2).sin().sum(0),
    "several results": lambda x: x.max(dim=1),
    "attributes": lambda x: ((x * 2).a + 1, x.a - x.b, x.a is x.a, x.note, (x + 1).note),
    "metadata": lambda x: (x.shape, x.dtype, x.stride(), type(x) is Pair, isinstance(x * 2, Pair), x.requires_grad),
    "methods and properties": lambda x: (x.doubled(), x.total, (x * 3).total),
    "passed through": lambda x: (x, x.a, x + 1),
    "views": lambda x: (x.t().contiguous().view(-1), x[0], x.unsqueeze(0)),
    "written": written,
    "what is inside is written": written_inside,
    "written by a view": written_by_a_view,
    "made inside": lambda x: (Pair(x.a + 1, x.b, 3) * 2, Pair(x.a, x.b, 4), Pair(x.b, x.a).doubled().a),
    "inside of another": lambda x: Pair(x * 2, x + 1) * 3,
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", EXISTING)
def test_existing(name: str, backend: str) -> None:
    agree(EXISTING[name], lambda n: (pair(n),), backend=backend)


MADE: dict[str, Callable[[Any, Any], Any]] = {
    "an operation": lambda x, y: (Pair(x, y) * 2).a + 1,
    "returned": lambda x, y: Pair(x, y),
    "of what is computed": lambda x, y: (Pair(x + 1, y), Pair(x + 1, y * 2) + 1),
    "used and returned": lambda x, y: (w := Pair(x + 1, y), w * 2, w.a),
    "written": lambda x, y: Pair(x + 1, y + 1).add_(2),
    "with another attribute": lambda x, y: setattr(w := Pair(x, y), "note", 5) or (w * 2).note,
    "of the two": lambda x, y: TwoTensor(x, y) * TwoTensor(y, x),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", MADE)
def test_made_inside(name: str, backend: str) -> None:
    agree(MADE[name], lambda n: (plain(n), plain(n)), backend=backend)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_together_with_plain_tensors(backend: str) -> None:
    agree(lambda x, y: (x * y, y - x, y + x.a), lambda n: (pair(n), plain(n)), backend=backend)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradient(backend: str) -> None:
    agree(lambda x: (x * 2).exp(), lambda n: (pair(n).requires_grad_(),), backend=backend, grad=True)


class Paired(torch.autograd.Function):
    """Makes a wrapper of two tensors, which get gradients."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        return Pair(a, b)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad.a, grad.b


class Added(torch.autograd.Function):
    """Takes a wrapper apart."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.a + x.b

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return Pair(grad, grad * 2)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_autograd_functions(backend: str) -> None:
    def leaves(n: int) -> Any:
        return plain(n).requires_grad_(), plain(n).requires_grad_()

    agree(lambda a, b: Added.apply(Paired.apply(a, b) * 2) * 3, leaves, backend=backend, grad=True)
    agree(lambda x: Added.apply(x * 2) * 3, lambda n: (pair(n).requires_grad_(),), backend=backend, grad=True)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_training(backend: str) -> None:
    def steps(compile_: Callable[[Any], Any]) -> Any:
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 4)
        layer.weight = torch.nn.Parameter(Pair(torch.randn(4, 3), torch.randn(4, 3)))
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        run, found = compile_(layer), []
        for n in (5, 5, 2):
            loss = run(plain(n)).sum()
            loss.backward()
            found.append(parts([loss.detach(), layer.weight.grad, layer.bias.grad]))
            optimizer.step()
            optimizer.zero_grad()
        return found

    expected = steps(lambda layer: layer)
    stator.reset()
    assert_same(steps(lambda layer: stator.compile(layer, backend=backend, fullgraph=True)), expected, "steps")


def test_inductor() -> None:
    agree(lambda x: (x * 2 + 1).a, lambda n: (pair(n),), backend="inductor")


class Projection(torch.nn.Module):
    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weight, requires_grad=False)

    def forward(self, x: Any) -> Any:
        return torch.nn.functional.linear(x, self.weight)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_parameters(backend: str) -> None:
    projection = Projection(pair(5))
    agree(lambda x: projection(x).b, lambda n: (plain(n),), backend=backend)
    quantised = Projection(Quantised(torch.randint(-8, 8, (4, 3), dtype=torch.int8), torch.rand(4, 1)))
    agree(quantised, lambda n: (plain(n),), backend=backend)


def test_what_is_inside_is_guarded() -> None:
    run = stator.compile(lambda x: (x * 2).a + x.shape[0], backend="eager", fullgraph=True)
    x = pair(2)

    def entries() -> int:
        assert_same(parts(run(x)), parts(x.a * 2 + x.shape[0]), "result")
        return int(stator.stats().graphs)

    stator.reset()
    assert entries() == entries() == 1
    x.a = torch.randn(2, 3)
    assert entries() == 1
    x.b = torch.randn(2, 3, dtype=torch.float64)
    assert entries() == 2
    x.note = "another"
    assert entries() == 3
    x.note = "note"
    assert entries() == 3


def test_an_attribute_of_a_wrapper_in_use_is_not_set() -> None:
    def program(x: Any) -> Any:
        y = x * 2
        y.a = x.b
        return y + 1

    agree(program, lambda n: (pair(n),), backend="eager", fullgraph=False)
    with pytest.raises(stator.GraphBreakError, match="SB0109"):
        stator.compile(program, backend="eager", fullgraph=True)(pair(2))


def test_writing_what_a_wrapper_made_inside_holds() -> None:
    agree(lambda x, y: (Pair(x, y).add_(1).a, x), lambda n: (plain(n), plain(n)), backend="eager", fullgraph=False)


# -- jagged tensors ---------------------------------------------------------------------------------------------------


def jagged(n: int, **options: Any) -> Any:
    return torch.nested.nested_tensor([plain(n), plain(n + 1)], layout=torch.jagged, **options)


def jagged_parts(x: Any) -> Any:
    return type(x), [t.detach().clone() for t in x.unbind()]


_linear = torch.nn.Linear(3, 4)
JAGGED: dict[str, Callable[[Any], Any]] = {
    "values": lambda x: (x * 2).values() + 1,
    "padded": lambda x: torch.nested.to_padded_tensor(x.sin(), 0.0),
    "reduced": lambda x: x.sum(dim=1),
    "metadata": lambda x: (x.shape[0], x.shape[-1], x.dim(), x.is_nested, x.size(0), x.offsets()),
    "ragged sizes": lambda x: (x.shape[1] == x.shape[1], (x * 2).shape[1] == x.shape[1]),
    "linear": lambda x: _linear(x).values(),
    "made of tensors": lambda x: torch.nested.nested_tensor([x.values(), x.values()], layout=torch.jagged).values() + 1,
    "made of values": lambda x: (torch.nested.nested_tensor_from_jagged(x.values(), x.offsets()) * 2).values(),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", JAGGED)
def test_jagged(name: str, backend: str) -> None:
    agree(lambda x: JAGGED[name](x), lambda n: (jagged(n),), backend=backend)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_jagged_result_and_gradient(backend: str) -> None:
    def program(x: Any) -> Any:
        return (x * 2).exp()

    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for n in (2, 4):
        torch.manual_seed(1)
        x = jagged(n, requires_grad=True)
        torch.manual_seed(1)
        y = jagged(n, requires_grad=True)
        expected, got = program(x), compiled(y)
        assert_same(list(jagged_parts(got)), list(jagged_parts(expected)), "result")
        expected.values().sum().backward()
        got.values().sum().backward()
        assert_same(list(jagged_parts(y.grad)), list(jagged_parts(x.grad)), "gradient")


def attended(x: Any) -> Any:
    heads = (x * 2).unflatten(-1, (2, 4)).transpose(1, 2)
    out = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
    return out.transpose(1, 2).flatten(-2).sin()


def attended_twice(x: Any) -> Any:
    return attended(attended(x))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", [attended, attended_twice])
@pytest.mark.parametrize("grad", [False, True])
def test_attention_on_jagged_tensors_breaks_once(program: Any, backend: str, grad: bool) -> None:
    compiled = stator.compile(program, backend=backend)
    for n in (2, 4, 3):
        outcomes = []
        for run in (program, compiled):
            torch.manual_seed(n)
            rows = [torch.randn(n, 8), torch.randn(n + 1, 8)]
            x = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=grad)
            result = run(x).values()
            if grad:
                result.sum().backward()
            outcomes.append([result.detach(), *([x.grad.values()] if grad else [])])
        torch.testing.assert_close(*outcomes, rtol=1e-4, atol=1e-5)
        if n == 2 and program is attended:
            assert [(b.code, b.count) for b in stator.stats().breaks] == [("SB0115", 1)]


def test_jagged_tensors_of_common_offsets() -> None:
    program = stator.compile(lambda x, y: x.shape == y.shape, backend="eager", fullgraph=True)
    x = jagged(2)
    assert program(x, x * 2) is True
    assert program(x, jagged(2)) is False
    assert program(x, x * 2) is True


# -- what __torch_dispatch__ does besides computing -------------------------------------------------------------------

CALLS: list[Any] = []
SETTINGS = {"factor": 1}


class Acting(torch.Tensor):
    """A wrapper of one tensor; `act` is called for each operation."""

    act: Callable[[Any], Any] = staticmethod(lambda func: None)

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Acting({self.inner!r})"

    def __tensor_flatten__(self) -> Any:
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
        return Acting(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.act(func)
        inner = [arg.inner if isinstance(arg, Acting) else arg for arg in args]
        return Acting(func(*inner, **(kwargs or {})) * SETTINGS["factor"])


def local_list(func: Any) -> None:
    names: list[str] = []
    names.append(func.__name__ + str(func) + func._schema.name)


def appending(func: Any) -> None:
    CALLS.append(func)


def printing(func: Any) -> None:
    print("performing", func)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("act", [local_list, appending, printing])
def test_what_dispatch_does_is_done_as_in_eager(act: Any, backend: str, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(Acting, "act", staticmethod(act))

    def program(x: Any) -> Any:
        return (x * 2 + 1).inner

    def outcome(run: Any) -> Any:
        CALLS.clear()
        results = [run(Acting(torch.arange(3.0))) for _ in range(3)]
        return results, [str(func) for func in CALLS], capsys.readouterr().out

    expected = outcome(program)
    stator.reset()
    assert_same(list(outcome(stator.compile(program, backend=backend))), list(expected), "outcome")
    assert (stator.stats().graph_breaks == 0) is (act is local_list)
    if act is not local_list:
        with pytest.raises(stator.GraphBreakError, match=r"SB0207: .*'Acting'.* does more\s+than compute"):
            stator.compile(program, backend=backend, fullgraph=True)(Acting(torch.arange(3.0)))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_dispatch_reads_is_guarded(backend: str, monkeypatch: Any) -> None:
    run = stator.compile(lambda x: (x + 1).inner, backend=backend, fullgraph=True)
    x = Acting(torch.arange(3.0))
    for factor in (1, 3, 2):
        monkeypatch.setitem(SETTINGS, "factor", factor)
        assert_same(run(x), (x + 1).inner, "result")


SCALE = torch.full((), 3.0)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_tensors_that_dispatch_is_not_given(backend: str, monkeypatch: Any) -> None:
    monkeypatch.setitem(SETTINGS, "factor", SCALE)
    run = stator.compile(lambda x: (x + 1).inner, backend=backend)
    x = Acting(torch.arange(3.0))
    for number in (3.0, 4.0):
        SCALE.fill_(number)
        assert_same(run(x), (x + 1).inner, "result")
