"""TorchFunctionModes: entered by the traced program, or active around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import stator
from tests.pytorch.programs import agree

BACKENDS = ["eager", "aot_eager"]


class Swapped(TorchFunctionMode):
    """Subtracts where the program adds."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.add:
            func = torch.sub
        return func(*args, **(kwargs or {}))


class Named(TorchFunctionMode):
    """Keeps the names of what it has been asked to do."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class Doubles(TorchFunctionMode):
    """What is made has another data type."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (torch.ones, torch.zeros):
            kwargs["dtype"] = torch.float64
        return func(*args, **kwargs)


class Refusing(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise ValueError(f"no {func.__name__}")


_linear = torch.nn.Linear(3, 3)


def swapped(x: Any) -> Any:
    with Swapped():
        y = torch.add(x, 1)
    return y * 2, torch.add(x, 1)


def named(x: Any) -> Any:
    with Named() as mode:
        y = torch.add(x, 1).sum()
        shape, rows, first = x.shape, len(x), x[0]
        parts = [part.exp() for part in x]
        z = torch.nn.functional.relu(_linear(x))
        flags = x.requires_grad, x.is_contiguous(), x.dim()
    return y, shape, rows, first, parts, z, flags, mode.names


def nested(x: Any) -> Any:
    with Doubles(), Swapped(), Named() as outer:
        y = torch.add(x, torch.ones(3))
        with Named() as inner:
            z = torch.add(x, 2)
    return y, z, outer.names, inner.names


def without_gradients(x: Any) -> Any:
    with Named() as mode, torch.no_grad():
        y = x * 2
    return y, mode.names


def raising(x: Any) -> Any:
    try:
        with Refusing():
            return x + 1
    except ValueError as error:
        return str(error), x + 1


def devices(x: Any) -> Any:
    with torch.device("meta"):
        a = torch.ones(3)
        with torch.device("cpu"):
            b = torch.ones(3)
        c = torch.empty(2, device="cpu")
    return a.device, b, c.device, torch.zeros(2), x + 1


def broken(x: Any) -> Any:
    with Named() as mode, torch.device("cpu"):
        y = torch.add(x, torch.ones(3))
        stator.graph_break()
        z = y * 2
    return z, mode.names, x + 1


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "swapped": swapped,
    "named": named,
    "nested": nested,
    "without gradients": without_gradients,
    "raising": raising,
    "devices": devices,
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_entered_inside(name: str, backend: str) -> None:
    for rows in (2, 5, 1):
        agree(lambda rows=rows: (PROGRAMS[name], (torch.randn(rows, 3),)), backend=backend)
    assert torch._C._len_torch_function_stack() == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradient(backend: str) -> None:
    agree(lambda: (swapped, (torch.randn(2, 3, requires_grad=True),)), grad=True, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_break_inside(backend: str) -> None:
    agree(lambda: (broken, (torch.randn(2, 3),)), backend=backend, breaks=None)
    assert torch._C._len_torch_function_stack() == 0


def test_of_a_subclass() -> None:
    class Plain(torch.Tensor):
        pass

    def program(x: Any) -> Any:
        with Named() as mode:
            y = x + 1
        return y, mode.names

    agree(lambda: (program, (torch.randn(2).as_subclass(Plain),)))


class Calls(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("backend", BACKENDS)
def test_dispatch_modes_break(backend: str) -> None:
    def program(x: Any) -> Any:
        with Calls() as mode:
            y = torch.sin(x + 1)
        return y * 2, mode.count

    stats = agree(lambda: (program, (torch.randn(3),)), backend=backend, breaks=None)
    assert all("Calls" in brk.reason for brk in stats.breaks)
