"""Wrappers that the traced program makes with `Tensor._make_wrapper_subclass`.

The object is empty at first, and gets its attributes as any other:

    class Scaled(torch.Tensor):
        @staticmethod
        def __new__(cls, data, scale):
            self = torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)
            self.data_, self.scale = data, scale
            return self

When an operation is given it, a node of the graph makes a wrapper of what it holds by then. That one serves the graph:
the program's own is made by generated code, unless autograd knows more of the one in the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.models.classes.attr_dict import AttrDict
from stator.models.classes.instance import empty_slot, slot_text
from stator.pytorch import internals
from stator.pytorch.graph.subgraph import record_module
from stator.pytorch.tensors.lowering import Call, Operand, fill, lower_call
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import register
from stator.space.value import NotKnown, Raised, Unsupported, Value

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.types import Fake, Host, Nested
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["install"]


class WrapperMaker(torch.nn.Module):
    """What makes a wrapper in a graph: the arguments, and the attributes, have places for the module's operands.

    Attributes are given by their names, or, if they are variables in `__slots__`, by their descriptors.
    """

    def __init__(self, cls: type, call: Call, attributes: dict[Host, Nested]) -> None:
        super().__init__()
        self.cls = cls
        self.arguments = call.args, call.kwargs
        self.attributes = attributes

    def forward(self, *operands: torch.Tensor) -> torch.Tensor:
        args, kwargs = fill(self.arguments, operands)
        made: torch.Tensor = internals.make_wrapper(self.cls, *args, **kwargs)
        _give(made, {key: fill(item, operands) for key, item in self.attributes.items()})
        return made


def _give(wrapper: torch.Tensor, attributes: dict[Host, Nested]) -> None:
    for key, item in attributes.items():
        if isinstance(key, str):
            vars(wrapper)[key] = item
        else:
            key.__set__(wrapper, item)


class NewWrapper(TensorValue):
    """A wrapper that the program has made: `given` are the arguments after the class, `call` is the same lowered."""

    __slots__ = ("call", "given", "graph", "slots")

    def __init__(self, space: Space, cls: type, args: list[Value], kwargs: dict[str, Value]) -> None:
        super().__init__(space.trace.recorder, cls, None)
        self.given = args, kwargs
        #: variables in `__slots__` that the program has set (or, with None, deleted), by their descriptor
        self.slots: dict[Host, Value | None] = _Slots(self)
        #: where it is made: the body of an operation may give it
        self.graph = self.recorder.nodes.graph
        self.call = lower_call(space, Call(internals.make_wrapper, "call_function", ""), args, kwargs)
        numbers = [operand.fake for operand in self.call.operands]  # type: ignore[attr-defined]
        host_args, host_kwargs = fill(self.call.args, numbers), fill(self.call.kwargs, numbers)
        try:
            with self.recorder.fakes.executor.mode:
                self._fake = internals.make_wrapper(cls, *host_args, **host_kwargs)
        except Exception as e:
            raise Raised(space.exception(e)) from None

    def attr_dict(self, space: Space) -> Any:
        if self._attrs is None:
            self._attrs = _Attributes(self)
        return self._attrs

    @property
    def fake(self) -> Fake:
        """A fake wrapper, which holds what this one holds by now."""
        vars(self._fake).clear()
        for descriptor in self.slots:
            empty_slot(descriptor, self._fake)
        _give(self._fake, {key: self._held(item, lambda value: value.fake) for key, item in self._items()})
        return self._fake

    @property
    def node(self) -> torch.fx.Node:
        if self._node is None:
            self._record()
        return self._node

    def _items(self) -> list[tuple[Host, Value]]:
        named = [] if self._attrs is None else self._attrs.entries(None)
        return [*named, *((descriptor, item) for descriptor, item in self.slots.items() if item is not None)]

    def _held(self, item: Value, operand: Any) -> Nested:
        """An attribute as a host object, in which the traced tensors and numbers are what `operand` gives for them."""
        item = item.force()
        if isinstance(item, TensorValue) or item.symbolic:
            return operand(item)
        try:
            return item.as_host(self.recorder.trace.space)
        except NotKnown:
            why = f"{item.describe()} cannot be an attribute in a graph"
            raise Unsupported(errors.UnsupportedTensorSubclass(self.cls.__qualname__, why)) from None

    def _record(self) -> None:
        """Add the node that makes it."""
        operands = list(self.call.operands)

        def place(value: Value) -> Operand:
            operands.append(value)
            return Operand(len(operands) - 1)

        attributes = {key: self._held(item, place) for key, item in self._items()}
        module = WrapperMaker(self.cls, self.call, attributes)
        fake = self.fake
        nodes = self.recorder.nodes
        current, nodes.graph = nodes.graph, self.graph
        try:
            made: Any = record_module(self.recorder, "wrapper", module, operands, observed=lambda *given: fake)
        finally:
            nodes.graph = current
        self.operation, self.path, self.root = made.operation, made.path, made.root
        self._node = made.node
        self.recorder.nodes.values[made.node] = self

    def reconstruct(self, writer: Writer) -> str:
        if self._node is not None and (self.requires_grad or self.root in self.recorder.effects.rewritten):
            return super().reconstruct(writer)
        args, kwargs = self.given
        texts = [writer.const(self.cls), *map(writer.expr, args)]
        texts += [f"{name}={writer.expr(value)}" for name, value in kwargs.items()]
        name = writer.assign("wrapper", f"{writer.const(internals.make_wrapper)}({', '.join(texts)})")
        writer.name_value(self, name)
        for descriptor, item in self.slots.items():
            if item is not None:
                writer.line(f"{slot_text(writer, descriptor)}.__set__({name}, {writer.expr(item)})")
        if self._attrs is not None:
            self._attrs.write(writer, name)
        return name


class _Attributes(AttrDict):
    """The `__dict__` of such a wrapper, which does not change once the graph has one made of it."""

    __slots__ = ()

    def mark_mutated(self, space: Space) -> None:
        _refuse_late(self.dict_owner)
        super().mark_mutated(space)


class _Slots(dict[Any, Any]):
    """Its `__slots__`, of which the same is true."""

    def __init__(self, owner: NewWrapper) -> None:
        super().__init__()
        self.owner = owner

    def __setitem__(self, descriptor: Host, item: Value | None) -> None:
        _refuse_late(self.owner)
        super().__setitem__(descriptor, item)


def _refuse_late(owner: Any) -> None:
    if owner is not None and owner._node is not None:
        raise Unsupported(errors.UnsupportedMutation("an assignment to an attribute", f"a {owner.cls.__name__}"))


def _make(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`Tensor._make_wrapper_subclass(cls, size, strides=None, …)`."""
    cls: Host = space.known(args[0].force()) if args else None
    if not isinstance(cls, type) or space.trace.classes.is_fresh(cls):
        raise Unsupported(
            errors.UnsupportedTensorSubclass("Tensor", "an argument of _make_wrapper_subclass is not known")
        )
    space.host_lookup(cls, "__torch_dispatch__")
    return NewWrapper(space, cls, args[1:], kwargs)


def install() -> None:
    """Register the model."""
    register(internals.make_wrapper, _make)
