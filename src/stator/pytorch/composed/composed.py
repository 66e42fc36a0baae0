"""A tensor of a kind that fake tensors do not take, and so no graph: it is traced as the plain tensors it is made of.

    output = torch._nested_tensor_from_mask(x, keep, mask_check=False)    # x and keep go on; nothing is recorded
    return output.to_padded_tensor(0.0, x.size())                         # torch.where(keep[..., None], x, 0.0)

A kind says what the operations on it are in terms of its parts. Any other operation breaks the graph, and so does what
asks for a node; where the program needs the tensor itself, generated code makes it of its parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from stator import errors
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["Composed", "Model", "bind", "dim"]

#: what an operation on such a tensor is: `model(space, args, kwargs)`
Model = Callable[["Space", list[Value], dict[str, Value]], Value]


class Composed(TensorValue):
    """A tensor that exists in no graph.

    `parts` are what it is made of, each a tensor that nobody else holds, so that nobody writes to it.
    """

    __slots__ = ("parts",)
    composed = True
    #: how messages name the kind
    KIND: ClassVar[str]
    #: what each operation is, by the function that the program calls
    models: ClassVar[dict[Function, Model]]
    #: the function that makes the real tensor of the real parts
    MAKE: ClassVar[Function]

    def __init__(self, space: Space, *parts: Value) -> None:
        super().__init__(space.trace.recorder, torch.Tensor, None)
        self.parts: tuple[Any, ...] = parts

    def facts(self) -> dict[str, object]:
        """The attributes that are known, by name. To these of all kinds a kind adds its own."""
        return {
            "is_leaf": True,
            "is_nested": False,
            "is_quantized": False,
            "is_sparse": False,
            "layout": torch.strided,
            "requires_grad": False,
        }

    def refuse(self, what: str) -> Unsupported:
        """The break at an operation that the kind has no model of."""
        return Unsupported(errors.UnsupportedTensorOperation(what, f"its operand is {self.KIND}"))

    def perform(self, space: Space, function: Function, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """What an operation gives, one of whose operands this is."""
        model = self.models.get(function)
        if model is None:
            raise self.refuse(describe_callable(function))
        return model(space, [arg.force() for arg in args], {name: arg.force() for name, arg in kwargs.items()})

    @property
    def composition(self) -> Any:
        return self

    @property
    def node(self) -> Any:
        raise self.refuse("an operation")

    @property
    def fake(self) -> Any:
        raise self.refuse("an operation")

    @property
    def requires_grad(self) -> bool:
        return False

    def get_field(self, space: Space, name: str) -> Value | None:
        facts = self.facts()
        if name not in facts:
            raise Unsupported(errors.UnsupportedAttribute(self.cls.__name__, name))
        return space.fresh(facts[name])

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        raise Unsupported(errors.UnsupportedAttribute(self.cls.__name__, name))

    def unpack(self, space: Space) -> list[Value]:
        raise self.refuse("iteration")

    def describe(self) -> str:
        return self.KIND

    def made(self, writer: Writer) -> str:
        given = ", ".join(map(writer.expr, self.parts))
        return writer.assign("t", f"{writer.const(type(self).MAKE)}({given})")


def dim(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The model of `tensor.dim()`."""
    tensor: Any = args[0]
    return Constant(tensor.facts()["ndim"])


def bind(names: tuple[str, ...], args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
    """The arguments of a call by the names of its parameters, where all are given; those missing are None."""
    given: dict[str, Any] = dict(zip(names, args, strict=False)) | kwargs
    return {name: given.get(name, Constant(None)).force() for name in names}
