"""Routing `torch.compile` itself through Stator, so that unmodified programs and libraries use it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

_original: Any = None


def install(compile: Callable[..., Any]) -> None:
    """From now on `torch.compile` is `compile` (that of `stator.api`); a second call changes nothing."""
    global _original
    if _original is None:
        _original = torch.compile
        torch.compile = _with_torchs_signature(compile)


def uninstall() -> None:
    """`torch.compile` is torch's own again."""
    global _original
    if _original is not None:
        torch.compile = _original
        _original = None


def _with_torchs_signature(compile: Callable[..., Any]) -> Any:
    @functools.wraps(torch.compile)
    def torch_compile(
        model: Any = None, *, isolate_recompiles: bool = True, shapes_spec: Any = None, **options: Any
    ) -> Any:
        if _is_own(sys._getframe(1).f_globals.get("__name__", "")):
            return _original(model, isolate_recompiles=isolate_recompiles, shapes_spec=shapes_spec, **options)
        # Isolated recompiles are what Stator always does; shape specifications are hints it does without.
        return compile(model, **options)

    return torch_compile


def _is_own(caller: str) -> bool:
    """Whether torch's machinery asks for its own compiler: a higher-order operator in eager runs its body by it."""
    return caller.startswith("torch._") or caller == "torch.nn.attention.flex_attention"
