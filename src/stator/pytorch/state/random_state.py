"""Seeding and reading the generators of devices: left to Python, which keeps their order with the graphs' draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.cuda.random
import torch.random

from stator import errors
from stator.space.protocol import Handler, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.space import Space

_NAMES = (
    *("manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed"),
    *("get_rng_state", "set_rng_state", "get_rng_state_all", "set_rng_state_all"),
)
#: of the default generator, these are traced (see `generators`)
_TRACED = frozenset({torch.initial_seed, torch.get_rng_state, torch.set_rng_state})


def saved() -> tuple[object, ...]:
    """The state of torch's random generators."""
    return torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []


def restore(state: tuple[object, ...]) -> None:
    """Put torch's random generators back."""
    torch.set_rng_state(state[0])
    if state[1]:
        torch.cuda.set_rng_state_all(state[1])


def _refusing(host: Host) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Unsupported(errors.RandomStateAccess(f"{host.__module__}.{host.__name__}"))

    return handler


def install() -> None:
    """Register the models."""
    for module in (torch, torch.random, torch.cuda, torch.cuda.random):
        for name in _NAMES:
            host = getattr(module, name, None)
            if host is not None and host not in _TRACED:
                register(host, _refusing(host))
