"""Operations on tensors: what they return, what they change, how they fail; eagerly and compiled."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import stator
from tests.pytorch.programs import agree


def x(*shape: int) -> Any:
    return torch.randn(*(shape or (3, 4)))


def same(fn: Any, *args: Any, **expected: Any) -> Any:
    """The function behaves alike on copies of the arguments."""
    return agree(lambda: (fn, tuple(a.clone() if isinstance(a, torch.Tensor) else a for a in args)), **expected)


FUNCTIONS = {
    "arithmetic": lambda a: (a + 1, 2 - a, a * a, a / 2, 1 / a, a // 2, a % 3, a**2, 2**a, -a, abs(a), +a, a @ a.t()),
    "comparison": lambda a: (a > 0, a == a, a != 1, a <= 0.5, ~(a > 0), (a > 0) & (a < 1), (a > 0) | (a < -1)),
    "reductions": lambda a: (a.sum(), a.mean(0), a.max(1), a.max(1).values, a.min(dim=0)[1], torch.var_mean(a, 1)),
    "views": lambda a: (a.view(-1), a.t(), a.T, a.mT, a[0], a[:, 1:3], a[..., None], a.reshape(2, 6), a.unsqueeze(0)),
    "indexing": lambda a: (a[1, 2], a[[0, 2]], a[torch.tensor([0, 1])], a[-1], a[None], a[::2], a[:, -1]),
    "many results": lambda a: (
        a.split(2),
        a.chunk(2, 1),
        a.unbind(0),
        torch.sort(a),
        torch.topk(a, 2),
        a.tolist is None,
    ),
    "functional": lambda a: (
        F.relu(a),
        F.softmax(a, -1),
        F.layer_norm(a, (4,)),
        F.gelu(a),
        F.pad(a, (1, 1)),
        F.normalize(a),
    ),
    "joining": lambda a: (
        torch.cat([a, a]),
        torch.stack((a, a), dim=1),
        torch.hstack([a, a]),
        torch.einsum("ij,kj->ik", a, a),
    ),
    "Python's types": lambda a: (torch.tensor(0, dtype=int), torch.ones(2, dtype=bool), a.to(dtype=float)),
    "creation": lambda a: (torch.zeros(2), torch.arange(3), torch.full((2,), 5), torch.tensor([1.0, 2]), torch.eye(2)),
    "creation alike": lambda a: (
        torch.empty_like(a).fill_(1),
        a.new_zeros(2),
        torch.ones_like(a),
        a.new_tensor([1, 2]),
    ),
    "operators": lambda a: (torch.ops.aten.add.Tensor(a, a), torch.ops.aten.relu(a)),
    "metadata": lambda a: (
        a.shape,
        a.size(),
        a.size(0),
        a.stride(),
        a.dim(),
        a.ndim,
        a.numel(),
        a.dtype,
        a.is_contiguous(),
    ),
    "more metadata": lambda a: (
        a.device,
        a.layout,
        a.requires_grad,
        a.is_leaf,
        a.is_cuda,
        a.type(),
        a.element_size(),
        len(a),
    ),
    "sizes": lambda a: (
        a.shape[0] * 2,
        a.shape[-1],
        a.shape[:1],
        a.shape.numel(),
        list(a.shape),
        a.shape + (1,),
        str(a.shape),
    ),
    "classes": lambda a: (isinstance(a, torch.Tensor), type(a), torch.is_tensor(a), isinstance(a, torch.nn.Parameter)),
    "known numbers": lambda a: (torch.tensor(3).item(), int(torch.tensor(2)), bool(torch.tensor(True))),
    "dtype objects": lambda a: (
        torch.finfo(a.dtype).max,
        torch.iinfo(torch.int8).min,
        a.dtype.is_floating_point,
        str(a.dtype),
    ),
    "conversions": lambda a: (
        a.double(),
        a.to(torch.int32),
        a.long(),
        a.to("cpu"),
        a.bool(),
        a.type(torch.float16),
        a.half(),
    ),
    "conversions to old types": lambda a: (
        a.type(torch.LongTensor),
        a.type(dtype=torch.HalfTensor),
        a.long().type(a.type()),
    ),
    "iteration": lambda a: [row * i for i, row in enumerate(a)],
    "unpacking": lambda a: (lambda p, q, r: p + q * r)(*a),
    "is compiling": lambda a: (torch.jit.is_scripting(), torch.is_grad_enabled()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    same(FUNCTIONS[name], x())


def test_is_compiling_is_true_inside() -> None:
    compiled = stator.compile(lambda: torch.compiler.is_compiling(), backend="eager")
    assert compiled() is True


def test_results_that_are_their_argument() -> None:
    def fn(a: Any) -> Any:
        b, c, d = a.contiguous(), a.float(), a.to(a.dtype)
        return b is a, c is a, d is a, F.dropout(a, 0.5, False) is a, a.clone() is a

    same(fn, x())


def test_in_place_on_inputs_and_their_views() -> None:
    def fn(a: Any) -> Any:
        a.add_(1)
        b = a.t()
        b.mul_(2)
        a[0] = 7
        a[1, 2] += 3
        c = a.relu_()
        return b, c is a, F.relu(b, inplace=True) is b

    same(fn, x())


def test_out_argument() -> None:
    def fn(a: Any) -> Any:
        out = torch.empty_like(a)
        result = torch.add(a, 1, out=out)
        return out, result is out

    same(fn, x())


def test_an_unused_mutation_is_performed() -> None:
    def fn(a: Any) -> None:
        a.mul_(3)

    same(fn, x(), graphs=1)


def test_an_unused_pure_operation_is_not_captured() -> None:
    def fn(a: Any) -> Any:
        a * 2
        return 5

    same(fn, x(), graphs=0)


def test_unused_random_numbers_are_drawn() -> None:
    def fn(a: Any) -> Any:
        torch.rand(3)
        return F.dropout(a, 0.5), torch.rand(2), torch.randn_like(a), a.bernoulli()

    same(fn, x())


def test_in_place_operation_gives_its_target_a_gradient() -> None:
    def fn(a: Any, w: Any) -> Any:
        b = a.clone()
        v = b[0]
        before = (b.requires_grad, v.requires_grad)
        b.mul_(w)
        return before, b.requires_grad, v.requires_grad, b.is_leaf, b.sum()

    agree(lambda: (fn, (x(), x().requires_grad_())), grad=False)


ERRORS = {
    "shape": lambda a: a.view(7),
    "operand": lambda a: a + "a",
    "broadcast": lambda a: a + torch.ones(5),
    "dimension": lambda a: a.sum(9),
    "index": lambda a: a[5],
    "matmul": lambda a: a @ a,
    "arguments": lambda a: a.relu(1, 2),
    "keyword": lambda a: torch.add(a, a, beta=3),
    "length": lambda a: len(a.sum()),
    "iterate": lambda a: list(a.sum()),
    "unpack": lambda a: (lambda p, q: p)(*a),
    "attribute": lambda a: a.nothing,
    "leaf": lambda a: a.requires_grad_().add_(1),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_eagers_type_and_words(name: str) -> None:
    same(ERRORS[name], x(), breaks=None)


def test_errors_are_caught_inside() -> None:
    def fn(a: Any) -> Any:
        try:
            return a.view(7)
        except RuntimeError as e:
            return str(e), a + 1

    same(fn, x(), graphs=1)


def test_an_error_that_depends_on_contents_is_no_error_of_the_trace() -> None:
    def fn(a: Any, lengths: Any) -> Any:
        packed = torch.nn.utils.rnn.pack_padded_sequence(a, lengths, batch_first=True, enforce_sorted=False)
        return packed.data * 2

    same(fn, x(2, 5, 3), torch.tensor([3, 5]), breaks=None)


BREAKING = {
    "branch": lambda a: a + 1 if a.sum() > 0 else a - 1,
    "branch on a number": lambda a: a + 1 if a.sum().item() > 0 else a - 1,
    "tolist": lambda a: (a.repeat(3, 2).tolist(), a + 1),
    "while": lambda a: [a := a / 2 for _ in range(3) if a.abs().max() > 0.1],
}


@pytest.mark.parametrize("name", BREAKING)
def test_decisions_on_contents_break_the_graph(name: str) -> None:
    assert same(BREAKING[name], x(), breaks=None).graph_breaks > 0


CAPTURED = {
    "item": lambda a: a.sum().item() + a,
    "int": lambda a: torch.zeros(int(a.abs().sum()) + 2),
    "nonzero": lambda a: a.nonzero() + 1,
    "length of a selection": lambda a: a + len(a[a > 0]),
    "a tensor of numbers": lambda a: torch.tensor([int(a.argmax()), 3, a.shape[0]]) * 2,
    "a tensor of floats": lambda a: (torch.tensor([a.max().item(), 3]), torch.tensor(a.max().item())),
    "known contents": lambda a: (torch.tensor([1, 2]).tolist(), a + 1 if (torch.tensor([1, 2]) * 2).sum() > 5 else a),
    "sizes in tensors": lambda a: (
        a.view(torch.div(a.shape[1], 2, rounding_mode="trunc"), -1),
        a[:, : torch.tensor(2)],
    ),
    "mask": lambda a: a[a > 0] * 2,
    "float": lambda a: float(a.sum()) * a,
    "numbers in containers": lambda a: ([a.max().item()], {"n": int(a.argmax())}, a * 2),
    "text of a tensor": lambda a: (str(a), f"{a.sum():.3f} {a[0]}", repr(a.long()), a.add_(1)),
    "text of a number": lambda a: (f"loss {a.mean().item():.4f}!", str(float(a.sum())), a + 1),
    "slice with bounds from tensors": lambda a: a[:, : int((a > 9).sum()) + 2] * 2,
}


@pytest.mark.parametrize("name", CAPTURED)
def test_numbers_made_from_contents_stay_in_the_graph(name: str) -> None:
    same(CAPTURED[name], x(), graphs=1)


def test_printing_a_number_made_from_contents_breaks_nothing(capsys: Any) -> None:
    def fn(a: Any) -> Any:
        print("sum", a.sum().item(), f"{a.max().item():.2f}", round(a.mean().item(), 3))
        return a + 1

    a = x()
    fn(a)
    expected = capsys.readouterr().out
    stator.compile(fn, backend="eager", fullgraph=True)(a)
    assert capsys.readouterr().out == expected


def test_scalars_break_the_graph_if_so_configured() -> None:
    compiled = stator.compile(lambda a: a.sum().item() + a, backend="eager", options={"capture_scalar_outputs": False})
    compiled(x())
    assert stator.stats().graph_breaks == 1


def test_tensors_as_keys_and_by_identity() -> None:
    def fn(a: Any, b: Any) -> Any:
        table = {a: 1, b: 2}
        c = a + b
        table[c] = 3
        return table[a], table[c], a in table, c in table, a is b, [k is c for k in table]

    same(fn, x(), x())


def test_attributes_on_tensors() -> None:
    def fn(a: Any) -> Any:
        b = a + 1
        b.note = "new"
        a.note = "old"
        return b, b.note, hasattr(a, "other"), a.note

    def make() -> Any:
        return (lambda a: (fn(a)[1:], a.note)), (x(),)

    agree(make)
    got = stator.compile(fn, backend="eager")(x())
    assert got[0].note == "new"


def test_one_input_per_tensor() -> None:
    seen = []

    def backend(gm: Any, inputs: Any) -> Any:
        seen.append(len(inputs))
        return gm.forward

    a = x()
    table = {"p": a, "q": [a]}
    stator.compile(lambda t, a: t["p"] + t["q"][0] * a, backend=backend)(table, a)
    assert seen == [1]


def test_an_alias_that_comes_apart_is_compiled_again() -> None:
    compiled = stator.compile(lambda a, b: (a is b, a + b), backend="eager")
    a, b = x(), x()
    assert compiled(a, a)[0] is True
    assert compiled(a, b)[0] is False


def test_gradients_of_inputs_are_read_and_set() -> None:
    def make() -> Any:
        w = x().requires_grad_()
        w.sum().backward()

        def fn(w: Any) -> Any:
            with torch.no_grad():
                g = w.grad * 2
                w.grad = None
                before = w.grad
                w.grad = g
            return before, g + w.grad

        return fn, (w,)

    agree(make)


def test_example_values_and_stack_traces_of_nodes() -> None:
    nodes = []

    def backend(gm: Any, inputs: Any) -> Any:
        nodes.extend(gm.graph.nodes)
        return gm.forward

    stator.compile(lambda a: torch.max(a + 1, 1).values, backend=backend)(x())
    calls = {n.name: n for n in nodes if n.op == "call_function"}
    assert calls["add"].meta["example_value"].shape == (3, 4)
    assert [t.shape for t in calls["max_1"].meta["example_value"]] == [(3,), (3,)]
    assert "test_operations.py" in calls["add"].meta["stack_trace"]
    assert nodes[0].meta["example_value"].dtype is torch.float32


def test_identical_layers_ask_torch_once() -> None:
    from stator.pytorch.fake.memo import MEMO

    net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(11, 11), torch.nn.GELU()) for _ in range(6)])
    before = MEMO.misses
    stator.compile(net, backend="eager")(x(2, 11))
    assert MEMO.misses - before == 3  # the first layer's input needs no gradient


def test_modes_that_see_every_operation_run_eagerly() -> None:
    seen: list[Any] = []

    class Watching(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    class Dispatching(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    compiled = stator.compile(lambda a: a + torch.zeros(4), backend="eager")
    a = x()
    compiled(a)
    for mode in (Watching(), Dispatching()):
        with mode:
            compiled(a)
        assert len(seen) == 2
        seen.clear()
    recompiles = stator.stats().recompiles
    compiled(a)
    assert stator.stats().recompiles == recompiles and not seen


def test_default_devices_are_guarded() -> None:
    compiled = stator.compile(lambda: torch.zeros(3), backend="eager")
    for device in ("cpu", "meta", "cpu"):
        with torch.device(device):
            assert compiled().device.type == device
    assert compiled().device.type == "cpu"


def test_vmap_over_a_compiled_function() -> None:
    compiled = stator.compile(lambda a: a.sum() * 2, backend="eager")
    a = x()
    assert torch.equal(torch.func.vmap(compiled)(a), a.sum(1) * 2)
    assert torch.equal(compiled(a), a.sum() * 2)


class Padding(torch.nn.Module):
    """Decides on a buffer."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("size", torch.tensor(size))

    def forward(self, a: Any) -> Any:
        return a * 2 if self.size // 2 > 1 else a.new_zeros(self.size, 3)


