"""Modules: attribute access through their globals, `Objects/moduleobject.c`."""

from __future__ import annotations

import builtins
import importlib
import sys
import types
from typing import Any

from stator import errors
from stator.guards.source import ConstSource, GlobalSource, Source
from stator.host.version_facts import MODULE_CALLS_GIVE_HINTS
from stator.models.classes.attr_dict import AttrDict, AttrTable
from stator.models.classes.instance import InstanceValue
from stator.models.containers.dict_table import Entry
from stator.space.attributes import MISSING, attribute_name
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.protocol import NONE, bad_call, models
from stator.space.space import Space
from stator.space.value import NotKnown, Raised, Unsupported, Value

#: the builtins that the tracer itself runs on: where the program has replaced one, nothing is traced
RELIED_ON: dict[str, Any] = {
    name: host
    for name, host in vars(builtins).items()
    if name in ("isinstance", "issubclass", "len", "getattr", "hasattr", "id", "iter", "next", "vars", "any", "all")
    or (type(host) is type and not issubclass(host, BaseException))
}


#: what int and str call for long numbers, from 3.12 on
_LONG_NUMBERS = ("int_to_decimal_string", "int_from_string", "int_divmod")


#: what `module_init_dict` puts into a module's dict
_FIRST = ("__name__", "__doc__", "__package__", "__loader__", "__spec__")

#: what `module_getattro` asks of a module's spec
_SAID_OF_IMPORTS = ("_initializing", "has_location", "origin")


def is_undermined() -> bool:
    """Whether the program has replaced what the tracer itself runs on."""
    if any(vars(builtins).get(name) is not host for name, host in RELIED_ON.items()):
        return True
    helpers = vars(sys.modules.get("_pylong", builtins))
    found = (helpers[name] for name in _LONG_NUMBERS if name in helpers)
    return any(getattr(function, "__globals__", None) is not helpers for function in found)


class GlobalsTable(AttrTable):
    """The globals of a module."""

    __slots__ = ("module_name",)

    def __init__(self, host: dict[Any, Any], owner_source: Source, module_name: str) -> None:
        super().__init__(host, owner_source)
        self.module_name = module_name
        self.source = ConstSource(host, f"{module_name}.__dict__")

    def item_source(self, key: Any) -> Source:
        if type(key) is str and self.host is not None:
            return GlobalSource(self.host, key, self.module_name)
        return super().item_source(key)

    def put(self, space: Space, key: Any, key_value: Value, item: Value) -> None:
        self._check(key)
        super().put(space, key, key_value, item)

    def take(self, space: Space, key: Any) -> Entry | None:
        self._check(key)
        return super().take(space, key)

    def _check(self, key: Any) -> None:
        if self.host is builtins.__dict__ and key in RELIED_ON:
            raise Unsupported(errors.UnsupportedObject(f"the module builtins, whose {key} is changed,"))

    def guard_presence(self, space: Space, key: Any, present: bool) -> None:
        # What is found is guarded when it is used; a source that is missing fails the load.
        super(AttrTable, self).guard_presence(space, key, present)


class ModuleDict(AttrDict):
    """The `__dict__` of a module: what LOAD_GLOBAL, attribute access and `globals()` share."""

    __slots__ = ()

    def __init__(self, owner: Value, module: types.ModuleType) -> None:
        super().__init__(owner)
        assert owner.source is not None
        self.host = namespace_of(module)
        self.table = GlobalsTable(self.host, owner.source, _name(module))
        self.source = self.table.source


