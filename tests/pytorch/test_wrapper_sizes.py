"""Sizes of wrappers, and of the tensors in them, that vary: symbols from the second on, as those of other tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import return_and_correct_aliasing

import stator
from tests.pytorch.training import BACKENDS


def pair(*sizes: int) -> Any:
    return TwoTensor(torch.randn(*sizes), torch.randn(*sizes)).requires_grad_()


def parts(result: Any) -> list[Any]:
    """The plain tensors and numbers in a result."""
    if isinstance(result, tuple):
        return [part for item in result for part in parts(item)]
    if hasattr(result, "__tensor_flatten__"):
        names = result.__tensor_flatten__()[0]
        return [*result.shape, *(part for name in names for part in parts(getattr(result, name)))]
    return [result]


def assert_alike(got: Any, expected: Any) -> None:
    for one, other in zip(parts(got), parts(expected), strict=True):
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(one, other)
        else:
            assert one == other


def total(result: Any) -> torch.Tensor:
    first = result[0] if isinstance(result, tuple) else result
    while hasattr(first, "__tensor_flatten__"):
        first = getattr(first, first.__tensor_flatten__()[0][0])
    return first.sum()


def runs_alike(
    program: Callable[..., Any],
    make: Callable[[int], tuple[Any, ...]],
    backend: str,
    sizes: tuple[int, ...] = (3, 5, 7, 9, 4),
    **options: Any,
) -> Any:
    """Results, gradients and arguments are those of eager execution, at each size; returns the statistics."""
    compiled = stator.compile(program, backend=backend, **options)
    for size in sizes:
        left = []
        for run in (compiled, program):
            torch.manual_seed(size)
            args = make(size)
            result = run(*args)
            if total(result).requires_grad:
                total(result).backward()
            grads = [arg.grad for arg in args if isinstance(arg, torch.Tensor) and arg.grad is not None]
            left.append((result, *grads, *args))
        assert_alike(*left)
    return stator.stats()


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = {
    "number": (lambda x: x.sin() * x.shape[0], lambda n: (pair(n, 4),)),
    "inner number": (lambda x: x.sin() * x.a.shape[0] + x.b.size(1), lambda n: (pair(n, 4),)),
    "inner tensor": (lambda x: x.sin() + x.a.sum(), lambda n: (pair(n, 4),)),
    "numbers returned": (lambda x: (x.sin(), x.shape[0], x.numel()), lambda n: (pair(n, 4),)),
    "with others": (lambda x, y: x * y + y.sum(), lambda n: (pair(n, 4), torch.randn(n, 4, requires_grad=True))),
    "joined": (lambda x, y: torch.cat([x, y]).sin(), lambda n: (pair(n, 4), pair(2 * n, 4))),
    "reshaped": (lambda x: x.reshape(x.shape[0], 2, 2).flatten().view(-1, 2) * 2, lambda n: (pair(n, 4),)),
    "two dimensions": (lambda x: x.t() @ x, lambda n: (pair(n, n + 1),)),
    "expanded": (lambda x: x[:, None].expand(-1, 3, -1).sum(1), lambda n: (pair(n, 4),)),
    "written": (lambda x: x.add_(1).sin() * x.shape[0], lambda n: (pair(n, 4).detach(),)),
    "made inside": (lambda x: TwoTensor(x.sin(), x.cos()) * 2, lambda n: (torch.randn(n, 4, requires_grad=True),)),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_two_graphs_for_all_sizes(name: str, backend: str) -> None:
    stats = runs_alike(*PROGRAMS[name], backend)
    assert (stats.graphs, stats.graph_breaks) == (2, 0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph_if_all_are_dynamic(name: str, backend: str) -> None:
    stats = runs_alike(*PROGRAMS[name], backend, dynamic=True)
    assert (stats.graphs, stats.graph_breaks) == (1, 0)


def test_with_inductor() -> None:
    program, make = PROGRAMS["with others"]
    assert runs_alike(program, make, "inductor", (3, 5, 7)).graphs == 2


def test_a_branch_on_a_size_is_an_entry_for_each_side() -> None:
    stats = runs_alike(lambda x: x.sin() if x.shape[0] > 6 else x.cos(), lambda n: (pair(n, 4),), "aot_eager")
    assert stats.graphs == 3


class Layer(nn.Module):
    """Its parameter is a wrapper, the sizes of which are no symbols."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(pair(4, 4).detach())

    def forward(self, x: Any) -> Any:
        return x @ self.weight


