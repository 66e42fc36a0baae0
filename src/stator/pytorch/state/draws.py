"""The operator that draws random numbers from a state: `state, result = stator::draw(state, tensors, numbers, recipe)`.

It computes and does nothing else, so any backend may run it when it likes. The recipe is a text that says which of
torch's functions is called with what: backends keep compiled graphs for other processes, by what the graph says.
"""

from __future__ import annotations

import base64
import functools
import pickle
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional

from stator.pytorch.own_operators import define
from stator.pytorch.tensors.lowering import fill

if TYPE_CHECKING:
    from stator.pytorch.types import Args, Function, Kwargs, Operator

__all__ = ["Recipe", "name_of", "operator"]

_OWNERS = {"torch": torch, "torch.nn.functional": torch.nn.functional, "torch.Tensor": torch.Tensor}
_SCHEMA = "(Tensor state, Tensor[] tensors, SymInt[] numbers, str recipe) -> (Tensor, Tensor)"


class Recipe(NamedTuple):
    """A call of one of torch's random functions."""

    owner: str
    name: str
    args: Args
    kwargs: Kwargs
    #: which of its operands are tensors; others are numbers
    places: tuple[bool, ...]
    #: whether it takes a generator as an argument; others draw from the default one
    passed: bool

    def text(self) -> str:
        """All of it."""
        return base64.b64encode(pickle.dumps(tuple(self))).decode()

    def call(self, tensors: list[torch.Tensor], numbers: list[int], kwargs: Kwargs) -> torch.Tensor:
        """Call the function; what writes its first argument writes another, laid out alike, as the order shows it."""
        given = {True: iter(tensors), False: iter(numbers)}
        operands = [next(given[is_tensor]) for is_tensor in self.places]
        args = fill(self.args, operands)
        if self.name.endswith("_"):
            first = args[0]
            made = torch.empty_strided(first.size(), first.stride(), dtype=first.dtype, device=first.device)
            args = (made, *args[1:])
        function: Function = getattr(_OWNERS[self.owner], self.name)
        result: torch.Tensor = function(*args, **fill(self.kwargs, operands), **kwargs)
        return result


def name_of(function: Function) -> tuple[str, str] | None:
    """Where recipes find a function of torch's, and under which name."""
    name = getattr(function, "__name__", "")
    found = [(where, name) for where, owner in _OWNERS.items() if getattr(owner, name, None) is function]
    return found[0] if found else None


@functools.lru_cache(256)
def _read(text: str) -> Recipe:
    return Recipe(*pickle.loads(base64.b64decode(text)))


def _draw(
    state: torch.Tensor, tensors: list[torch.Tensor], numbers: list[int], recipe: str
) -> tuple[torch.Tensor, torch.Tensor]:
    call = _read(recipe)
    if call.passed:
        generator = torch.Generator()
        generator.set_state(state)
        result = call.call(tensors, numbers, {"generator": generator})
        return generator.get_state(), result
    before = torch.get_rng_state()
    try:
        torch.set_rng_state(state)
        result = call.call(tensors, numbers, {})
        return torch.get_rng_state(), result
    finally:
        torch.set_rng_state(before)


def _fake(
    state: torch.Tensor, tensors: list[torch.Tensor], numbers: list[int], recipe: str
) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(state), _read(recipe).call(tensors, numbers, {})


@functools.cache
def operator() -> Operator:
    """The operator, registered when it is first used."""
    return define("draw", _SCHEMA, _draw, _fake)
