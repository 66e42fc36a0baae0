"""Hooks that the graph registers, and what registering a hook gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.models.classes.instance import InstanceValue
from stator.pytorch.fake.failure import describe_callable
from stator.space.signals import Restart
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from stator.models.classes.attr_dict import AttrDict
    from stator.pytorch.traced import TracedTensor
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["HandleValue", "TracedHandle", "TracedHook"]


class TracedHook:
    """A hook that the graph registers: on which tensor, and at which instruction.

    Args:
        joint: it waits for the gradients of other tensors as well.
    """

    def __init__(self, tensor: TracedTensor, step: int, *, joint: bool = False) -> None:
        self.tensor = tensor
        self.step = step
        self.joint = joint

    def refused(self, why: str) -> Restart:
        """The graph is to end before the hook is registered."""
        return Restart(self.step, errors.AutogradCall(describe_callable(torch.Tensor.register_hook), why))


class HandleValue(InstanceValue):
    """What registering a hook gives: an object that is filled when the hook is registered."""

    __slots__ = ()

    def attr_dict(self, space: Space) -> AttrDict:
        raise Unsupported(errors.UnsupportedAttribute(self.cls.__name__, "__dict__"))

    def reconstruct(self, writer: Writer) -> str:
        return writer.assign("handle", self.shell(writer))


class TracedHandle(InstanceValue):
    """What registering a hook gives, as long as nobody looks at it."""

    __slots__ = ("hook",)

    def __init__(self, cls: type, hook: TracedHook) -> None:
        super().__init__(cls)
        self.hook = hook

    def attr_dict(self, space: Space) -> AttrDict:
        raise self.hook.refused(_HANDLE)

    def reconstruct(self, writer: Writer) -> str:
        raise self.hook.refused(_HANDLE)


_HANDLE = "its handle is used"
