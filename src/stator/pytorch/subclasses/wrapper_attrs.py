"""The attributes of wrappers: the tensors inside, and what else their classes keep.

What an operation makes of wrappers is known as a fake wrapper, which has attributes as the real one will have. The
tensors among them are parts of the operation's result:

    y = x * 2              # y is a wrapper
    y.inner + 1            # mul, getattr, add
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.models.classes.attr_dict import AttrDict
from stator.models.containers.dict_table import Entry
from stator.pytorch.fake.metadata import is_symbol
from stator.pytorch.nesting import leaves_of
from stator.pytorch.shapes.symbols import SymValue
from stator.space.protocol import is_immutable
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = ["WrapperAttrs"]


class WrapperAttrs(AttrDict):
    """The `__dict__` of a wrapper. What is in it when an operation is given the wrapper stays as it is."""

    __slots__ = ("given",)

    def __init__(self, space: Space, owner: Any) -> None:
        super().__init__(owner, owner.host)
        #: the attributes that its class has given it
        self.given: dict[str, Value] = {}
        if owner.host is None:
            for name, item in vars(owner.fake).items():
                value = self.given[name] = _attribute(space, owner, name, item)
                self.table.entries[name] = Entry(Constant(name), value)

    def get_str(self, space: Space, name: str) -> Value | None:
        owner = self.dict_owner
        if owner is not None and owner.host is not None and _has_symbol(vars(owner.fake).get(name)):
            if name not in self.given:  # the symbols of the trace are others than those of the existing wrapper
                self.given[name] = _attribute(space, owner, name, vars(owner.fake)[name])
            return self.given[name]
        return super().get_str(space, name)

    def slot(self, space: Space, name: str) -> Value:
        """A variable in `__slots__`, of a wrapper that an operation has made."""
        if name not in self.given:
            self.given[name] = _attribute(space, self.dict_owner, name, getattr(self.dict_owner.fake, name))
        return self.given[name]

    def set_str(self, space: Space, name: str, item: Value) -> None:
        self._refuse(name)
        super().set_str(space, name, item)

    def del_str(self, space: Space, name: str) -> bool:
        self._refuse(name)
        return super().del_str(space, name)

    def _refuse(self, name: str) -> None:
        owner = self.dict_owner
        if name in self.given or (owner.host is not None and name in vars(owner.fake)):
            raise Unsupported(errors.UnsupportedMutation(f"setting {name!r}", f"a {owner.cls.__name__} object"))

    def entries(self, space: Space | None) -> list[tuple[str, Value]]:
        found = super().entries(space)
        if space is not None:
            return found
        return [(name, item) for name, item in found if self.given.get(name) is not item]


def _has_symbol(item: Host) -> bool:
    return any(map(is_symbol, item)) if type(item) is tuple else is_symbol(item)


def _attribute(space: Space, owner: Any, name: str, item: Host) -> Value:
    """The value of an attribute of a wrapper, from that of a fake one."""
    if isinstance(item, torch.Tensor):
        return owner.part(name, item)
    if type(item) is tuple:
        return space.new_tuple([_plain(space, owner, part, name, i) for i, part in enumerate(item)])
    return _plain(space, owner, item, name)


def _plain(space: Space, owner: Any, item: Host, *steps: int | str) -> Value:
    """The value of what is found in such an attribute."""
    if is_symbol(item):
        node = owner.node
        for step in steps:
            node = owner.recorder.nodes.part(node, step)
        return SymValue.computed(owner.recorder, item, node)
    if is_immutable(type(item)):
        return space.fresh(item)
    return _description(space, item) or _Unknown(owner.cls, str(steps[0]))


def _description(space: Space, item: Host) -> Value | None:
    """An object of torch's own in which a wrapper is described: what it holds is as in the fake wrapper.

    Sizes that are symbols are not known by it.
    """
    if type(item).__module__.partition(".")[0] != "torch" or not hasattr(item, "__dict__"):
        return None
    value: Any = space.existing(item)
    for name, part in vars(item).items():
        if any(map(is_symbol, leaves_of(part))):
            value.attr_dict(space).table.put(space, name, Constant(name), _Unknown(type(item), name))
    return value


class _Unknown(Value):
    """An attribute of which nothing is known: whoever looks at it breaks the graph."""

    __slots__ = ("name", "owner")
    lazy = True
    #: it has been looked at, so far as that goes
    _value = True

    def __init__(self, owner: type, name: str) -> None:
        self.owner = owner
        self.name = name
        self.source = None

    @property
    def cls(self) -> type:  # type: ignore[override]
        return self.force().cls

    def force(self) -> Value:
        raise Unsupported(errors.UnsupportedAttribute(self.owner.__name__, self.name))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.owner.__name__}.{self.name}>"
