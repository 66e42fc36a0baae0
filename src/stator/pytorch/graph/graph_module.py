"""GraphModules whose generated source dies with them."""

from __future__ import annotations

import contextlib
import linecache
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch.fx

from stator.pytorch import internals

if TYPE_CHECKING:
    import torch

__all__ = ["graph_module", "sources_go_with"]


def graph_module(root: torch.nn.Module, graph: torch.fx.Graph) -> torch.fx.GraphModule:
    """The module that runs a graph.

    torch.fx keeps the source of each one for tracebacks, and never lets go of it.
    """
    made = torch.fx.GraphModule(root, graph)
    source: Any = type(made).forward
    weakref.finalize(made, _forget, source.__code__.co_filename).atexit = False
    return made


@contextlib.contextmanager
def sources_go_with(owner: torch.fx.GraphModule) -> Iterator[None]:
    """The source of GraphModules made meanwhile, by a backend, is kept as long as the owner lives."""
    before = set(internals.generated_sources.eval_cache)
    try:
        yield
    finally:
        made = [name for name in list(internals.generated_sources.eval_cache) if name not in before]
        if made:
            weakref.finalize(owner, _forget, *made).atexit = False


def _forget(*names: str) -> None:
    for name in names:
        linecache.cache.pop(name, None)
        internals.generated_sources.eval_cache.pop(name, None)
