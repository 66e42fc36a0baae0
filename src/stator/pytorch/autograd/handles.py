"""Hooks that the graph registers, and what registering a hook gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch.utils.hooks import RemovableHandle

from stator import errors
from stator.models.classes.instance import InstanceValue
from stator.pytorch.fake.failure import describe_callable
from stator.space.protocol import NONE, register
from stator.space.signals import Restart
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stator.pytorch.traced import TracedTensor
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["HandleValue", "TracedHandle", "TracedHook"]


class TracedHook:
    """A hook that the graph registers: on which tensor, and at which instruction.

    Args:
        joint: it waits for the gradients of other tensors as well.
        before_node: it is called before the node that has made the tensor.
    """

    def __init__(self, tensor: TracedTensor, step: int, *, joint: bool = False, before_node: bool = False) -> None:
        self.tensor = tensor
        self.step = step
        self.joint = joint
        self.before_node = before_node
        #: the module that registers it when the graph runs
        self.module: Any = None

    def refused(self, why: str) -> Restart:
        """The graph is to end before the hook is registered."""
        name = "Node.register_prehook" if self.before_node else describe_callable(torch.Tensor.register_hook)
        return Restart(self.step, errors.AutogradCall(name, why))


class _OnlyMethods:
    """In place of the attributes of a handle, which it gets when the hook is registered: its methods can be found.

    Args:
        refused: makes what is raised where something else is asked for.
    """

    def __init__(self, refused: Callable[[], BaseException]) -> None:
        self.refused = refused

    def get_str(self, space: Space, name: str) -> None:
        """An attribute that hides a method: there is none."""
        if name not in ("remove", "__enter__", "__exit__"):
            raise self.refused()

    def __getattr__(self, name: str) -> NoReturn:
        raise self.refused()


class HandleValue(InstanceValue):
    """What registering a hook gives: an object that is filled when the hook is registered."""

    __slots__ = ()

    def attr_dict(self, space: Space) -> Any:
        return _OnlyMethods(lambda: Unsupported(errors.UnsupportedAttribute(self.cls.__name__, "__dict__")))

    def reconstruct(self, writer: Writer) -> str:
        return writer.assign("handle", self.shell(writer))


class TracedHandle(InstanceValue):
    """What registering a hook gives, as long as nobody looks at it."""

    __slots__ = ("hook",)

    def __init__(self, cls: type, hook: TracedHook) -> None:
        super().__init__(cls)
        self.hook = hook

    def attr_dict(self, space: Space) -> Any:
        return _OnlyMethods(lambda: self.hook.refused(_HANDLE))

    def reconstruct(self, writer: Writer) -> str:
        raise self.hook.refused(_HANDLE)


_HANDLE = "its handle is used"


def _remove(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`handle.remove()`: a hook that the graph registers, and that no gradient has met so far, is not registered."""
    handle = args[0].force()
    if isinstance(handle, HandleValue):
        space.trace.defer(RemovableHandle.remove, [handle])
        return NONE
    if not isinstance(handle, TracedHandle):
        return None
    engine = space.trace.recorder.tracked.engine
    if any(step > handle.hook.step for step in engine.backward_steps):
        raise handle.hook.refused("it is removed after gradients have been computed")
    engine.traced_hooks = [hook for hook in engine.traced_hooks if hook is not handle.hook]
    if handle.hook.module is not None:
        handle.hook.module.removed = True
    return NONE


def install() -> None:
    """Register the model."""
    register(RemovableHandle.remove, _remove)
