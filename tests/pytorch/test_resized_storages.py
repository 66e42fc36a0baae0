"""`tensor.untyped_storage().resize_(n)`: memory is freed and given back, as code that shards parameters does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator
from tests.pytorch.each_backend import each_backend
from tests.pytorch.programs import assert_same


def freed(rows: int) -> torch.Tensor:
    tensor = torch.ones(rows, 3)
    tensor.untyped_storage().resize_(0)
    return tensor


def data(rows: int) -> torch.Tensor:
    return torch.arange(3.0 * rows).reshape(rows, 3)


def resize(tensor: Any, size: Any) -> None:
    tensor.untyped_storage().resize_(size)


def frees_an_argument(x: Any) -> Any:
    y = x * 2
    resize(x, 0)
    return y


def fills_an_argument(x: Any, y: Any) -> Any:
    resize(x, y.numel() * y.element_size())
    x.copy_(y)
    return x + 1


def fills_in_parts(x: Any, y: Any) -> Any:
    resize(x, x.numel() * x.itemsize)
    x[:2].copy_(y[:2])
    x[2:].copy_(y[2:] * 2)
    return x.sin(), x


def fills_and_frees(x: Any, y: Any) -> Any:
    resize(x, y.untyped_storage().size())
    view = x.view(-1)
    view.copy_(y.view(-1))
    z = view.sin()
    resize(x, 0)
    return z, x.untyped_storage().nbytes()


def frees_and_fills(x: Any, y: Any) -> Any:
    z = x + 1
    resize(x, 0)
    resize(x, y.numel() * 4)
    x.copy_(y)
    return z + x.sin()


def frees_if_full(x: Any) -> Any:
    y = x.exp()
    if x.untyped_storage().size() != 0:
        resize(x, 0)
    return y, x.untyped_storage().nbytes()


def frees_what_it_made(x: Any) -> Any:
    y = x * 2
    z = y.exp()
    resize(y, 0)
    return z


def frees_what_it_gives(x: Any) -> Any:
    y = x * 2
    z = y.exp()
    resize(y, 0)
    return z, y


def frees_only(x: Any) -> Any:
    resize(x, 0)
    return x


def enlarges(x: Any) -> Any:
    resize(x, 1000)
    return x * 2


def enlarges_last(x: Any) -> Any:
    y = x * 2
    resize(x, 1000)
    return y


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = {
    "frees an argument": (frees_an_argument, lambda rows: (data(rows),)),
    "fills an argument": (fills_an_argument, lambda rows: (freed(rows), data(rows))),
    "fills a full one": (fills_an_argument, lambda rows: (data(rows) + 1, data(rows))),
    "fills in parts": (fills_in_parts, lambda rows: (freed(rows), data(rows))),
    "fills and frees": (fills_and_frees, lambda rows: (freed(rows), data(rows))),
    "frees if full": (frees_if_full, lambda rows: (data(rows),)),
    "frees what it made": (frees_what_it_made, lambda rows: (data(rows),)),
    "frees what it gives": (frees_what_it_gives, lambda rows: (data(rows),)),
    "frees only": (frees_only, lambda rows: (data(rows),)),
    "enlarges": (enlarges, lambda rows: (data(rows),)),
    "enlarges last": (enlarges_last, lambda rows: (data(rows),)),
}


def seen(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(seen, value))
    if not isinstance(value, torch.Tensor):
        return value
    size = value.untyped_storage().nbytes()
    return value.shape, size, value.detach().clone() if size else None, value._version


@pytest.mark.parametrize(
    ("name", "backend"),
    each_backend(PROGRAMS, inductor=["fills in parts", "fills and frees", "frees what it gives", "enlarges last"]),
)
def test_programs(name: str, backend: str) -> None:
    program, make = PROGRAMS[name]
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for rows in (3, 3, 4) if backend == "inductor" else (3, 3, 4, 6, 6):
        given, compiled_given = make(rows), make(rows)
        want = seen((program(*given), given))
        rtol = 1e-6 if backend == "inductor" else 0.0
        assert_same(seen((compiled(*compiled_given), compiled_given)), want, f"{rows} rows", rtol)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_between_two_uses_it_breaks(backend: str) -> None:
    compiled = stator.compile(frees_and_fills, backend=backend)
    for rows in (3, 3, 4, 6, 6):
        given, compiled_given = [(data(rows) + 1, data(rows)) for _ in range(2)]
        want = seen((frees_and_fills(*given), given))
        assert_same(seen((compiled(*compiled_given), compiled_given)), want, f"{rows} rows")
    assert {brk.code for brk in stator.stats().breaks} == {"SB0204"}


GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    # What `exp` saves is its result. A partitioner may save `p`, which is there in any case, and compute it again.
    "freed": lambda p, w: ((p * 2).exp() * w.exp(), resize(p, 0))[0],
    "what was made": lambda p, w: ((y := p * w).exp(), resize(y, 0))[0],
    "filled": lambda p, w: (resize(p, 36), p.copy_(w.detach()), (p * w).exp())[-1],
    "filled and freed": lambda p, w: (resize(p, 36), p.copy_(w.detach()), (p + w).exp(), resize(p, 0))[2],
}


@pytest.mark.parametrize(("name", "backend"), each_backend(GRADIENTS, inductor=["freed", "filled and freed"]))
def test_gradients(name: str, backend: str) -> None:
    program = GRADIENTS[name]
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for _ in range(2):
        gradients = []
        for function in (program, compiled):
            w = (data(3) / 8).requires_grad_()
            function(freed(3) if name.startswith("filled") else data(3), w).sum().backward()
            gradients.append(w.grad)
        assert torch.allclose(*gradients)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_graph_that_fails_leaves_it_to_ordinary_python(backend: str) -> None:
    def program(x: Any, y: Any, i: Any, sizes: list[int]) -> Any:
        sizes.append(x.untyped_storage().nbytes())
        resize(x, 36)
        x.copy_(y)
        z = x[i] + 1
        resize(x, 0)
        return z

    compiled = stator.compile(program, backend=backend)
    for index in (1, 1, 7, 2):
        results = []
        for function in (program, compiled):
            x, sizes = freed(3), []
            try:
                result: Any = function(x, data(3), torch.tensor([index]), sizes)
            except IndexError as e:
                result = str(e)
            results.append((result, sizes, x.untyped_storage().nbytes(), x._version))
        assert_same(results[1], results[0], f"index {index}")


def test_what_has_been_freed_is_read_by_ordinary_python() -> None:
    def program(x: Any, y: Any) -> Any:
        z = x + y
        resize(x, 0)
        return z, x.numel(), x.view(-1).shape, x.is_meta or x.add_(0) if y.sum() > 1e9 else None

    def reads(x: Any) -> Any:
        resize(x, 0)
        return x + 1

    assert stator.compile(program, backend="eager")(data(3), data(3))[1:3] == (9, torch.Size([9]))
    with pytest.raises(stator.GraphBreakError, match="freed"):
        stator.compile(reads, backend="eager", fullgraph=True)(data(3))


def test_another_tensor_in_the_storage() -> None:
    def program(x: Any, y: Any) -> Any:
        z = x + y
        resize(x, 0)
        return z

    compiled = stator.compile(program, backend="aot_eager")
    base = torch.arange(18.0).reshape(6, 3)
    assert compiled(data(3), data(3)).equal(data(3) * 2)
    assert compiled(base[:3], base[3:]).equal(torch.arange(9.0).reshape(3, 3) * 2 + 9)
    assert base.untyped_storage().nbytes() == 0


def test_memory_that_is_not_torchs() -> None:
    import numpy as np

    compiled = stator.compile(enlarges, backend="eager")
    assert compiled(data(2)).equal(data(2) * 2)
    with pytest.raises(RuntimeError, match="not resizable"):
        compiled(torch.from_numpy(np.ones((2, 3), np.float32)))


@pytest.mark.parametrize("size", [-1, 2.0, "a", True, None])
def test_sizes_that_torch_refuses(size: Any) -> None:
    def program(x: Any) -> str:
        try:
            x.untyped_storage().resize_(size)
        except RuntimeError as e:
            return str(e).splitlines()[0]
        return ""

    assert stator.compile(program, backend="eager")(data(2)) == program(data(2)) != ""


def test_parameters_of_a_module() -> None:
    class Sharded(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.full = torch.nn.Parameter(torch.ones(3, 3), requires_grad=False)
            self.shard = torch.nn.Parameter(torch.arange(9.0))
            resize(self.full, 0)

        def forward(self, x: Any) -> Any:
            with torch.no_grad():
                storage = self.full.untyped_storage()
                if storage.size() == 0:
                    storage.resize_(self.full.numel() * self.full.itemsize)
                self.full.copy_(self.shard.view(3, 3))
            y = x @ self.full
            storage.resize_(0)
            return y

    plain, module = Sharded(), Sharded()
    compiled = stator.compile(module, backend="aot_eager", fullgraph=True)
    for rows in (2, 2, 4):
        x, y = [torch.ones(rows, 3).requires_grad_() for _ in range(2)]
        assert compiled(x).equal(plain(y))
        assert module.full.untyped_storage().size() == 0
