"""The traced tensor: an existing one becomes an input of the graph when it is first used there, a new one is a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.models.classes.attr_dict import AttrDict
from stator.models.classes.instance import InstanceValue
from stator.pytorch.fake.metadata import TensorMeta
from stator.pytorch.subclasses.wrapper_attrs import WrapperAttrs
from stator.pytorch.tensors.classes import PLAIN_CLASSES, is_no_operand, is_traceable, is_wrapper
from stator.space.identity.aliasing import used_as_key
from stator.space.identity.keys import IdentityKey
from stator.space.value import NotKnown, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch.fx

    from stator.guards.source import Source
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Operation
    from stator.pytorch.types import Fake, Host, Path
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["TensorValue", "tensors_among"]


class TensorValue(Value):
    """A tensor.

    `host` is the existing tensor it stands for, or None; `meta` describes it, or is None where only a fake tensor can;
    `operation` and `path` say which part of which operation's result it is; `fields` holds C-level attributes that the
    traced program has assigned.
    """

    __slots__ = ("_attrs", "_fake", "_node", "fields", "host", "meta", "operation", "path", "recorder", "root")
    CACHED_WEAKLY = True
    #: whether it is in no graph itself, but as the tensors that it is made of (see `stator.pytorch.composed`)
    composed = False

    def __init__(self, recorder: Recorder, cls: type, meta: TensorMeta | None) -> None:
        self.cls = cls
        self.source: Source | None = None
        self.recorder = recorder
        self.meta = meta
        self.host: Host = None
        self.operation: Operation | None = None
        self.path: Path = ()
        #: the tensor whose memory this one shares; itself, unless it is a view
        self.root: TensorValue = self
        self.fields: dict[str, Value] = {}
        self._node: torch.fx.Node = None
        self._fake: Fake = None
        self._attrs: Any = None

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        """An existing tensor: its class and metadata are guarded."""
        if type(host) not in PLAIN_CLASSES and is_no_operand(type(host)):
            return InstanceValue.from_host(space, host, source)
        recorder = space.trace.recorder
        self = cls(recorder, type(host), None)
        self.source = source
        self.host = host
        recorder.tracked.adopt(self)
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> TensorValue:
        """A tensor that a real computation has made: it is embedded in the graph."""
        raise Unsupported(errors.OpaqueResult("torch.Tensor (made outside the graph)"))

    # -- the graph --------------------------------------------------------------------------------------------------

    @property
    def node(self) -> torch.fx.Node:
        """The FX node that computes it."""
        if self._node is None:
            self._node = self.recorder.nodes.of(self)
        return self._node

    @property
    def fake(self) -> Any:
        """A fake tensor with its metadata and its aliases; made when needed."""
        if self._fake is None:
            self.recorder.fakes.materialise(self)
        return self._fake

    @property
    def shape(self) -> Any:
        """The sizes: numbers, or symbols."""
        return self.meta.shape if self.meta is not None else self.fake.shape

    @property
    def dtype(self) -> Any:
        return self.meta.dtype if self.meta is not None else self.fake.dtype

    @property
    def device(self) -> Any:
        return self.meta.device if self.meta is not None else self.fake.device

    @property
    def requires_grad(self) -> bool:
        return bool(self.meta.requires_grad if self.meta is not None else self.fake.requires_grad)

    @property
    def composition(self) -> Any:
        """What says what operations on it are, where no graph takes it (see `stator.pytorch.composed`)."""
        return self.recorder.slots.composition(self)

    # -- the object -------------------------------------------------------------------------------------------------

    def identity(self, space: Space) -> Any:
        if space.trace.frame is not None and self in self.recorder.tracked.hidden_copies:  # it is the program that asks
            raise Unsupported(
                errors.DataDependentValue("the identity of a tensor that only one side of a branch makes")
            )
        return self if self.host is None else self.host

    def as_existing(self, space: Space) -> Any:
        """As for all objects, but without a guard: each call has tensors of its own, which are not told apart."""
        if self.source is None or self.root in self.recorder.effects.written:
            raise NotKnown(self)
        return self.host

    def key(self, space: Space) -> Any:
        used_as_key(space, self)
        return IdentityKey(self.identity(space))

    def attr_dict(self, space: Space) -> Any:
        if self._attrs is None:
            self._attrs = WrapperAttrs(space, self) if is_wrapper(self.cls) else AttrDict(self, self.host)
        return self._attrs

    def part(self, name: str, fake: Fake) -> TensorValue:
        """The tensor that a wrapper made by an operation holds in the attribute."""
        fakes = self.recorder.fakes
        made = TensorValue(self.recorder, fakes.class_of(fake), fakes.describe(fake))
        made.operation, made.path, made.root, made._fake = self.operation, (*self.path, name), self.root, fake
        self.recorder.tracked.note(made)
        if self.operation is None:
            made._node = self.recorder.nodes.part(self.node, name)
        return made

    def get_field(self, space: Space, name: str) -> Value | None:
        return self.recorder.slots.get_field(space, self, name)

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        return self.recorder.slots.set_field(space, self, name, value)

    def unpack(self, space: Space) -> list[Value]:
        return self.recorder.slots.unpack(space, self)

    plain_iters = (torch.Tensor.__iter__,)

    def describe(self) -> str:
        return f"a tensor of shape {tuple(self.shape)}"

    # -- generated code ---------------------------------------------------------------------------------------------

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        rebound = self.recorder.tracked.rebound.get(self)
        if rebound is not None and rebound.is_leaf:
            name = rebound.made(writer)
            writer.name_value(self, name)
            for line in rebound.lines(writer, name, self.requires_grad):
                writer.line(line)
        elif self.composed:
            name = self.made(writer)
        elif self.cls is torch.Tensor or is_wrapper(self.cls):
            if not (self.cls is torch.Tensor or is_traceable(self.cls) or self.recorder.keeps_order):
                return super().reconstruct(writer)
            name = self.recorder.slots.graph_output(writer, self)
        else:
            plain = self.recorder.slots.as_plain(self)
            name = writer.assign("t", f"{writer.expr(plain)}.as_subclass({writer.const(self.cls)})")
        if self._attrs is not None or self.fields:
            writer.name_value(self, name)
            if self._attrs is not None:
                self._attrs.write(writer, name)
            for key, value in self.fields.items():
                writer.line(f"{name}.{key} = {writer.expr(value)}")
        return name

    def made(self, writer: Writer) -> str:
        """The name of one that generated code makes of the tensors it is made of."""
        raise NotImplementedError

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        target = writer.source(self.source)
        rebound = self.recorder.tracked.rebound.get(self)
        lines = [] if rebound is None else rebound.lines(writer, target, self.requires_grad)
        made = [(name, writer.expr(value)) for name, value in self.fields.items()]
        return [*lines, *[f"{target}.{name} = {text}" for name, text in made]]


def tensors_among(values: Iterable[object]) -> list[TensorValue]:
    """Those of the values that are tensors."""
    return [value for value in values if isinstance(value, TensorValue)]
