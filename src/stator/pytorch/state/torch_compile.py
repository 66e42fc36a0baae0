"""Routing `torch.compile` itself through Stator, so that unmodified programs and libraries use it."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

import torch

from stator._core import Compiled

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host, Kwargs

#: torch's own, while it is replaced
_original: Host = None


def install(compile: Function) -> None:
    """From now on `torch.compile` is `compile` (that of `stator.api.compile`); a second call changes nothing."""
    global _original
    if _original is None:
        _original = torch.compile
        torch.compile = _with_torchs_signature(compile)
        Compiled.aot_compile = _no_artifact  # type: ignore[attr-defined]


def uninstall() -> None:
    """`torch.compile` is torch's own again."""
    global _original
    if _original is not None:
        torch.compile = _original
        _original = None


def _with_torchs_signature(compile: Function) -> Function:
    @functools.wraps(torch.compile)
    def torch_compile(model: torch.nn.Module = None, **asked: object) -> object:
        if _is_own(sys._getframe(1).f_globals.get("__name__", "")):
            return _original(model, **asked)
        return compile(model, **_as_stators(model, asked))

    return torch_compile


def _as_stators(model: torch.nn.Module, asked: Kwargs) -> Kwargs:
    """The keywords of `torch.compile()` as those of `stator.compile()`; what is not heeded is said once."""
    keywords = dict(asked)
    for name in ("dynamic_shapes", "shapes_spec"):  # torch 2.15 and 2.13
        said = keywords.pop(name, None)
        if said is not None:
            if keywords.get("dynamic") is not None:
                raise ValueError(f"torch.compile: `dynamic` and `{name}` can't be specified at the same time.")
            keywords["dynamic_shapes"] = said
    if keywords.get("backend") is None:
        keywords["backend"] = _default_backend()
    if keywords.get("mode") is not None and keywords.get("options") is not None:
        text = "Either mode or options can be specified, but both can't be specified at the same time."
        raise RuntimeError(text)
    return keywords


def _default_backend() -> str | Function:
    """What `torch.compiler.set_default_backend()` has set, if it has been called."""
    registry = sys.modules.get("torch._dynamo.backends.registry")
    return "inductor" if registry is None else registry.get_default_backend()


def _no_artifact(self: object, *args: object, **kwargs: object) -> object:
    """`compiled.aot_compile()`"""
    raise NotImplementedError(
        "aot_compile() is not supported by Stator, which compiles when a function is called: "
        "call it, or use torch.export"
    )


def _is_own(caller: str) -> bool:
    """Whether torch's machinery asks for its own compiler: a higher-order operator in eager runs its body by it."""
    return caller.startswith("torch._") or caller == "torch.nn.attention.flex_attention"
