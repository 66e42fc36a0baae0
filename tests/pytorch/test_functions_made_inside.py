"""Subclasses of `autograd.Function` that the compiled function makes, as masked tensors do in `get_data`."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch.autograd import Function
from torch.masked import MaskedTensor, masked_tensor

import stator
from tests.pytorch.test_function_instances import Scaled
from tests.pytorch.training import BACKENDS, trains_alike


def plain(x: Any) -> Any:
    class Sine(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0].cos() * 3

    return Sine.apply(x) * x


def with_closure(x: Any) -> Any:
    doubled, count = x.detach() * 2, x.shape[0]

    class Times(Function):
        @staticmethod
        def forward(ctx: Any, y: Any) -> Any:
            return y * doubled

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * doubled + count

    return Times.apply(x)


def with_context(x: Any) -> Any:
    class Times(Function):
        @staticmethod
        def forward(x: Any, scale: int = 3) -> Any:
            return x * scale

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.scale = inputs[1]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.scale * 7, None

    return Times.apply(x) + Times.apply(x, scale=5)


def derived(x: Any) -> Any:
    class Other(Scaled):
        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 11, None

    return Other.apply(x, 3) + Scaled.apply(x)


def changed_later(x: Any) -> Any:
    class Sine(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sin()

    Sine.backward = staticmethod(lambda ctx, grad: grad * 13)  # type: ignore[method-assign]
    return Sine.apply(x)


def without_gradient(x: Any) -> Any:
    class Sine(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sin(), x

    made, same = Sine.apply(x.detach())
    return made * x, same is x


def keeping_it(x: Any) -> Any:
    class Sine(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sin()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3

    y = Sine.apply(x)
    stator.graph_break()
    return Sine.apply(y)


PROGRAMS = [plain, with_closure, with_context, derived, changed_later, without_gradient]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [*PROGRAMS, keeping_it])
def test_functions_are_traced(program: Any, backend: str) -> None:
    def make() -> tuple[Any, list[torch.Tensor]]:
        weight = torch.linspace(-1, 1, 3).requires_grad_()

        def step(x: Any) -> Any:
            result = program(x * weight)
            first, *others = result if isinstance(result, tuple) else (result,)
            first.sum().backward()
            return first.detach(), others

        return step, [weight]

    trains_alike(make, backend=backend, breaks=None if program is keeping_it else 0)


def test_a_function_is_compiled() -> None:
    compiled = stator.compile(plain, backend="inductor", fullgraph=True)
    for size in (3, 3, 5):
        gradients = []
        for run in (plain, compiled):
            x = torch.linspace(-1, 1, size).requires_grad_()
            run(x).sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients)


def test_arguments_that_do_not_fit_are_an_error() -> None:
    def program(x: Any) -> Any:
        class Times(Function):
            @staticmethod
            def forward(x: Any, scale: int) -> Any:
                return x * scale

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                pass

        try:
            Times.apply(x)
        except TypeError as error:
            return str(error)

    assert stator.compile(program, backend="eager")(torch.ones(2)) == program(torch.ones(2))


def masked(x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return masked_tensor(x, x > 0)


#: what is done to a masked tensor
QUESTIONS: dict[str, Any] = {
    "get_data": lambda m: m.get_data() + 1,
    "to_tensor": lambda m: m.to_tensor(-1.0) * 2,
    "get_mask": lambda m: m.get_mask().logical_not(),
    "sum": lambda m: m.sum(),
    "mean": lambda m: m.mean(1),
    "amax": lambda m: m.amax(0),
}


def seen(result: Any) -> Any:
    return (result.get_data(), result.get_mask()) if isinstance(result, MaskedTensor) else result


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("made_inside", [False, True])
@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors:UserWarning")
def test_masked_tensors(question: str, made_inside: bool, backend: str) -> None:
    ask = QUESTIONS[question]
    if question == "mean" and not made_inside:
        pytest.skip("operators that existing ones are given break")
    program = (lambda x: ask(masked_tensor(x, x > 0))) if made_inside else ask
    compiled = stator.compile(program, backend=backend)
    for size in (3, 3, 5, 2):
        x = torch.linspace(-1, 1, size * 3).reshape(size, 3)
        given = x if made_inside else masked(x)
        torch.testing.assert_close(seen(compiled(given)), seen(program(given)), equal_nan=True)
    assert stator.stats().graph_breaks == 0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors:UserWarning")
def test_gradients_of_masked_tensors(backend: str) -> None:
    def program(m: Any) -> Any:
        return m.get_data() * 2

    compiled = stator.compile(program, backend=backend)
    for size in (3, 3, 5):
        gradients = []
        for run in (program, compiled):
            x = torch.linspace(-1, 1, size)
            given = masked_tensor(x, x > 0, requires_grad=True)
            run(given).sum().backward()
            gradients.append(seen(given.grad))
        torch.testing.assert_close(*gradients)