@models(types.ModuleType)
class ModuleValue(InstanceValue):
    """A module. Which one an existing module is, is guarded, so that it is known."""

    __slots__ = ()
    FIELDS = {"__annotations__": lambda self, space: self.annotations(space)}
    ALWAYS_EXISTING = True
    CACHED_WEAKLY = True

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> ModuleValue:
        space.guard_identity_of(source, host)
        self = cls.unmet(space, host)
        space.guard_type(host, self.source)
        return self  # type: ignore[no-any-return]

    @classmethod
    def unmet(cls, space: Space, host: types.ModuleType) -> Any:
        """The module of whose globals something is read: its class is not guarded, as the program has not met it."""
        self = space._unmet_modules.get(id(host))
        if self is None:
            self = space._unmet_modules[id(host)] = cls(type(host))
            self.host = host
            self.source = ConstSource(host, _name(host))
        return self

    def as_host(self, space: Space) -> Host:
        return super().as_host(space) if self.source is None else self.host

    def attr_dict(self, space: Space) -> Any:
        if self._attrs is None:
            self._attrs = AttrDict(self) if self.source is None else ModuleDict(self, self.host)
        return self._attrs

    def get_field(self, space: Space, name: str) -> Value | None:
        return Value.get_field(self, space, name) or super().get_field(space, name)

    def annotations(self, space: Space) -> Value:
        """`module_get_annotations`: they are in the module's dict, from when they are first asked for."""
        attrs = self.attr_dict(space)
        if attrs.get_str(space, "__annotations__") is None:
            attrs.set_str(space, "__annotations__", space.new_dict([]))
        return attrs.get_str(space, "__annotations__")  # type: ignore[no-any-return]

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        if name != "__annotations__":
            return False
        if value is not None:
            self.attr_dict(space).set_str(space, name, value)
        elif not self.attr_dict(space).del_str(space, name):
            raise space.error(AttributeError, name)
        return True

    def call_hint(self, space: Space) -> str:
        """`object_is_not_callable`: a function of the module's own name may be meant."""
        hints = MODULE_CALLS_GIVE_HINTS and self.cls is types.ModuleType
        name = self.attr_dict(space).get_str(space, "__name__") if hints else None
        known = None if name is None else space.known(name)
        found = space.getattr_or_none(self, known) if type(known) is str else None
        if found is None or space.host_lookup(found.force().cls, "__call__") is MISSING:
            return ""
        return f". Did you mean: '{known}.{known}(...)'?"

    def describe(self) -> str:
        return "a new module" if self.source is None else f"module {_name(self.host)}"

    def getattr(self, space: Space, name: str, in_tail_position: bool = False) -> Value:
        """`module_getattro`: the ordinary way, then the module's own `__getattr__`."""
        if self.cls is types.ModuleType and not name.startswith("__"):
            # Nothing on the type of modules bears such a name.
            found = self.attr_dict(space).get_str(space, name)
            if found is not None:
                return found  # type: ignore[no-any-return]
        else:
            try:
                return space.generic_getattr(self, name, in_tail_position)
            except Raised as e:
                if not e.matches(AttributeError):
                    raise
        hook = self.attr_dict(space).get_str(space, "__getattr__")
        if hook is not None:
            return space.call(hook, [space.fresh(name)], {}, in_tail_position)
        raise self._missing(space, name)

    def _missing(self, space: Space, name: str) -> Raised:
        """CPython words the AttributeError, which depends on whether the module is still being imported."""
        likeness = types.ModuleType.__new__(types.ModuleType)
        attrs = self.attr_dict(space)
        own, spec = attrs.get_str(space, "__name__"), attrs.get_str(space, "__spec__")
        if own is not None and own.isa(str):
            likeness.__dict__["__name__"] = space.str_(own)
        if spec is not None:
            likeness.__dict__["__spec__"] = _likeness_of(space, spec.force())
        try:
            text = str(types.ModuleType.__getattribute__(likeness, name))
        except AttributeError as e:
            text = str(e)
        return space.no_attribute(self, name, text)

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        return ModuleValue(cls.force().as_host(space))

    def tp_init(self, space: Space, name: Value, doc: Value = NONE) -> Value:
        if not name.isa(str):
            return bad_call(space, types.ModuleType.__init__, [self, name, doc], {})
        for key, value in zip(_FIRST, (name, doc, NONE, NONE, NONE), strict=True):
            self.attr_dict(space).set_str(space, key, value)
        return NONE

    def tp_getattribute(self, space: Space, name: Value, /) -> Value:
        return self.getattr(space, attribute_name(space, name))

    def tp_repr(self, space: Space) -> Value:
        return space.call(space.existing(importlib._bootstrap._module_repr), [self], {})  # type: ignore[attr-defined]

    def tp_dir(self, space: Space) -> Value:
        hook = self.attr_dict(space).get_str(space, "__dir__")
        if hook is not None:
            return space.call(hook, [], {})
        names = space.getattr(self, "__dict__").force()
        if not names.isa(dict):
            raise space.error(TypeError, f"{self.type_name(space)}.__dict__ is not a dictionary")
        return space.new_list(list(space.unpack(names)))

    def shell(self, writer: Writer) -> str:
        return f"{writer.const(types.ModuleType)}.__new__({writer.const(self.cls)})"


def namespace_of(module: types.ModuleType) -> dict[str, Any]:
    """The module's real `__dict__`, whatever a subclass does."""
    own: Any = vars(types.ModuleType)["__dict__"]
    return own.__get__(module)  # type: ignore[no-any-return]


def _likeness_of(space: Space, spec: Value) -> Any:
    """An object that says of an import what the module's spec says of it."""
    if spec.source is not None:
        return spec.identity(space)
    said = {name: space.getattr_or_none(spec, name) for name in _SAID_OF_IMPORTS}
    known = {name: space.known(value) for name, value in said.items() if value is not None}
    return types.SimpleNamespace(**{name: host for name, host in known.items() if host is not NotKnown})


def _name(module: types.ModuleType) -> str:
    return str(namespace_of(module).get("__name__", "?"))


__all__ = ["ModuleDict", "ModuleValue"]
