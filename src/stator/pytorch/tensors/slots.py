"""What the slots of a traced tensor do: attributes, iteration, and the tensor without its class.

They record operations, which stands above the tensor itself: a tensor finds them by its recorder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator.pytorch.autograd.spent import graph_output
from stator.pytorch.composed import nested, sparse
from stator.pytorch.objects.leaves import keep_leaf
from stator.pytorch.subclasses.examination import examine
from stator.pytorch.tensors.attributes import assign, read
from stator.pytorch.tensors.classes import PLAIN_CLASSES, is_wrapper, slots_of
from stator.pytorch.tensors.specials import unbind
from stator.pytorch.tensors.subclass import as_plain, has_overrides, overridden_attribute

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.tensors.tensor import TensorValue
    from stator.space.interfaces import Writer
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["Slots"]


class Slots:
    """The slots of the tensors of a trace."""

    def get_field(self, space: Space, tensor: TensorValue, name: str) -> Value | None:
        """`tensor.name`, a C-level attribute, or None to read that of the existing tensor."""
        if tensor.cls not in PLAIN_CLASSES or tensor.recorder.state.modes.asked:
            if is_wrapper(tensor.cls) and name in slots_of(tensor.cls):
                held: Value = tensor.attr_dict(space).slot(space, name)
                return held
            found = overridden_attribute(space, tensor, name)
            if found is not None:
                return found
        return read(space, tensor, name)

    def set_field(self, space: Space, tensor: TensorValue, name: str, value: Value | None) -> bool:
        """`tensor.name = value`, or its deletion; whether this is all there is to do."""
        special = tensor.cls not in PLAIN_CLASSES or tensor.recorder.state.modes.asked
        if special and has_overrides(space, [tensor], {}):
            return False
        return assign(space, tensor, name, value)

    def unpack(self, space: Space, tensor: TensorValue) -> list[Value]:
        """The slices along the first dimension."""
        return unbind(space, tensor)

    def examine(self, recorder: Recorder, cls: type, *call: Any) -> None:
        """Torch is about to call the `__torch_dispatch__` of a class."""
        examine(recorder, cls, *call)

    def graph_output(self, writer: Writer, tensor: TensorValue) -> str:
        """The variable that holds a tensor which the graph has made."""
        return graph_output(writer, tensor)

    def as_plain(self, tensor: TensorValue) -> Value:
        """The tensor as one of torch's own class."""
        return as_plain(tensor)

    def composition(self, tensor: TensorValue) -> Any:
        """What says what operations on an existing tensor are, if that is up to it."""
        return sparse.composition(tensor) or nested.composition(tensor)

    def keep_leaf(self, space: Space, made: Value, name: str) -> None:
        """A backend that rewrites the graph would make another tensor of a new leaf than the one gradients go to."""
        keep_leaf(space, made, name)
