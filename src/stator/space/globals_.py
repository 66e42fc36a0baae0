"""Globals that are no module's `__dict__`: an existing dict, or one that the traced program has made (`exec`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from stator.space.space import Space


class NamedItems:
    """A dict looked up by name."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def value(self, space: Space) -> Value:
        return self.items  # type: ignore[no-any-return]

    def get_str(self, space: Space, name: str) -> Value | None:
        return self.items.find(space, Constant(name))  # type: ignore[no-any-return]

    def set_str(self, space: Space, name: str, value: Value) -> None:
        self.items.tp_setitem(space, Constant(name), value)

    def del_str(self, space: Space, name: str) -> bool:
        if self.get_str(space, name) is None:
            return False
        self.items.tp_delitem(space, Constant(name))
        return True


class MadeGlobals(dict[str, Any]):
    """Stands for a dict made by the traced program where a frame or function needs its globals; empty itself."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.names = NamedItems(value)


def name_in(space: Space, globals_: dict[str, Any], name: str) -> Value | None:
    """What some globals say of themselves (`__name__` …), for what is made of them; nothing is guarded."""
    if isinstance(globals_, MadeGlobals):
        return globals_.names.get_str(space, name)
    return Constant(globals_[name]) if name in globals_ else None
