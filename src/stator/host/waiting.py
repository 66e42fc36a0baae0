"""Doing something when a module is imported, now or later, without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["when_loaded"]

_waiting: dict[str, list[Callable[[ModuleType], None]]] = {}


def when_loaded(name: str, do: Callable[[ModuleType], None]) -> None:
    """Call `do` with the module: at once if it has been imported, else as soon as it is."""
    module = sys.modules.get(name)
    if module is not None:
        do(module)
        return
    _waiting.setdefault(name, []).append(do)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


class _Finder:
    """Lets the other finders find the modules that are waited for, and is told when they have been executed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _waiting:
            return None
        finders = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        spec = next((s for finder in finders if (s := finder.find_spec(name, path, target)) is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = _followed(spec.loader)  # type: ignore[assignment,method-assign]
        return spec


def _followed(loader: Any) -> Callable[[ModuleType], None]:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        vars(loader).pop("exec_module", None)
        execute(module)
        for do in _waiting.pop(module.__name__, ()):
            do(module)
        if not _waiting and _FINDER in sys.meta_path:
            sys.meta_path.remove(_FINDER)

    return exec_module


_FINDER: Any = _Finder()
