"""`torch.compile(function)` in the traced program: a call of what it makes goes into the function.

    torch.compile(attention)(q, k, v)

It is absorbed like a function that was compiled outside. What the program keeps of it is made by generated code.
"""

from __future__ import annotations

import functools
from types import FunctionType, MethodType
from typing import TYPE_CHECKING

from stator import errors
from stator._core import Compiled
from stator.space.value import ObjectValue, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.interfaces import Writer
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = ["handler"]

#: keywords that are certain to be accepted, with these values
_KEYWORDS: dict[str, tuple[object, ...]] = {
    "fullgraph": (True, False),
    "dynamic": (None, True, False),
    "backend": ("inductor", "eager", "aot_eager"),
    "mode": (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"),
    "disable": (False,),
    "options": (None,),
}


class MadeHere(ObjectValue):
    """What a compiler has given: the compiled function, or where there is none yet, what takes it as a decorator."""

    __slots__ = ("compiler", "function", "kwargs")

    def __init__(self, compiler: Host, function: Value | None, kwargs: dict[str, Value]) -> None:
        by_torch = compiler.__globals__.get("__name__") == "torch"
        super().__init__(FunctionType if by_torch else functools.partial if function is None else Compiled)
        self.compiler = compiler
        self.function = function
        self.kwargs = kwargs

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        if self.function is not None:
            return space.call(self.function, args, kwargs, in_tail_position)
        return made(space, self.compiler, args, {**self.kwargs, **kwargs})

    def attr_dict(self, space: Space) -> Host:
        """Its attributes are the function's, and some more."""
        raise _refusal(self.compiler)

    def rebuilt(self, writer: Writer) -> str:
        parts = [] if self.function is None else [writer.expr(self.function)]
        parts += [f"{name}={writer.expr(value)}" for name, value in self.kwargs.items()]
        return writer.assign("compiled", f"{writer.const(self.compiler)}({', '.join(parts)})")

    def describe(self) -> str:
        return "what torch.compile has made"


def made(space: Space, compiler: Host, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A call of the compiler."""
    named = {name: value.force() for name, value in kwargs.items()}
    model = args[0].force() if args else named.pop("model", None)
    if len(args) > 1 or not (model is None or model.cls in (FunctionType, MethodType)):
        raise _refusal(compiler)
    for name, value in named.items():
        allowed = _KEYWORDS.get(name, ())
        if not (value.constant and value.host in allowed) and not (name == "backend" and value.cls is FunctionType):
            raise _refusal(compiler)
    return MadeHere(compiler, model, named)


def _refusal(compiler: Host) -> Unsupported:
    return Unsupported(errors.DisabledFunction(compiler.__qualname__, "it traces or compiles by itself"))


def handler(compiler: Host) -> Handler:
    """How a call of `torch.compile`, or of what it is routed to, is handled."""
    return lambda space, args, kwargs: made(space, compiler, args, kwargs)
