"""Checkpoints of modules that torch's own compiler had wrapped: their keys have `_orig_mod.` at the wrapper's place."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stator.pytorch import internals

if TYPE_CHECKING:
    import torch

__all__ = ["unwrap_keys", "unwrapped"]

_WRAPPED = "_orig_mod"


def unwrapped(module: torch.nn.Module, state_dict: dict[str, object]) -> dict[str, object]:
    """The state for a module that had been wrapped: itself, or a copy with the module's own keys."""
    if not isinstance(state_dict, Mapping) or not _renames(module, state_dict, ""):
        return state_dict
    made = OrderedDict(state_dict)
    unwrap_keys(module, made, "")
    versions = internals.layer_versions(state_dict)
    if versions is not None:  # by path: "" is the wrapper, "_orig_mod" the module
        mine = {path.removeprefix(_WRAPPED).removeprefix("."): version for path, version in versions.items()}
        internals.set_layer_versions(made, mine)
    return made


def unwrap_keys(module: torch.nn.Module, state_dict: dict[str, object], prefix: str) -> None:
    """Rename, in place, the keys that a wrapper of the module has under the prefix."""
    for key in _renames(module, state_dict, prefix):
        state_dict[prefix + key.removeprefix(f"{prefix}{_WRAPPED}.")] = state_dict.pop(key)


def _renames(module: torch.nn.Module, state_dict: Mapping[str, object], prefix: str) -> list[str]:
    """The keys of a wrapper: none where the module itself has a member of that name."""
    if _WRAPPED in internals.submodules(module):
        return []
    return [key for key in state_dict if key.startswith(f"{prefix}{_WRAPPED}.")]
