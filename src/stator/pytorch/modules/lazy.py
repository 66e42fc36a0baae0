"""The first call of a lazy module (`nn.LazyLinear`): its parameters are made before the trace goes on.

What they are is told by the sizes of the module's arguments, which the trace knows. torch's own modules look at nothing
else, so that they are initialised for real, a little earlier than the program would do it, and the trace begins again
with an ordinary module. One that the program makes inside is made by ordinary Python, as its parameters have no sizes.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING

import torch
from torch.nn.modules.lazy import LazyModuleMixin

from stator import errors
from stator.interp import policy
from stator.models.classes.instance import InstanceValue
from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.tensors.tensor import TensorValue
from stator.pytorch.whole_calls import public_name
from stator.space.protocol import CALL_HOOKS, register
from stator.space.signals import DoFirst
from stator.space.value import NotKnown, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.space import Space


def _infer_parameters(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`LazyModuleMixin._infer_parameters(self, module, args, kwargs)`, the hook that runs before the first forward."""
    module = args[0].force()
    if len(args) not in (3, 4) or kwargs or module is not args[1].force() or not isinstance(module, InstanceValue):
        return None
    host = module.host
    if module.source is None or not _may_come_early(space, host):
        return None
    try:
        given = [_like(space, value) for value in space.unpack(args[2])]
        named = {name: _like(space, value) for name, value in _items(space, args[3:]).items()}
    except NotKnown:
        return None
    what = f"the parameters of a {type(host).__qualname__} at {id(host)}"
    if what in space.trace.done_first:
        return None
    raise DoFirst(what, lambda: internals.infer_parameters(host, host, tuple(given), named))


def _may_come_early(space: Space, host: Host) -> bool:
    """Whether the module is torch's own, and initialised now is what it will be, also by the random numbers drawn."""
    trace, recorder = space.trace, space.trace.recorder
    initialize = type(host).initialize_parameters
    if not initialize.__module__.startswith("torch.nn.") or recorder.effects.random or recorder.effects.acts:
        return False
    changed = {id(found) for found in trace.effects.changed_hosts()}
    parts = (host, vars(host), *vars(host).values())
    return not recorder.state.open and not any(id(part) in changed for part in parts)


def _items(space: Space, rest: list[Value]) -> dict[str, Value]:
    """The named arguments, of which there may be no dict."""
    named = rest[0].force() if rest else None
    return {} if named is None or named.is_none() else named.str_items(space)  # type: ignore[attr-defined]


def _like(space: Space, value: Value) -> Host:
    """An argument as far as metadata goes."""
    value = value.force()
    if not isinstance(value, TensorValue):
        return value.as_host(space)
    sizes = [hint_of(size) for size in value.shape]
    if None in sizes:
        raise NotKnown
    return torch.empty(sizes, dtype=value.dtype, device="meta")


def _made(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> None:
    """A lazy module is made (see protocol.CALL_HOOKS)."""
    if isinstance(host, type) and issubclass(host, torch.nn.Module) and space.derives(host, LazyModuleMixin):
        initialise = space.host_lookup(host, "__init__")
        if type(initialise) is FunctionType:
            policy.LEFT.keep(initialise.__code__, True)
        name = public_name(host)
        raise Unsupported(errors.UnsupportedTensorOperation(name, "its parameters have no sizes before it is called"))


def install() -> None:
    """Register the models."""
    register(internals.infer_parameters, _infer_parameters)
    CALL_HOOKS.append(_made)
