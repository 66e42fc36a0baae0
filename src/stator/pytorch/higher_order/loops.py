"""What the body of a loop is traced with: values that stand for those of any of its rounds.

    scan(lambda carry, x: (carry + x, carry * x), init, xs)

The body is traced once, with a tensor like `init` and one like a slice of `xs`, which exist only when the graph runs.
What the body gives for the next round must be like what it was given, or the graph would be right for one round only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch.fake.metadata import is_symbol
from stator.pytorch.higher_order.body import Body, refusal
from stator.pytorch.shapes.symbols import SymValue
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stator.pytorch.types import Fake, Number
    from stator.space.space import Space

__all__ = ["carried", "check_carried", "check_tensors", "slices"]


def check_tensors(name: str, what: str, values: Sequence[Value]) -> list[TensorValue]:
    """The values, which must all be tensors."""
    found = [value for value in values if isinstance(value, TensorValue)]
    if len(found) < len(values):
        raise refusal(name, f"{what} must be tensors")
    return found


def carried(body: Body, values: Sequence[Value]) -> list[Value]:
    """Inputs of the body for what one round hands to the next, at first these values."""
    return [_tensor(body, value) if isinstance(value, TensorValue) else _number(body) for value in values]


def slices(body: Body, tensors: Sequence[TensorValue], pick: Callable[..., torch.Tensor]) -> list[Value]:
    """Inputs of the body for one slice of each tensor along its first dimension; `pick` makes one of a fake tensor."""
    made: list[Value] = []
    for tensor in tensors:
        if not tensor.shape or bool(tensor.shape[0] == 0):
            raise refusal(body.name, "a tensor has nothing along its first dimension")
        with body.recorder.fakes.executor.mode, torch.no_grad():
            like = _like(pick(tensor.fake, 0, 0))
        made.append(body.graph.example(like.requires_grad_(tensor.requires_grad)))
    return made


def _tensor(body: Body, value: TensorValue) -> Value:
    with body.recorder.fakes.executor.mode, torch.no_grad():
        like = _like(value.fake)
    return body.graph.example(like.requires_grad_(value.requires_grad))


def _like(fake: Fake) -> Fake:
    return torch.empty_strided(fake.size(), fake.stride(), dtype=fake.dtype, device=fake.device)


def _number(body: Body) -> Value:
    """An int that each round has another of: a symbol that nothing is known about."""
    env = body.recorder.shapes.env
    with env.ignore_fresh_unbacked_symbols():
        value = SymValue(body.recorder, env.create_unbacked_symint(), None)
    body.graph.input(f"example_{len(body.graph.given)}", value)
    return value


def check_carried(space: Space, body: Body, before: Sequence[Value], after: Sequence[Value]) -> None:
    """What a round hands to the next must be like what it was given."""
    if len(before) != len(after):
        raise body.refuse(f"gives {len(after)} values for the next round, of {len(before)}")
    for given, made in zip(before, after, strict=True):
        if isinstance(given, TensorValue) and isinstance(made, TensorValue):
            if _facts(given) != _facts(made):
                raise body.refuse(f"gives {made.describe()} where it was given {given.describe()}, or differs in more")
        elif isinstance(given, TensorValue) or given.cls is not made.cls:
            raise body.refuse(f"gives {made.describe()} where it was given {given.describe()}")


def _facts(value: TensorValue) -> tuple[object, ...]:
    fake = value.fake
    sizes = [_plain(number) for number in (*fake.size(), *fake.stride())]
    return sizes, fake.dtype, fake.device, fake.layout, fake.is_conj(), fake.is_neg()


def _plain(number: Number) -> object:
    """What is equal for equal sizes, without assuming anything of them."""
    return number.node.expr if is_symbol(number) else number
