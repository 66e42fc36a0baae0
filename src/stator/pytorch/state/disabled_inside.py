"""`torch.compiler.disable(function)` in the traced program: a call of what it makes breaks the graph.

    torch.compiler.disable(report)(x)

Generated code makes it where it is called or kept, anew in each call of the compiled function, as the program does: so
nothing depends on which object it is.
"""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import TYPE_CHECKING

from stator import errors
from stator.space.value import ObjectValue, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.interfaces import Writer
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = ["handler"]

#: keywords that change nothing of what is made, and the types of their values
_KEYWORDS: dict[str, tuple[type, ...]] = {"recursive": (bool,), "reason": (str, type(None))}


class MadeHere(ObjectValue):
    """A function around another one, which is left alone."""

    __slots__ = ("disable", "function", "kwargs", "name")

    def __init__(self, disable: Host, name: str, function: Value, kwargs: dict[str, Value]) -> None:
        super().__init__(FunctionType)
        self.disable = disable
        self.name = name
        self.function = function
        self.kwargs = kwargs

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        reason = self.kwargs.get("reason")
        why = self.name if reason is None or reason.is_none() else space.str_(reason)
        called = space.str_(space.getattr(self.function, "__qualname__"))
        raise Unsupported(errors.DisabledFunction(called, why))

    def attr_dict(self, space: Space) -> Host:
        """Its attributes are the function's, and some more."""
        raise _refusal(self.name)

    def rebuilt(self, writer: Writer) -> str:
        parts = [writer.expr(self.function), *(f"{name}={writer.expr(value)}" for name, value in self.kwargs.items())]
        return writer.assign("disabled", f"{writer.const(self.disable)}({', '.join(parts)})")

    def describe(self) -> str:
        return f"what {self.name} has made"


def handler(disable: Host, name: str) -> Handler:
    """How a call of the function is handled, which programs call by this name."""

    def made(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = {key: value.force() for key, value in kwargs.items()}
        function = args[0].force() if args else given.pop("fn", None)
        if len(args) > 1 or function is None or function.cls not in (FunctionType, MethodType):
            raise _refusal(name)
        if not all(value.constant and value.cls in _KEYWORDS.get(key, ()) for key, value in given.items()):
            raise _refusal(name)
        return MadeHere(disable, name, function, given)

    return made


def _refusal(name: str) -> Unsupported:
    return Unsupported(errors.UnsupportedUse(name, "meets what is left to Python (a mark that is made in the trace)"))
