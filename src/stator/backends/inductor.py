"""The Inductor backend, with the modes and options that torch.compile takes for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stator.backends.exact_floats import exact_floats, reads_floats
from stator.errors import ConfigError
from stator.pytorch import internals

if TYPE_CHECKING:
    import torch.fx

__all__ = ["Inductor"]

#: Inductor's setting for passes over a graph that it has done with
_LAST_PASS = "post_grad_custom_post_pass"


class Inductor:
    """Compiles graphs with Inductor under the settings of one compile() call."""

    name = "inductor"
    #: it traces the backward pass of a graph with the graph
    traces_backward = True
    #: it fails on torch's operator for them
    takes_leaf_functions = False

    def __init__(self, mode: str | None, options: dict[str, object]) -> None:
        self.mode = mode
        self.options = options
        self._patches: dict[str, object] | None = None

    def __eq__(self, other: object) -> bool:
        """Whether they do the same: then compile() calls share what they have compiled."""
        return isinstance(other, Inductor) and (self.mode, self.options) == (other.mode, other.options)

    def __hash__(self) -> int:
        return hash(self.mode)

    def patches(self) -> dict[str, object]:
        """Inductor's settings for the mode and the options, checked."""
        if self._patches is None:
            self._patches = _patches(self.mode, self.options)
        return self._patches

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[object]) -> Callable[..., Any]:
        patches = self.patches()
        if reads_floats(gm):
            patches = {**patches, _LAST_PASS: _with_exact_floats(patches)}
        return internals.compile_fx(gm, example_inputs, config_patches=patches)


def _with_exact_floats(patches: dict[str, object]) -> list[object]:
    """The passes that the program has set, and ours."""
    given = patches.get(_LAST_PASS, getattr(internals.inductor_config, _LAST_PASS))
    passes = given if isinstance(given, list | tuple) else [] if given is None else [given]
    return [*passes, exact_floats()]


def _patches(mode: str | None, options: dict[str, object]) -> dict[str, object]:
    known = internals.inductor_config.get_config_copy()
    patches: dict[str, object] = {}
    if mode not in (None, "default"):
        modes = internals.inductor_modes()
        if mode not in modes:
            raise ConfigError(f"unknown mode {mode!r} of inductor; known: {', '.join(sorted(modes))}")
        patches.update(modes[mode])
    for key, value in options.items():
        name = key.replace("-", "_")
        if name not in known:
            raise ConfigError(f"unknown option {key!r}: neither Stator nor Inductor has it")
        patches[name] = value
    return patches