def test_decisions_on_scalars_of_modules() -> None:
    assert same(Padding(3), x()).graphs == 1
    net = Padding(5)
    compiled = stator.compile(net, backend="eager")
    a = x()
    assert torch.equal(compiled(a), a * 2)
    net.size.fill_(2)
    assert compiled(a).shape == (2, 3)
    net.size.fill_(1)
    assert compiled(a).shape == (1, 3)


@pytest.mark.parametrize(("dtype", "breaks"), [(torch.qint8, 0), (torch.qint32, 1)], ids=str)
def test_quantised_results_are_integers_of_the_graph_or_left_to_eager(dtype, breaks):
    def program(x):
        return torch.quantize_per_tensor(x, 0.1, 0, dtype).dequantize() + 1

    x = torch.randn(4)
    assert torch.equal(stator.compile(program, backend="eager")(x), program(x))
    assert [b.code for b in stator.stats().breaks][:1] == ["SB0204"] * breaks


UNIQUE: dict[str, Any] = {
    "rows": lambda a: torch.unique(a, dim=0),
    "columns": lambda a: a.unique(dim=1, return_inverse=True),
    "elements": lambda a: torch.unique(a, return_inverse=True, return_counts=True),
    "runs of rows": lambda a: torch.unique_consecutive(a, dim=0),
    "runs": lambda a: a.unique_consecutive(return_counts=True),
}


