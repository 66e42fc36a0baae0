"""The `__dict__` of an object: a dict whose items are also the object's attributes."""

from __future__ import annotations

import types
import weakref
from typing import Any, ClassVar

from stator.guards.guard import HasKey, NoAttr
from stator.guards.raw import class_dict, instance_dict, is_heap_type, set_instance_dict
from stator.guards.source import AttrSource, InstanceDictSource, Source
from stator.models.classes.instance import dict_text
from stator.models.containers.dict_ import DictValue
from stator.models.containers.dict_table import Table
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.space import Space
from stator.space.value import Constant, Value


class AttrTable(Table):
    """The contents of the `__dict__` of an existing object."""

    __slots__ = ("owner_source",)

    def __init__(self, host: dict[Any, Any], owner_source: Source) -> None:
        super().__init__(host, InstanceDictSource(owner_source))
        self.owner_source = owner_source

    def item_source(self, key: Any) -> Source:
        return AttrSource(self.owner_source, key) if type(key) is str else super().item_source(key)

    def guard_presence(self, space: Space, key: Any, present: bool) -> None:
        assert self.source is not None
        if present:
            space.trace.guard(HasKey(self.source, key))
        elif type(key) is str:
            space.trace.guard(NoAttr(self.owner_source, key))
        else:
            super().guard_presence(space, key, present)


class AttrDict(DictValue):
    """The `__dict__` of an instance, module or function: attribute access and the program's dict operations meet here.

    `owner` is the object, `host` the existing object it stands for, or None where the traced program has made it.
    """

    __slots__ = ("_owner", "_shared")
    #: whether the program has assigned the dict to `__dict__`
    assigned: ClassVar[bool] = False

    def __init__(self, owner: Value, host: Host = None) -> None:
        super().__init__()
        self.dict_owner = owner
        #: the same dict, met as a dict before it was met as the attributes of its object
        self._shared: DictValue | None = None
        if host is not None:
            own = instance_dict(host)
            assert isinstance(own, dict)
            self.host = own
            assert owner.source is not None
            self.table = AttrTable(self.host, owner.source)
            self.source = self.table.source

    @property
    def dict_owner(self) -> Any:
        """The object, which holds the dict and not the other way round; None where it is an ordinary one."""
        return None if self._owner is None else self._owner()

    @dict_owner.setter
    def dict_owner(self, owner: Value | None) -> None:
        self._owner = None if owner is None else weakref.ref(owner)

    # -- attribute access -------------------------------------------------------------------------------------------

    def get_str(self, space: Space, name: str) -> Value | None:
        """The attribute in the object's own dict, or None."""
        table = self.table if self._shared is not None or self.host is None else self._meet(space)
        entry = table.entries.get(name) if table.complete else table.locate(space, name)
        return None if entry is None else entry.item

    def set_str(self, space: Space, name: str, item: Value) -> None:
        """Assign the attribute in the object's own dict."""
        self.mark_mutated(space)
        self.table.put(space, name, Constant(name), item)

    def del_str(self, space: Space, name: str) -> bool:
        """Delete the attribute from the object's own dict; whether there was one."""
        self.mark_mutated(space)
        return self.table.take(space, name) is not None

    def entries(self, space: Space | None) -> list[tuple[str, Value]]:
        """The attributes in order. Without a space only for an object that the traced program has made."""
        if space is not None and self.host is not None:
            self._meet(space)
        entries = self.table.entries if space is None else self.table.finish(space)
        return [(key, entry.item) for key, entry in entries.items() if type(key) is str and entry.item is not None]

    # -- one dict, one value ----------------------------------------------------------------------------------------

    def value(self, space: Space) -> DictValue:
        """What `obj.__dict__` gives: the one value of this dict in the trace."""
        if self.host is None:
            return self
        self._meet(space)
        assert self._shared is not None
        return self._shared

    def _meet(self, space: Space) -> Table:
        """Be the one value of the existing dict, or share the table of the one there is."""
        if self._shared is None:
            known = space._by_id.setdefault(id(self.host), self)
            assert isinstance(known, DictValue)
            self._shared = known
            if known is not self:
                self.table = known.table
        return self.table

    def mark_mutated(self, space: Space) -> None:
        space.mark_mutated(self.value(space))

    # -- generated code ---------------------------------------------------------------------------------------------

    def lines(self, writer: Writer, name: str) -> list[str]:
        """The lines that give the object made by generated code, called `name` there, its attributes."""
        own = dict_text(writer, self.dict_owner.cls, name)
        return [f"{own}[{key!r}] = {writer.expr(item)}" for key, item in self.entries(None)]

    def write(self, writer: Writer, name: str) -> None:
        """Emit these lines."""
        for line in self.lines(writer, name):
            writer.line(line)

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        return super().reconstruct(writer) if self.dict_owner is None else self._text(writer)

    def shell(self, writer: Writer) -> str:
        return super().shell(writer) if self.dict_owner is None else self._text(writer)

    def _text(self, writer: Writer) -> str:
        return dict_text(writer, self.dict_owner.cls, writer.expr(self.dict_owner))


class AssignedDict(AttrDict):
    """A dict that the program has assigned to the `__dict__` of an object made by the trace."""

    __slots__ = ("given",)
    assigned = True

    def __init__(self, owner: Value, given: DictValue) -> None:
        self.given = given
        super().__init__(owner)
        self._shared = given

    @property
    def table(self) -> Table:
        """The contents are those of the given dict."""
        return self.given.table

    @table.setter
    def table(self, table: Table) -> None:
        pass

    def value(self, space: Space) -> DictValue:
        return self.given

    def held(self) -> list[Value]:
        return [self.given]

    def lines(self, writer: Writer, name: str) -> list[str]:
        return [f"{writer.const(set_instance_dict)}({name}, {writer.expr(self.given)})"]


def _is_fixed(cls: type) -> bool:
    """`subtype_setdict`: whether the builtin base that has the dict, a module, lets nobody replace it."""
    base: type | None = cls
    while base is not None and is_heap_type(base):
        base = base.__base__
    return base is not None and type(class_dict(base).get("__dict__")) is types.MemberDescriptorType


def assign_dict(space: Space, owner: Any, value: Value | None) -> bool:
    """`owner.__dict__ = value`; False where that has no model."""
    given = None if value is None else value.force()
    if given is not None and not given.isa(dict):
        text = f"__dict__ must be set to a dictionary, not a '{given.type_name(space)}'"
        raise space.error(TypeError, text)
    if _is_fixed(owner.cls):
        raise space.error(AttributeError, "readonly attribute")
    if owner.source is not None or not isinstance(given, DictValue) or owner.attr_dict(space) is None:
        return False
    space.mark_mutated(owner)
    owner._attrs.dict_owner = None  # whoever has the former dict has an ordinary one
    owner._attrs = AssignedDict(owner, given)
    return True
