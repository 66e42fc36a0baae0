"""`__torch_function__`: subclasses of Tensor and objects that act like tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import stator
from tests.pytorch.programs import agree


class Plain(torch.Tensor):
    """Overrides nothing: results are of the class."""


class Logging(torch.Tensor):
    seen: list[str] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Logging.seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


class Doubling(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(func, types, args, kwargs or {})
        if func in (torch.add, torch.Tensor.add):
            return result * 2
        return result


class Wrapper:
    """No tensor at all."""

    def __init__(self, data: Any) -> None:
        self.data = data

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inner = [a.data if isinstance(a, Wrapper) else a for a in args]
        return Wrapper(func(*inner, **(kwargs or {})))


class Refusing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise ValueError(f"no {func.__name__}")


def of(cls: Any) -> Any:
    return torch.randn(2, 3).as_subclass(cls)


@pytest.mark.parametrize("cls", [Plain, Doubling])
def test_results_of_the_class(cls: Any) -> None:
    agree(lambda: (lambda x: (torch.relu(x) + 1, (x @ x.T).max(dim=-1), torch.cat([x, x]), x.shape), (of(cls),)))


def test_python_effects_of_an_override() -> None:
    def make() -> Any:
        Logging.seen.clear()
        return (lambda x: (torch.nn.functional.relu(x) - x.sum(), list(Logging.seen)), (of(Logging),))

    agree(make)


def test_plain_and_subclass_together() -> None:
    agree(lambda: (lambda x, y: (y + x, x * y, torch.stack([y, x])), (of(Plain), torch.randn(2, 3))))


def test_methods_and_attributes_of_the_class() -> None:
    class Named(torch.Tensor):
        label = "a"

        def twice(self) -> Any:
            return self * 2

    def run(x: Any) -> Any:
        y = x.twice()
        y.note = 3
        return y, y.label, y.note, isinstance(y, Named)

    agree(lambda: (run, (of(Named),)))


def test_object_that_is_no_tensor() -> None:
    agree(lambda: (lambda x: torch.add(Wrapper(x), 1).data, (torch.randn(2),)))


def test_error_of_an_override() -> None:
    run = stator.compile(lambda x: torch.sin(x), backend="eager")
    with pytest.raises(ValueError, match="no sin"):
        run(of(Refusing))


def test_overrides_see_only_the_programs_calls() -> None:
    calls = []

    class Counting(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    run = stator.compile(lambda x: x + 1, backend="eager")
    x = of(Counting)
    calls.clear()
    for n in (1, 2, 3):
        run(x)
        assert len(calls) == n


def test_parameter_subclass_is_plain() -> None:
    class Mine(torch.nn.Parameter):
        pass

    agree(lambda: (lambda x: (x + 1, x), (Mine(torch.ones(2)),)))


def test_gradient() -> None:
    agree(lambda: (lambda x: (x * 2).exp(), (of(Doubling).requires_grad_(),)), grad=True)


class WithoutOptions(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, None)


def test_the_default_takes_none_for_no_options() -> None:
    agree(lambda: (lambda x: (x + 1, x.sum(dim=0) if x.ndim > 5 else x.exp()), (of(WithoutOptions),)))


class Sized(torch.Tensor):
    """Made of its sizes, which are all that matters."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows = rows

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.linear:
            return func(args[0], torch.ones(args[1].rows, 3))
        return super().__torch_function__(func, types, args, kwargs or {})


class Tagged(torch.Tensor):
    def __new__(cls, data: Any, tag: Any) -> Any:
        return super().__new__(cls, data)

    def __init__(self, data: Any, tag: Any) -> None:
        self.tag = tag


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_construction(backend: str) -> None:
    def sized(x: Any) -> Any:
        weight = Sized(4, 3)
        return torch.nn.functional.linear(x, weight), weight.shape, weight.dtype

    for rows in (2, 5):
        agree(lambda rows=rows: (sized, (torch.randn(rows, 3),)), backend=backend)
    agree(lambda: (lambda x: (Tagged(x, 1) + 1, Tagged(x, 2).tag, type(Tagged(x, 3))), (torch.randn(3),)))
    agree(lambda: (lambda x: (torch.Tensor([1, 2]) + x, torch.Tensor(x), torch.Tensor().shape), (torch.randn(2),)))
    agree(lambda: (lambda x: Tagged(x, 1) * 2, (torch.randn(3, requires_grad=True),)), grad=True, backend=backend)


class Measured(torch.Tensor):
    unit: str

    @staticmethod
    def __new__(cls, data: Any, unit: str) -> Any:
        made = torch.Tensor._make_subclass(cls, data)
        made.unit = unit
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, Measured):
            result.unit = next(arg.unit for arg in args if isinstance(arg, Measured))
        return result


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_made_without_the_history_of_the_data(backend: str) -> None:
    def program(x: Any) -> Any:
        length = Measured(x * 2, "m") + 1
        flat = length.as_subclass(torch.Tensor)
        return length.unit, flat, length.requires_grad, type(length), x.sin()

    for rows in (2, 4, 7):
        agree(lambda rows=rows: (program, (torch.randn(rows, 3, requires_grad=True),)), backend=backend, grad=True)


def test_causal_bias() -> None:
    from torch.nn.attention.bias import causal_lower_right

    def attention(q: Any) -> Any:
        bias = causal_lower_right(q.shape[-2], q.shape[-2])
        return torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=bias)

    agree(lambda: (attention, (torch.randn(1, 2, 3, 4, requires_grad=True),)), grad=True)


class Derived(Plain):
    pass


class Unhelpful(torch.Tensor):
    """Leaves all operations to others."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


class Taking(torch.Tensor):
    """Takes all operations, whatever else is among the arguments."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in (torch.add, torch.mul):
            return super().__torch_function__(func, types, args, kwargs or {})
        names = sorted(t.__name__ for t in types)
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*(arg.as_subclass(torch.Tensor) for arg in args), **(kwargs or {}))
        return result, names


def test_several_classes() -> None:
    agree(lambda: (lambda x, y: (x + y, y + x, torch.stack([x, y])), (of(Plain), of(Derived))))

    def mixed(x: Any, y: Any) -> Any:
        unhelpful = x.as_subclass(Unhelpful)
        return torch.add(unhelpful, y), torch.mul(y, unhelpful)

    agree(lambda: (mixed, (torch.randn(3), torch.randn(3).as_subclass(Taking))))
    agree(lambda: (lambda x, y: torch.add(x, torch.mul(y, 2)[0]), (of(Plain), of(Taking))), breaks=None)


def test_no_class_takes_it() -> None:
    run = stator.compile(lambda x: torch.sin(x), backend="eager")
    with pytest.raises(TypeError, match="handlers returned NotImplemented"):
        run(of(Unhelpful))
