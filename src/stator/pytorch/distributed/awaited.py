"""What functional collectives give: in a graph tensors that have been waited for.

In eager execution they are tensors that wait when they are used (`AsyncCollectiveTensor`), or when the program says so:

    functional.all_reduce(x, "sum", group).wait()

In a graph they are plain tensors, to which this may be said as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator.models.classes.attr_dict import AttrDict
from stator.models.functions.method import BoundMethod
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import INTERCEPTS, Handler

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["install"]

#: the functions of torch.distributed that make what is given of what an operator has made
_WRAPPING = frozenset({"_maybe_wrap_tensor", "_maybe_wrap_tensors"})
_MODULE = "torch.distributed._functional_collectives"
_WAITING = frozenset({"wait", "trigger_wait"})


def itself(tensor: Any) -> Any:
    """What there is to wait for has been waited for. This is traced."""
    return tensor


class AwaitedAttrs(AttrDict):
    """The `__dict__` of such a tensor, and beside it what the class of eager execution has."""

    __slots__ = ()

    def get_str(self, space: Space, name: str) -> Value | None:
        found = super().get_str(space, name)
        if found is None and name in _WAITING:
            return BoundMethod(space.existing(itself), self.dict_owner)
        return self.dict_owner if found is None and name == "elem" else found


def _intercept(host: Host) -> Handler | None:
    """How a function is handled that makes tensors which wait (see protocol.INTERCEPTS)."""
    if host.__module__ != _MODULE or host.__qualname__ not in _WRAPPING:
        return None

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        function: Any = space.existing(host)
        made = function.inline(space, args, kwargs, False).force()
        tensors: list[Any] = [made] if isinstance(made, TensorValue) else [part.force() for part in space.unpack(made)]
        for tensor in tensors:
            if tensor.operation is not None and tensor._attrs is None:
                tensor._attrs = AwaitedAttrs(tensor)
        return made

    return handler


def install() -> None:
    """Register the model."""
    INTERCEPTS.append(_intercept)
