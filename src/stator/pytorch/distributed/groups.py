"""Process groups: their rank, size and name are constants, under one guard.

The graph holds a group by its name, which torch resolves when the graph runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.guards.callable_names import callable_name, function_of
from stator.guards.raw import class_dict
from stator.guards.source import CallSource, ConstSource
from stator.pytorch import internals
from stator.pytorch.distributed import recipes
from stator.space.facts import answer
from stator.space.protocol import Handler, register
from stator.space.value import Constant, NotKnown, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = ["backends", "install"]

_FACTS = ("rank", "size", "group_name")


def _facts(group: Host) -> tuple[int, int, str]:
    return group.rank(), group.size(), group.group_name


def backends(group: Host) -> tuple[tuple[str, str], ...]:
    """What moves tensors, for each kind of devices."""
    devices = internals.devices_of_group(group)
    return tuple([(device.type, internals.backend_of_group(group, device).name()) for device in devices])


def _backend_name(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The name of the backend for a kind of devices."""
    group, device = args[0].force(), space.known(args[1].force())
    return Constant(dict(answer(space, group, backends, "backends")).get(device))


def _fact(index: int) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        group = args[0].force()
        if len(args) > 1 or kwargs or group.host is None:
            return None
        return Constant(answer(space, group, _facts, "rank, size and name")[index])

    return handler


def _resolve(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The group of a name."""
    resolve = internals.group_of_name
    name = space.known(args[0].force()) if len(args) == 1 else None
    try:
        group = resolve(name)
    except (RuntimeError, TypeError):  # there is none, or it is no name: eager has the words
        raise Unsupported(errors.UnsupportedCCall(callable_name(resolve))) from None
    return space.wrap(group, CallSource(resolve, ConstSource(name, repr(name)), "group of this name"))


def _backend(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`group._get_backend(device)`: what moves the group's tensors on such devices."""
    group, device = args[0].force(), space.known(args[1].force()) if len(args) == 2 and not kwargs else NotKnown
    if group.source is None or not isinstance(device, torch.device):
        return None
    try:
        made = internals.backend_of_group(group.host, device)
    except RuntimeError:  # there is none: eager has the words
        return None
    return space.wrap(
        made, CallSource(_backend_of, group.source, "{}._get_backend({1})", ConstSource(device, repr(device)))
    )


def _backend_of(group: Host, device: Host) -> Host:
    return internals.backend_of_group(group, device)


def _supports_coalescing(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """Whether several messages are begun as one."""
    backend = args[0].force()
    return None if backend.host is None else Constant(answer(space, backend, _coalesces, "supports_coalescing"))


def _coalesces(backend: Host) -> bool:
    return bool(backend.supports_coalescing)


def install() -> None:
    """Register the models."""
    group = class_dict(internals.c10d.ProcessGroup)
    for index, name in enumerate(_FACTS):
        register(function_of(group[name]), _fact(index))
    register(internals.group_of_name, _resolve)
    register(recipes.backend, _backend_name)
    register(function_of(internals.backend_of_group), _backend)
    register(function_of(class_dict(internals.c10d.Backend)["supports_coalescing"]), _supports_coalescing)
