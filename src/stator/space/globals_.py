"""The globals of code: a module's `__dict__`, another existing dict, or one that the program has made (`exec`)."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from stator import errors
from stator.space.host_types import Host
from stator.space.protocol import is_immutable
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Names
    from stator.space.space import Space

#: the globals of code, as frames and functions hold them: the dict itself, or a MadeGlobals
Globals = dict[str, Host]


class NamedItems:
    """A dict looked up by name."""

    def __init__(self, items: Host) -> None:
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


class MadeGlobals(Globals):
    """Stands for a dict made by the traced program where a frame or function needs its globals; empty itself."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.names = NamedItems(value)


def made_names(globals_: Globals) -> NamedItems | None:
    """The names in globals that the traced program has made; None for a dict that existed before."""
    return globals_.names if isinstance(globals_, MadeGlobals) else None


def name_in(space: Space, globals_: Globals, name: str) -> Value | None:
    """What some globals say of themselves (`__name__` …), for what is made of them; nothing is guarded."""
    made = made_names(globals_)
    if made is not None:
        return made.get_str(space, name)
    return Constant(globals_[name]) if name in globals_ else None


class Namespaces:
    """What the code of one trace finds around it: its globals, builtins and constants."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._globals: dict[int, Names] = {}
        self._made: dict[int, MadeGlobals] = {}
        self._constants: dict[int, Value] = {}

    def close(self) -> None:
        """The trace is over: let go of its values."""
        self._globals.clear()
        self._made.clear()
        self._constants.clear()

    def globals_of(self, host: Globals) -> Names:
        """The names in a function's globals: those of its module's `__dict__`, which it shares."""
        found = made_names(host) or self._globals.get(id(host))
        if found is None:
            self._space.trace.root.reads_names_of(host)
            module = sys.modules.get(host.get("__name__", ""))
            if isinstance(module, ModuleType) and module.__dict__ is host:
                found = self._space.module_names(module)
            else:
                found = NamedItems(self._space.existing(host, f"globals of {host.get('__name__', '?')}"))
            self._globals[id(host)] = found
        return found

    def globals_from(self, value: Value) -> Globals:
        """The dict as the globals of code: the existing one, or what stands for one made by the program."""
        host = self._space.identity(value)
        if isinstance(host, dict):
            self._space.guard_identity_of(value.source, host)
            return host
        if id(value) not in self._made:
            self._made[id(value)] = MadeGlobals(value)
        return self._made[id(value)]

    def builtins_of(self, host: Globals) -> Names:
        """The builtins that go with a function's globals."""
        made = made_names(host)
        if made is not None:
            value = made.get_str(self._space, "__builtins__")
            if value is None:  # of a function that was made with `types.FunctionType`
                return self.globals_of(sys.modules["builtins"].__dict__)
            known = self._space.identity(value)
            if not isinstance(known, ModuleType | dict):
                if value.force().cls is not dict:
                    raise Unsupported(errors.UnsupportedObject("a function whose builtins are no dict"))
                return NamedItems(value)
            host = {"__builtins__": known}
        builtins = host.get("__builtins__")
        if builtins is None:
            builtins = sys.modules["builtins"]
        return self.globals_of(builtins.__dict__ if isinstance(builtins, ModuleType) else builtins)

    def known_global(self, host: Globals, name: str) -> object:
        """The host object that the program has left in a global; None where there is none."""
        value = self.globals_of(host).get_str(self._space, name)
        return None if value is None else self._space.known(value)

    def constant(self, host: object) -> Value:
        """The value of a code constant, one per object."""
        found = self._constants.get(id(host))
        if found is None:
            found = self._constants[id(host)] = self._made_constant(host)
            self._space._kept.append(host)
        return found

    def _made_constant(self, host: object) -> Value:
        if type(host) in (tuple, frozenset):
            return self._space.fresh(host)
        return Constant(host) if is_immutable(type(host)) else self._space.existing(host)
