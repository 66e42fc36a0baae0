"""Routing `torch.compile` itself through Stator, so that unmodified programs and libraries use it."""

from __future__ import annotations

from typing import Any

import torch

_original: Any = None


def install() -> None:
    """From now on `torch.compile` is `stator.compile`; a second call changes nothing."""
    global _original
    if _original is None:
        _original = torch.compile
        torch.compile = _compile


def uninstall() -> None:
    """`torch.compile` is torch's own again."""
    global _original
    if _original is not None:
        torch.compile = _original
        _original = None


def _compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    **others: Any,
) -> Any:
    """`torch.compile`'s signature; what Stator always does (`isolate_recompiles`) is accepted and dropped."""
    from stator.api import compile

    return compile(
        model,
        backend=backend,
        fullgraph=fullgraph,
        dynamic=dynamic,
        mode=mode,
        options=options,
        disable=disable,
        recompile_limit=others.get("recompile_limit"),
    )
