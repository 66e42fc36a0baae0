"""Doing something to a module as soon as the program imports it, without importing it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

__all__ = ["when_loaded"]


def when_loaded(name: str, act: Callable[[Any], None]) -> None:
    """Call `act(module)` once: now, if the module is loaded, else when it has been, before its importer goes on.

    A module that another thread is just executing counts as loaded: `act` must bear with what it lacks.
    """
    module = sys.modules.get(name)
    if module is None:
        sys.meta_path.insert(0, _Finder(name, act))
    else:
        act(module)


class _Finder:
    """Finds one module, as the finders after it do, and has `act` called when it has been executed."""

    def __init__(self, name: str, act: Callable[[Any], None]) -> None:
        self.name = name
        self.act = act

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self.name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            del spec.loader.exec_module  # type: ignore[union-attr]
            execute(module)
            self.act(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