@pytest.mark.parametrize("name", UNIQUE)
def test_unique(name: str) -> None:
    same(UNIQUE[name], torch.tensor([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]]))


def test_functions_that_torch_has_under_the_name_of_others() -> None:
    vf: Any = torch._VF  # type: ignore[attr-defined]
    same(lambda a: (vf.split(a, 2, 1), vf.norm(a, 2), vf.cdist(a, a, 2.0, None), vf.einsum("ij->ji", [a])), x())


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
@pytest.mark.parametrize(("dropout", "grad"), [(0.0, False), (0.0, True), (0.5, True)])
def test_recurrent_layers_of_backends_that_take_them_apart(kind: Any, dropout: float, grad: bool) -> None:
    def make() -> Any:
        layer = kind(4, 5, 2, dropout=dropout, batch_first=True)
        return lambda a: layer(a)[0] if grad else layer(a)[0].detach(), (torch.randn(2, 3, 4),)

    agree(make, breaks=None, grad=grad, backend="aot_eager", rtol=1e-5)


def test_a_number_read_twice_is_one_symbol() -> None:
    def program(t: Any, a: Any) -> Any:
        if int(t[0]) != t[0].item():
            raise ValueError
        return a + int(t[1]) - int(t[0])

    def writing(t: Any, a: Any) -> Any:
        before = int(t[0])
        t.add_(1)
        return a + before * 10 + int(t[0])

    agree(lambda: (program, (torch.tensor([2, 3]), torch.ones(4))))
    agree(lambda: (writing, (torch.tensor([2, 3]), torch.ones(4))))


