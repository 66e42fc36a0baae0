"""GraphModules whose generated source dies with them."""

from __future__ import annotations

import linecache
import weakref
from typing import Any

import torch.fx
from torch.fx import graph_module as fx

__all__ = ["graph_module"]


def graph_module(root: torch.nn.Module, graph: torch.fx.Graph) -> torch.fx.GraphModule:
    """The module that runs a graph.

    torch.fx keeps the source of each one for tracebacks, and never lets go of it.
    """
    made = torch.fx.GraphModule(root, graph)
    source: Any = type(made).forward
    weakref.finalize(made, _forget, source.__code__.co_filename).atexit = False
    return made


def _forget(name: str) -> None:
    linecache.cache.pop(name, None)
    fx._loader.eval_cache.pop(name, None)
