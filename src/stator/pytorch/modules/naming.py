"""What messages call modules and what is in them: by the attributes that the program has for them."""

from __future__ import annotations

import re
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch

from stator.guards import naming
from stator.guards.naming import Called
from stator.guards.raw import type_lookup
from stator.guards.source import CallSource, DictItemSource, ItemSource
from stator.pytorch import internals

if TYPE_CHECKING:
    from stator.guards.naming import Names
    from stator.guards.source import CallInputs, Source

_TABLES = tuple(f".{table}" for table in internals.MODULE_MEMBERS)


def _member(source: DictItemSource, names: Names) -> str | None:
    """`self.layers[3].weight`, for what is in a module's tables."""
    if type(source.key) is not str:
        return None
    table = names.of(source.base)
    if not table.endswith(_TABLES):
        return None
    owner = table.rpartition(".")[0]
    if source.key.isidentifier():
        return f"{owner}.{source.key}"
    counted = source.key.isdecimal() and not _has_keys(source.base, names)
    return f"{owner}[{source.key if counted else repr(source.key)}]"


def _has_keys(table: Source, names: Names) -> bool:
    """Whether the module with the table is indexed by texts: `self.heads["16"]`, of a ModuleDict."""
    modules = (found for step in table.chain() if isinstance(found := names.found_at(step), torch.nn.Module))
    return isinstance(next(modules, None), torch.nn.ModuleDict | torch.nn.ParameterDict)


def _selected(source: CallSource, names: Names) -> str | None:
    """`self.layers[i]`, where the table is that of a module."""
    if not source.text.startswith("{}["):
        return None
    table = names.of(source.base)
    selected = source.expr(lambda step: names.of(step) if step is not source else None)
    selected = selected.removeprefix(table)
    if table.endswith("._modules"):
        return table.removesuffix("._modules") + _NUMBERED.sub(r"[\1]", selected)
    return table + selected


#: a layer of a list, under its number as text
_NUMBERED = re.compile(r"\[str\((.*)\)\]\Z")


def _hooks(name: str) -> tuple[str, str] | None:
    """The module that a table of hooks belongs to, and their kind."""
    owner, _, table = name.rpartition(".")
    if table in internals.GLOBAL_HOOKS:
        return "torch.nn.Module", f"global {_kind(table.removeprefix('_global'))}"
    return (f"`{owner}`", _kind(table)) if table in internals.MODULE_HOOKS else None


def _kind(table: str) -> str:
    return table.strip("_").replace("pre_hooks", "pre-hook").replace("hooks", "hook").replace("_", " ")


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
    naming.STEPS[DictItemSource] = _member
    naming.STEPS[CallSource] = _selected
    naming.CONTENTS.append(_hooks)
    naming.FORWARDERS.append(_forward)
