"""Operators in the place of functions that drop out elements, and whose gradients run them again.

    output, h, state = stator::padded_dropping_gru(x, h, …)

What runs again is to drop out the same elements. So the operator also gives the state that torch's generator had
before, and what computes gradients draws from that; the generator is then what it was. That is true of the generator
of the CPU; cuDNN has random numbers of its own.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch.sequences.reading import Reading

if TYPE_CHECKING:
    from stator.pytorch.types import Function

__all__ = ["Drawing"]


class Drawing(Reading):
    """What is known of such a function.

    Its operator has one more result, the generator's state; the tag tells backends that no two calls give the same.
    """

    tags = (torch.Tag.nondeterministic_seeded,)

    def __init__(self, name: str, schema: str, real: Function, fake: Function, differentiable: tuple[int, ...]) -> None:
        super().__init__(name, f"{schema[:-1]}, Tensor)", _with_state(real), _with_state_like(fake), differentiable)

    def _needed_again(self, results: list[torch.Tensor]) -> list[torch.Tensor]:
        return results[-1:]

    def _gradients(self, grads: list[torch.Tensor], *inputs: Any) -> list[torch.Tensor]:
        *grads, state = grads
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(state)
            return super()._gradients(grads, *inputs)


def _with_state(function: Function) -> Function:
    @functools.wraps(function, ("__name__", "__doc__"))
    def run(*args: Any) -> tuple[torch.Tensor, ...]:
        state = torch.get_rng_state()
        return (*function(*args), state)

    return run


def _with_state_like(fake: Function) -> Function:
    def run(*args: Any) -> tuple[torch.Tensor, ...]:
        return (*fake(*args), torch.empty(_bytes_of_state(), dtype=torch.uint8, device="cpu"))

    return run


@functools.cache
def _bytes_of_state() -> int:
    return torch.default_generator.get_state().numel()
