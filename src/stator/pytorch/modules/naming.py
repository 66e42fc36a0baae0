"""What messages call modules and what is in them: by the attributes that the program has for them."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from stator.guards import naming
from stator.guards.naming import Called
from stator.guards.raw import type_lookup
from stator.guards.source import DictItemSource, ItemSource
from stator.pytorch import internals

if TYPE_CHECKING:
    from stator.guards.source import CallInputs, Source

_TABLES = tuple(f".{table}" for table in internals.MODULE_MEMBERS)


def _step(source: Source, name_of: Callable[[Source], str]) -> str | None:
    """`self.layers[3].weight`, for what is in a module's tables."""
    if not isinstance(source, DictItemSource) or type(source.key) is not str:
        return None
    table = name_of(source.base)
    if not table.endswith(_TABLES):
        return None
    owner = table.rpartition(".")[0]
    return f"{owner}.{source.key}" if source.key.isidentifier() else f"{owner}[{source.key}]"


def _forward(called: Called, call: CallInputs) -> Called | None:
    """The call of a module is one of its `forward`, as the user has written it."""
    if called.code not in (internals.module_wrapped_call.__code__, internals.module_call.__code__):
        return None
    if len(called.args) != 3:
        return None
    module, args = call.get(called.args[0]), call.get(called.args[1])
    forward: Any = type_lookup(type(module), "forward")
    while isinstance(forward, FunctionType) and isinstance(forward.__dict__.get("__wrapped__"), FunctionType):
        forward = forward.__dict__["__wrapped__"]
    if not isinstance(forward, FunctionType) or type(args) is not tuple:
        return None
    positional = (called.args[0], *(ItemSource(called.args[1], i) for i in range(len(args))))
    return Called(forward.__code__, positional, called.args[2])


def install() -> None:
    """Tell messages of it."""
    naming.STEPS.append(_step)
    naming.FORWARDERS.append(_forward)