def third(t: Any, a: Any) -> Any:
    return a[int(t)] + 1, a[int(t), 0], [row[int(t)] for row in a], a[:, int(t)]


def beyond(t: Any, a: Any) -> Any:
    return a[:2][int(t)]


@pytest.mark.parametrize("number", [2, 0, -1, 7, -5])
@pytest.mark.parametrize("program", [third, beyond])
def test_a_number_in_a_tensor_as_an_index(program: Any, number: int) -> None:
    make = lambda: (program, (torch.tensor(number), torch.arange(16.0).view(4, 4)))  # noqa: E731
    agree(make)
    if program is third and -4 <= number < 4:
        agree(make, backend="aot_eager")


def test_a_float_tensor_is_no_index():
    def f(a):
        try:
            return list(range(a))
        except TypeError as e:
            return str(e)

    for number in (torch.tensor(2.0), torch.tensor(2)):
        assert stator.compile(f, backend="eager")(number) == f(number)


def test_ids_of_numbers_that_vary():
    class Pair:
        def __init__(self, number):
            self.x = self.y = number

    def f(pair):
        return copy.deepcopy(pair).x

    compiled = stator.compile(f, backend="eager")
    assert [compiled(Pair(number)) for number in (1, 255, 300)] == [1, 255, 300]