@pytest.mark.parametrize("backend", BACKENDS)
def test_parameters_stay_as_they_are(backend: str) -> None:
    layer = Layer()
    assert runs_alike(layer, lambda n: (pair(n, 4),), backend, (3, 5, 7)).graphs == 2


@pytest.mark.parametrize(
    "make", [lambda n: pair(n + 1, 4).detach()[1:], lambda n: TwoTensor(pair(n, 2).detach(), pair(n, 2).detach())]
)
def test_views_and_wrappers_in_wrappers_are_compiled_for_each_size(make: Any) -> None:
    assert runs_alike(lambda x: x.sin() * x.size(0), lambda n: (make(n),), "aot_eager", (3, 5, 7)).graphs == 3


@pytest.mark.parametrize(
    ("mark", "graphs"), [(stator.mark_dynamic, 1), (stator.maybe_mark_dynamic, 1), (stator.mark_static, 4)]
)
def test_marks_are_of_what_a_wrapper_holds_too(mark: Any, graphs: int) -> None:
    compiled = stator.compile(lambda x: x.sin() * 2, backend="aot_eager")
    for n in (3, 4, 5, 6):
        x = pair(n, 3)
        mark(x, 0)
        assert_alike(compiled(x), x.sin() * 2)
    assert stator.stats().graphs == graphs


def test_a_mark_is_enforced() -> None:
    x = pair(3, 3)
    stator.mark_dynamic(x, 0)
    with pytest.raises(stator.errors.ConstraintViolationError, match=r"`x.size\(0\)` is marked to be dynamic"):
        stator.compile(lambda x: x.sin() if x.shape[0] == 3 else x, backend="eager")(x)


class Told(NamedTuple):
    """What a context tells."""

    size: Any
    scale: float


class Scaled(torch.Tensor):
    """Its context tells its sizes, which `__tensor_unflatten__` is given anew, or not."""

    keeps = False

    @staticmethod
    def __new__(cls, data: Any, size: Any, scale: float) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, size, dtype=data.dtype, device=data.device)

    def __init__(self, data: Any, size: Any, scale: float) -> None:
        self.inner = data
        self.own_size = tuple(size)
        self.scale = scale

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Scaled({self.inner!r}, {self.own_size}, {self.scale})"

    def __tensor_flatten__(self) -> Any:
        return ["inner"], (Told(self.own_size, self.scale), "scaled")

    @classmethod
    def __tensor_unflatten__(cls, inner: Any, context: Any, size: Any, stride: Any) -> Any:
        told = context[0]
        return cls(inner["inner"], told.size if cls.keeps else size, told.scale)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        first = next(x for x in pytree.tree_leaves(args) if isinstance(x, Scaled))
        plain = pytree.tree_map(lambda x: x.inner if isinstance(x, Scaled) else x, (args, kwargs or {}))
        made = func(*plain[0], **plain[1]) * first.scale + first.own_size[0]
        return return_and_correct_aliasing(func, args, kwargs or {}, cls(made, made.shape, first.scale))


class Keeping(Scaled):
    """The same, and the sizes are those in the context."""

    keeps = True


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("cls", "graphs"), [(Scaled, 2), (Keeping, 4)])
def test_contexts_may_tell_sizes(cls: Any, graphs: int, backend: str) -> None:
    def make(n: int) -> tuple[Any, ...]:
        return (cls(torch.randn(n, 3), (n, 3), 2.0),)

    assert runs_alike(lambda x: x.sin() * 2, make, backend, (3, 5, 7, 4)).graphs == graphs


def test_what_else_a_context_tells_is_guarded() -> None:
    compiled = stator.compile(lambda x: x.sin() * 2, backend="aot_eager")
    for n, scale in ((3, 2.0), (5, 2.0), (7, 3.0), (8, 3.0)):
        x = Scaled(torch.randn(n, 3), (n, 3), scale)
        assert_alike(compiled(x), x.sin() * 2)
    assert stator.stats().graphs == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_distributed_tensors(backend: str, tmp_path: Path) -> None:
    import torch.distributed as dist
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,))

        def make(n: int) -> tuple[Any, ...]:
            return (distribute_tensor(torch.randn(n, 4), mesh, [Shard(0)]).requires_grad_(),)

        stats = runs_alike(lambda x: x.sin().redistribute(mesh, [Replicate()]).cos() * x.shape[0], make, backend)
        assert (stats.graphs, stats.graph_breaks) == (2, 0)
    finally:
        dist.destroy_process_group()
