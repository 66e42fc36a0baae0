"""Syntax trees: nodes that the compiler has made are objects of their classes, with attributes and nothing else."""

from __future__ import annotations

import ast
from typing import Any

from stator.models.classes.instance import InstanceValue
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.protocol import models
from stator.space.space import Space
from stator.space.value import NotKnown, Value

#: the compiler has one object of each of these
_SHARED = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)


@models(ast.AST)
class NodeValue(InstanceValue):
    """A node of a syntax tree."""

    __slots__ = ("_busy",)

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        self._busy = False

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> Value:
        if isinstance(host, _SHARED):
            return space.existing(host)
        self = cls(type(host))
        space._by_id[id(host)] = self
        space._kept.append(host)
        attrs = self.attr_dict(space)
        for name, item in vars(host).items():
            attrs.set_str(space, name, space.fresh(item))
        return self

    def as_host(self, space: Space) -> Host:
        """A copy of the tree, for the compiler."""
        if self.isa(_SHARED):
            return self.host if self.source is not None and self.source.is_constant else super().as_host(space)
        if self.source is not None or self.class_set or self._busy or self.cls.__module__ != "ast":
            raise NotKnown(self)
        self._busy = True
        try:
            node: Any = ast.AST.__new__(self.cls)
            vars(node).update((name, item.as_host(space)) for name, item in self.attr_dict(space).entries(space))
        finally:
            self._busy = False
        return node

    def shell(self, writer: Writer) -> str:
        return f"{writer.const(ast.AST)}.__new__({writer.const(self.cls)})"
