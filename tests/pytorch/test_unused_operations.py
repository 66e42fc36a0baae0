"""Operations whose results nobody uses: what they raise is raised all the same.

`VALUES` fail because of what their operands hold, `KINDS` because of the operands' types, which fake tensors accept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import stator

BACKENDS = ["eager", "aot_eager"]


def matrix(*rows: int) -> torch.Tensor:
    return torch.tensor([[float(n) for n in str(row)] for row in rows])


def indices(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers)


def floats(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float32)


TABLE = matrix(12, 34, 56)
SINGULAR = matrix(11, 11)
REGULAR = matrix(21, 13)

#: what is called, and operands with which it returns and with which it raises
VALUES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
    "getitem": (lambda x, i: x[i], (TABLE, indices(0, 2)), (TABLE, indices(0, 7))),
    "getitem 2": (lambda x, i: x[:, i], (TABLE, indices(0, 1)), (TABLE, indices(0, 7))),
    "getitem then": (lambda x, i: (x[i] * 2).sum(), (TABLE, indices(0, 2)), (TABLE, indices(0, 7))),
    "setitem": (lambda x, i: x.clone().index_put((i,), x[0]), (TABLE, indices(0, 2)), (TABLE, indices(0, 7))),
    "setitem of a copy": (lambda x, i: x.clone().__setitem__(i, 1.0), (TABLE, indices(0)), (TABLE, indices(7))),
    "embedding": (lambda x, i: F.embedding(i, x), (TABLE, indices(0, 2)), (TABLE, indices(0, 7))),
    "embedding_bag": (
        lambda x, i: F.embedding_bag(i, x, indices(0)),
        (TABLE, indices(0, 2)),
        (TABLE, indices(0, 7)),
    ),
    "gather": (lambda x, i: x.gather(0, i), (TABLE, indices(0, 2)[None]), (TABLE, indices(0, 7)[None])),
    "take": (lambda x, i: x.take(i), (TABLE, indices(0, 2)), (TABLE, indices(0, 70))),
    "put": (lambda x, i: x.put(i, floats(1, 2)), (TABLE, indices(0, 2)), (TABLE, indices(0, 70))),
    "index_select": (lambda x, i: x.index_select(0, i), (TABLE, indices(0, 2)), (TABLE, indices(0, 7))),
    "index_add": (lambda x, i: x.index_add(0, i, x[:2]), (TABLE, indices(0, 2)), (TABLE, indices(0, 7))),
    "index_copy": (lambda x, i: x.index_copy(0, i, x[:2]), (TABLE, indices(0, 2)), (TABLE, indices(0, 7))),
    "index_fill": (lambda x, i: x.index_fill(0, i, 2.0), (TABLE, indices(0, 2)), (TABLE, indices(0, 7))),
    "index_reduce": (
        lambda x, i: x.index_reduce(0, i, x[:2], "prod"),
        (TABLE, indices(0, 2)),
        (TABLE, indices(0, 7)),
    ),
    "scatter": (lambda x, i: x.scatter(0, i, 1.0), (TABLE, indices(0, 2)[None]), (TABLE, indices(0, 7)[None])),
    "scatter_add": (lambda x, i: x.scatter_add(0, i, x), (TABLE, indices(0, 2)[None]), (TABLE, indices(0, 7)[None])),
    "scatter_reduce": (
        lambda x, i: x.scatter_reduce(0, i, x, "sum"),
        (TABLE, indices(0, 2)[None]),
        (TABLE, indices(0, 7)[None]),
    ),
    "masked_scatter": (
        lambda x, m: x.masked_scatter(m, floats(1, 2)),
        (TABLE, TABLE > 4),
        (TABLE, TABLE > 1),
    ),
    "one_hot": (lambda i: F.one_hot(i, 3), (indices(0, 2),), (indices(0, 7),)),
    "one_hot negative": (lambda i: F.one_hot(i, 3), (indices(0, 2),), (indices(0, -1),)),
    "inv": (torch.linalg.inv, (REGULAR,), (SINGULAR,)),
    "inverse": (torch.inverse, (REGULAR,), (SINGULAR,)),
    "solve": (lambda a: torch.linalg.solve(a, a), (REGULAR,), (SINGULAR,)),
    "matrix_power": (lambda a: torch.linalg.matrix_power(a, -2), (REGULAR,), (SINGULAR,)),
    "cholesky": (torch.linalg.cholesky, (torch.eye(2),), (-torch.eye(2),)),
    "eig": (torch.linalg.eig, (REGULAR,), (REGULAR / 0,)),
    "lu_factor": (torch.linalg.lu_factor, (REGULAR,), (SINGULAR,)),
    "ldl_factor": (torch.linalg.ldl_factor, (torch.eye(2),), (torch.zeros(2, 2),)),
    "tensorinv": (lambda a: torch.linalg.tensorinv(a, 1), (REGULAR,), (SINGULAR,)),
    "nll_loss": (lambda x, i: F.nll_loss(x, i), (TABLE, indices(0, 1, 1)), (TABLE, indices(0, 1, 2))),
    "cross_entropy": (lambda x, i: F.cross_entropy(x, i), (TABLE, indices(0, 1, 1)), (TABLE, indices(0, 1, 2))),
    "multi_margin_loss": (
        lambda x, i: F.multi_margin_loss(x, i),
        (TABLE, indices(0, 1, 1)),
        (TABLE, indices(0, 1, 2)),
    ),
    "multilabel_margin_loss": (
        lambda x, i: F.multilabel_margin_loss(x, i),
        (TABLE[0], indices(0, -1)),
        (TABLE[0], indices(0, 7)),
    ),
    "binary_cross_entropy": (
        lambda x, y: F.binary_cross_entropy(x, y),
        (floats(0.5), floats(1)),
        (floats(1.5), floats(1)),
    ),
    "multinomial": (lambda p: torch.multinomial(p, 1), (floats(1, 2),), (floats(-1, 2),)),
    "bernoulli": (torch.bernoulli, (floats(0.5),), (floats(1.5),)),
    "poisson": (torch.poisson, (floats(0.5),), (floats(-1.5),)),
    "normal": (lambda s: torch.normal(0.0, s), (floats(0.5),), (floats(-1.5),)),
    "floor_divide": (lambda x, y: x // y, (indices(1), indices(1)), (indices(1), indices(0))),
    "remainder": (lambda x, y: x % y, (indices(1), indices(1)), (indices(1), indices(0))),
    "fmod": (torch.fmod, (indices(1), indices(1)), (indices(1), indices(0))),
    "div": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), (indices(1), indices(1)), (indices(1), indices(0))),
    "histc": (lambda x: torch.histc(x), (floats(1, 2),), (floats(1, float("nan")),)),
    "quantile": (lambda q: torch.quantile(TABLE, q), (floats(0.5),), (floats(1.5),)),
    "searchsorted": (
        lambda i: torch.searchsorted(floats(1, 2), floats(1), sorter=i),
        (indices(0, 1),),
        (indices(0, 7),),
    ),
    "max_unpool2d": (
        lambda i: F.max_unpool2d(torch.ones(1, 1, 1, 1), i, 2),
        (torch.zeros(1, 1, 1, 1, dtype=torch.int64),),
        (torch.full((1, 1, 1, 1), 7),),
    ),
    "cdist and index": (lambda x, i: torch.cdist(x, x)[i], (TABLE, indices(0, 2)), (TABLE, indices(0, 7))),
    "zeros of it": (lambda x, i: torch.zeros_like(x[i]), (TABLE, indices(0, 2)), (TABLE, indices(0, 7))),
    "overwritten": (lambda x, i: x[i].zero_(), (TABLE, indices(0, 2)), (TABLE, indices(0, 7))),
    "copied over": (lambda x, i: x[i].copy_(x[:2]), (TABLE, indices(0, 2)), (TABLE, indices(0, 7))),
    "filled": (lambda x, i: x[i].fill_(1), (TABLE, indices(0, 2)), (TABLE, indices(0, 7))),
    "assert_async": (lambda x: torch._assert_async(x), (floats(1),), (floats(0),)),
    "lu_unpack": (
        lambda p: torch.lu_unpack(REGULAR, p),
        (torch.tensor([1, 2], dtype=torch.int32),),
        (torch.tensor([7, 9], dtype=torch.int32),),
    ),
    "segment_reduce": (
        lambda n: torch.segment_reduce(floats(1, 2), "sum", lengths=n),
        (indices(1, 1),),
        (indices(1, 7),),
    ),
    "bincount": (lambda x: torch.bincount(x, minlength=3), (indices(1),), (indices(-1),)),
    "repeat_interleave": (
        lambda n: torch.repeat_interleave(floats(1, 2), n, output_size=2),
        (indices(1, 1),),
        (indices(1, -1),),
    ),
    "narrow": (lambda x, i: torch.narrow(x, 0, i, 1), (TABLE, torch.tensor(1)), (TABLE, torch.tensor(7))),
    "int": (lambda x, i: x[int(i)], (TABLE, torch.tensor(1)), (TABLE, torch.tensor(7))),
}

MATRIX, DOUBLE, WHOLE = REGULAR, REGULAR.double(), REGULAR.long()
IMAGE = torch.ones(1, 1, 2, 2)

KINDS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "matmul": (lambda x, y: x @ y, (MATRIX, DOUBLE)),
    "mm of bools": (torch.mm, (MATRIX > 1, MATRIX > 1)),
    "bmm": (torch.bmm, (MATRIX[None], DOUBLE[None])),
    "addmm": (torch.addmm, (MATRIX, MATRIX, DOUBLE)),
    "addmm's sum": (torch.addmm, (MATRIX[None], MATRIX, MATRIX)),
    "baddbmm": (torch.baddbmm, (MATRIX[None], MATRIX[None], DOUBLE[None])),
    "mv": (torch.mv, (MATRIX, DOUBLE[0])),
    "dot": (torch.dot, (MATRIX[0], DOUBLE[0])),
    "linear": (F.linear, (MATRIX, DOUBLE)),
    "linear's bias": (F.linear, (MATRIX, MATRIX, DOUBLE[0])),
    "einsum": (lambda x, y: torch.einsum("ij,jk->ik", x, y), (MATRIX, DOUBLE)),
    "conv2d": (F.conv2d, (IMAGE, IMAGE.double())),
    "conv2d of ints": (F.conv2d, (IMAGE.long(), IMAGE.int())),
    "layer_norm": (lambda x, w: F.layer_norm(x, (2,), w), (MATRIX, DOUBLE[0])),
    "batch_norm": (lambda x, m: F.batch_norm(x, m, m), (MATRIX, torch.ones(3))),
    "attention": (F.scaled_dot_product_attention, (IMAGE, IMAGE.double(), IMAGE)),
    "cdist": (torch.cdist, (TABLE.half(), TABLE.half())),
    "or": (lambda x, y: x | y, (MATRIX, MATRIX)),
    "in-place or": (lambda x: x.clone().__ior__(1), (MATRIX,)),
    "gcd": (torch.gcd, (MATRIX, MATRIX)),
    "lerp": (torch.lerp, (MATRIX, DOUBLE, 0.5)),
    "index_add": (lambda x, y: x.index_add(0, indices(0, 1), y), (MATRIX, DOUBLE)),
    "scatter": (lambda x, y: x.scatter(0, indices(0, 1)[None], y), (MATRIX, DOUBLE)),
    "index_put": (lambda x, y: x.index_put((indices(0, 1),), y), (MATRIX, DOUBLE)),
    "masked_scatter": (lambda x, y: x.masked_scatter(x > 1, y), (MATRIX, DOUBLE)),
    "solve": (torch.linalg.solve, (MATRIX, DOUBLE)),
    "softmax of ints": (lambda x: torch.softmax(x, 0), (WHOLE,)),
    "uniform of ints": (lambda x: x.clone().uniform_(), (WHOLE,)),
    "arange of bools": (lambda: torch.arange(3, dtype=torch.bool), ()),
    "max of nothing": (lambda x: x[:0].max(), (MATRIX,)),
    "binary_cross_entropy": (F.binary_cross_entropy, (torch.sigmoid(MATRIX), torch.sigmoid(DOUBLE))),
}


def raised(function: Callable[..., Any], *args: Any) -> tuple[type, str] | None:
    try:
        function(*args)
    except Exception as error:
        return type(error), str(error)
    return None


def programs(operation: Callable[..., Any]) -> list[Callable[..., Any]]:
    """With the result used and not, and inside of a `try`."""

    def used(*args: Any) -> Any:
        return operation(*args)

    def unused(*args: Any) -> int:
        operation(*args)
        return 1

    def handled(*args: Any) -> Any:
        seen = []
        try:
            operation(*args)
            seen.append("returned")
        except Exception as error:
            seen.append((type(error), str(error)))
        finally:
            seen.append("done")
        raise KeyError(*seen)

    return [used, unused, handled]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", VALUES)
def test_values(name: str, backend: str) -> None:
    operation, good, bad = VALUES[name]
    assert raised(operation, *good) is None and raised(operation, *bad) is not None
    for program in programs(operation):
        compiled = stator.compile(program, backend=backend)
        for args in (good, bad, good):
            assert raised(compiled, *args) == raised(program, *args), program.__name__


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", KINDS)
def test_kinds(name: str, backend: str) -> None:
    operation, args = KINDS[name]
    assert raised(operation, *args) is not None
    for program in programs(operation):
        assert raised(stator.compile(program, backend=backend), *args) == raised(program, *args), program.__name__


@pytest.mark.parametrize("backend", BACKENDS)
def test_with_gradients(backend: str) -> None:
    def program(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        x[i].exp()
        return (x * 2).sum()

    compiled = stator.compile(program, backend=backend, fullgraph=True)
    x = TABLE.clone().requires_grad_()
    compiled(x, indices(0, 1)).backward()
    assert torch.equal(x.grad, torch.full((3, 2), 2.0))
    assert raised(compiled, x, indices(7)) == raised(program, x, indices(7))


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_was_written_before(backend: str) -> None:
    def program(x: torch.Tensor, i: torch.Tensor, log: list[int]) -> int:
        log.append(1)
        x.add_(1)
        x[i]
        log.append(2)
        return x.mul_(2)

    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for i in (indices(0), indices(7), indices(1)):
        seen = []
        for function in (program, compiled):
            x, log = TABLE.clone(), []
            seen.append((raised(function, x, i, log), x.tolist(), log))
        assert seen[0] == seen[1]


def test_under_autocast_types_are_what_it_makes_of_them() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return x @ y

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    assert compiled(MATRIX, MATRIX.bfloat16()).dtype is torch.bfloat16


class Kept:
    """A backend that keeps the graph."""

    def __call__(self, gm: Any, example_inputs: Any) -> Any:
        self.gm = gm
        return gm.forward

    def outputs(self) -> int:
        return len(next(node for node in self.gm.graph.nodes if node.op == "output").args[0])

    def calls(self) -> int:
        return sum(node.op.startswith("call") for node in self.gm.graph.nodes)


def test_what_cannot_fail_is_dropped() -> None:
    embed, norm = torch.nn.Embedding(4, 2), torch.nn.LayerNorm(2)
    linear, conv = torch.nn.Linear(2, 2), torch.nn.Conv1d(2, 2, 1)

    def program(ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = norm(embed(ids))
        mask = torch.arange(3000)[None] < y.sum().long()
        mask.float().masked_fill(mask, -1e9)
        torch.cat([x, x], -1).softmax(-1)
        F.gelu(linear(x)).mean()
        conv(x.transpose(1, 2))
        torch.tril(torch.ones(3, 3)).cumsum(0)
        x.to(torch.float64).half().view(-1)[1:].split(2)
        F.dropout(x, training=False).std(-1)
        F.max_pool1d(x, 2)
        torch.zeros(3, 4).repeat(2, 2).topk(2)
        return linear(x)

    backend = Kept()
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    args = torch.tensor([[0, 3]]), TABLE
    assert torch.equal(compiled(*args), program(*args))
    assert backend.outputs() == 1
    assert backend.calls() == 3  # embedding, layer_norm, linear


def test_what_goes_into_a_result_is_no_result_itself() -> None:
    def program(x: torch.Tensor, i: torch.Tensor, state: torch.Tensor) -> Any:
        y = torch.zeros(2, 2)
        y.add_(x[i])
        state.copy_(x.gather(0, i[None]))
        z = y.view(-1)
        z[0] = 1
        z.index_add_(0, i, x[0])
        return y, F.cross_entropy(x, torch.tensor([0, 1, 1]))

    backend = Kept()
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    state = torch.zeros(1, 2)
    compiled(TABLE, indices(0, 1), state)
    assert backend.outputs() == 2
    assert torch.equal(state, TABLE.gather(0, indices(0, 1)[None]))
