"""What one trace has learnt of operations on symbolic sizes, used in others: the same is returned and assumed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given, settings
from hypothesis import strategies as st

import stator
from stator.pytorch.fake.fake_executor import FakeExecutor
from stator.pytorch.fake.memo import MEMO
from tests.pytorch.programs import assert_same

OPERATIONS: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "matmul": lambda x, y: x @ y.transpose(-1, -2),
    "linear": lambda x, y: F.linear(x, torch.ones(5, 8)),
    "norm": lambda x, y: F.layer_norm(x, (8,)),
    "softmax": lambda x, y: x.softmax(-1) + y.softmax(-2),
    "heads": lambda x, y: x.view(*x.shape[:-1], 2, 4).transpose(1, -2),
    "merged": lambda x, y: x.transpose(0, 1).reshape(-1, 8),
    "halves": lambda x, y: torch.cat((-x[..., 4:], x[..., :4]), -1),
    "cat": lambda x, y: torch.cat((x, y), 1),
    "stack": lambda x, y: torch.stack((x, x)).unbind(0)[1],
    "first": lambda x, y: x[:, :3] * 2,
    "from": lambda x, y: x[:, x.shape[1] // 2 :],
    "split": lambda x, y: x.split(2, 1)[0] + x.chunk(2, -1)[0].sum(),
    "strided": lambda x, y: x.transpose(0, 1).contiguous() + y.transpose(0, 1),
    "permuted": lambda x, y: x.permute(2, 0, 1) + y.permute(2, 0, 1),
    "mean": lambda x, y: x.mean(1, keepdim=True) - y.amax((0, 1)),
    "padded": lambda x, y: F.pad(x, (1, 1, 0, 2)),
    "attention": lambda x, y: F.scaled_dot_product_attention(x, y, y),
    "convolution": lambda x, y: F.conv1d(x.transpose(1, 2), torch.ones(3, 8, 3), padding=1),
    "dtype": lambda x, y: (x.double() * y).to(torch.int32),
}
SIZES = st.integers(2, 9)
SHAPES = st.tuples(SIZES, SIZES, SIZES, SIZES) | st.tuples(SIZES, SIZES).map(lambda sizes: sizes * 2)


def tensors(shapes: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(*shapes[:2], 8, requires_grad=True), torch.randn(*shapes[2:], 8)


def told(fn: Any, shapes: tuple[int, ...], swap: bool = False) -> Any:
    """The metadata of all nodes, and what was assumed; the error of a program that fails.

    To `swap` the arguments gives the symbols other names.
    """
    nodes: list[Any] = []

    def backend(gm: Any, inputs: Any) -> Any:
        for node in gm.graph.nodes:
            shown = node.meta.get("example_value")
            for part in shown if isinstance(shown, list | tuple) else (shown,):
                if isinstance(part, torch.Tensor):
                    about = part.dtype, part.device, part.requires_grad, part.is_leaf
                    part = (tuple(part.shape), part.stride(), part.storage_offset(), *about)
                nodes.append((str(node), str(part)))
        return gm.forward

    stator.reset()
    program, args = (lambda y, x: fn(x, y), tensors(shapes)[::-1]) if swap else (fn, tensors(shapes))
    try:
        found = stator.explain(program, backend=backend, dynamic=True)(*args)
    except (RuntimeError, IndexError, ValueError) as e:
        return type(e)
    return nodes, [guard.text for guard in found.out_guards], found.result.shape


def check(fn: Any, learnt: tuple[int, ...], used: tuple[int, ...], swap: bool) -> None:
    MEMO.clear()
    told(fn, learnt)
    found = told(fn, used, swap)
    MEMO.clear()
    assert found == told(fn, used, swap)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=1, max_size=3), SHAPES, SHAPES, st.booleans())
@example(["add"], (4, 5, 4, 5), (3, 5, 4, 5), False)
@example(["first"], (4, 5, 4, 5), (4, 2, 4, 2), False)
@example(["merged", "strided"], (4, 5, 4, 5), (2, 8, 2, 8), True)
def test_programs(names: list[str], learnt: tuple[int, ...], used: tuple[int, ...], swap: bool) -> None:
    def fn(x: Any, y: Any) -> Any:
        return sum(OPERATIONS[name](x, y).sum(-1).sum() * weight for weight, name in enumerate(names, 1))

    check(fn, learnt, used, swap)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name: str) -> None:
    check(OPERATIONS[name], (4, 5, 4, 5), (3, 7, 3, 7), True)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The operations that were run on symbolic sizes."""
    found: list[Any] = []
    run = FakeExecutor.run
    noting = lambda self, f, *rest: (self.shape_env and found.append(f)) or run(self, f, *rest)  # noqa: E731
    monkeypatch.setattr(FakeExecutor, "run", noting)
    MEMO.clear()
    return found


def block(x: Any, y: Any) -> Any:
    q, k, v = F.linear(x, torch.ones(24, 8)).view(*x.shape[:-1], 2, 12).transpose(1, 2).chunk(3, -1)
    x = x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
    return F.layer_norm(x + F.gelu(x * y), (8,))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_another_program_runs_nothing(ran: list[Any], backend: str) -> None:
    first = stator.compile(block, backend="eager", dynamic=True)
    first(*tensors((2, 3, 2, 3)))
    ran.clear()
    compiled = stator.compile(lambda y, x: block(x, y), backend=backend, dynamic=True, fullgraph=True)
    for sizes in ((4, 5) * 2, (2, 7) * 2, (3, 3) * 2):
        results = []
        for fn in (compiled, lambda y, x: block(x, y)):
            torch.manual_seed(0)
            x, y = tensors(sizes)
            result = fn(y, x)
            result.sin().sum().backward()
            results.append((result.detach(), x.grad))
        assert_same(*results, str(sizes), 0.0 if backend == "eager" else 1e-4)
        assert not ran


def first_four(x: Any) -> Any:
    found = x[:, :4]
    return found * found.shape[1]


def test_what_is_known_in_one_trace_is_not_known_in_all() -> None:
    def longer(x: Any) -> Any:
        return first_four(x) if x.shape[1] >= 4 else x

    MEMO.clear()
    stator.compile(longer, backend="eager", dynamic=True)(torch.randn(3, 6))
    compiled = stator.compile(first_four, backend="eager", dynamic=True, fullgraph=True)
    for length in (6, 3, 4, 8, 2):
        x = torch.randn(5, length)
        assert_same(compiled(x), first_four(x), str(length))


def test_a_size_that_another_trace_had_marked() -> None:
    MEMO.clear()
    marked = torch.randn(3, 6)
    stator.mark_dynamic(marked, 1, min=5, max=9)
    stator.compile(first_four, backend="eager", fullgraph=True)(marked)
    compiled = stator.compile(lambda x: first_four(x), backend="eager", dynamic=True, fullgraph=True)
    for length in (6, 3, 11):
        x = torch.randn(5, length)
        assert_same(compiled(x), first_four(x), str(length))
