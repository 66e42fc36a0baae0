"""TorchFunctionModes: entered by the traced program, or active around it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import stator
from tests.pytorch.programs import agree, assert_same

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


def switched_off(x: Any) -> Any:
    with Swapped(), torch._C.DisableTorchFunction():
        y = torch.add(x, 1)
        with Swapped():
            return y, torch.add(x, 2), torch._C._is_torch_function_mode_enabled()


def switched_off_at_a_break(x: Any) -> Any:
    with torch._C.DisableTorchFunction(), Swapped():
        y = torch.add(x, 1)
        stator.graph_break()
        z = torch.add(y, 2)
    with Swapped():
        return z, torch.add(x, 3)


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
    "switched off": switched_off,
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
def test_break_where_modes_are_off(backend: str) -> None:
    compiled = stator.compile(switched_off_at_a_break, backend=backend)
    for rows in (2, 2, 3):
        x = torch.randn(rows)
        assert str(compiled(x)) == str(switched_off_at_a_break(x))


@pytest.mark.parametrize("backend", BACKENDS)
def test_break_inside(backend: str) -> None:
    agree(lambda: (broken, (torch.randn(2, 3),)), backend=backend, breaks=None)
    assert torch._C._len_torch_function_stack() == 0


# -- active around the compiled function ------------------------------------------------------------------------------


def added(x: Any) -> Any:
    return torch.add(x, 1) * 2, torch.ones(2)


def nested(x: Any) -> Any:
    with Swapped():
        y = torch.add(x, 1)
    return torch.add(y, 1), torch._C._len_torch_function_stack()


def halfway(x: Any) -> Any:
    y = torch.add(x, 1)
    stator.graph_break()
    with Doubles():
        z = torch.ones(2)
        stator.graph_break()
        return torch.add(y, z), z


def failing(x: Any) -> Any:
    try:
        return torch.add(x, torch.ones(x.shape[0] + 7))
    except RuntimeError:
        return torch.add(x, 3)


OUTSIDE: dict[str, Callable[[], list[Any]]] = {
    "one": lambda: [Swapped()],
    "with state": lambda: [Named()],
    "two": lambda: [Named(), Swapped()],
    "a device outside": lambda: [torch.device("cpu"), Swapped()],
    "a device inside": lambda: [Doubles(), torch.device("cpu")],
    "refusing": lambda: [Refusing()],
}


def run_within(modes: list[Any], function: Any, x: Any) -> Any:
    """What the function gives within modes, or its error, and what these have noted."""
    with contextlib.ExitStack() as stack:
        for mode in modes:
            stack.enter_context(mode)
        try:
            found: Any = function(x)
        except Exception as e:
            found = type(e), str(e)
        assert torch._C._len_torch_function_stack() == len(modes)
    return found, [getattr(mode, "names", None) for mode in modes]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [added, nested, halfway, failing])
@pytest.mark.parametrize("name", OUTSIDE)
def test_active_outside(name: str, program: Any, backend: str) -> None:
    stator.reset()
    compiled = stator.compile(program, backend=backend, fullgraph=program in (added, nested))
    for rows in (2, 2, 5, 1):
        for modes in (OUTSIDE[name], list):
            x = torch.arange(2.0 * rows).reshape(rows, 2)
            assert_same(run_within(modes(), compiled, x), run_within(modes(), program, x), f"{name} {rows}", rtol=1e-6)
    assert program not in (added, nested) or stator.stats().graph_breaks == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_within_a_mode(backend: str) -> None:
    compiled = stator.compile(lambda x: torch.add(x, x * x).sum(), backend=backend, fullgraph=True)
    x = torch.randn(3, requires_grad=True)
    with Swapped():
        loss = compiled(x)
    loss.backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, 1 - 2 * x.detach())


def test_inductor_within_a_mode() -> None:
    compiled, x = stator.compile(added, backend="inductor", fullgraph=True), torch.arange(4.0).reshape(2, 2)
    assert_same(run_within([Named()], compiled, x), run_within([Named()], added, x), "inductor", rtol=1e-6)


def test_a_graph_that_fails_within_a_mode_is_undone() -> None:
    def program(x: Any, i: Any) -> Any:
        return torch.add(x[i], 1)

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    named = Named()
    for i in (0, 9):
        x, index = torch.arange(3.0), torch.tensor([i])
        got = run_within([named, Swapped()], lambda x, index=index: compiled(x, index), x)
        want = run_within([Named(), Swapped()], lambda x, index=index: program(x, index), x)
        assert_same(got[0], want[0], f"at {i}", rtol=1e-6)


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