def test_identity_of_numbers_that_vary():
    def f(pair):
        return [pair[0]] == [pair[1]], pair[0] is pair[1], pair[0] is None

    compiled = stator.compile(f, backend="eager")
    for pair in ((1, 1), (2, 3), (4, 4), (5, 6)):
        assert compiled(pair) == f(pair)


def test_numbers_in_tensors_made_and_changed_in_the_trace():
    def f(number):
        x = torch.tensor(number)
        x.add_(1)
        try:
            return int(x), float(x), int(x.sum())
        except ValueError as e:
            return str(e)

    for number in (2, 2.5, float("nan")):
        traced = stator.compile(f, backend="eager", fullgraph=True)
        assert traced(number) == f(number)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients_of_masks_without_symbols(backend: str) -> None:
    def program(x: Any, mask: Any) -> Any:
        y = x * 1
        y[mask] = 0
        z = x * 2
        z[mask] = x.sum().reshape(1)
        return y + z

    compiled = stator.compile(program, backend=backend, options={"capture_scalar_outputs": False})
    for size in (4, 5):
        grads = []
        for fn in (program, compiled):
            x = torch.arange(-2.0, size - 2).requires_grad_()
            fn(x, x > 0).sum().backward()
            grads.append(x.grad)
        assert torch.equal(*grads)
