"""`torch._disable_dynamo`: what torch puts around functions of its own that its tracer is to leave alone.

The wrapper imports that tracer when it is first called, and such wrappers are around torch's reference implementations,
by which fake tensors compute. While nobody has loaded the tracer there is nothing to be left alone by: the function
itself is called.
"""

from __future__ import annotations

import sys
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

from stator.pytorch import internals

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host

__all__ = ["WRAPPER", "spare_references"]


def _nothing() -> None:
    """What the wrapper is looked at on."""


#: the code of the wrapper
WRAPPER: Any = internals.without_dynamo(_nothing).__code__
#: where it keeps what it has once made of the function it is around
_KEPT = "__dynamo_disable"
_EMPTY = CellType()
#: where reference implementations are found
_PLACES = ("torch._refs", "torch._decomp", "torch._prims", "torch._meta_registrations")


class _NotYet:
    """What the wrapper finds as made of its function, until there is something to make it with."""

    def __init__(self, wrapper: Host, function: Function) -> None:
        self.wrapper = wrapper
        self.function = function

    def __call__(self, *args: object, **kwargs: object) -> object:
        if "torch._dynamo" not in sys.modules:
            return self.function(*args, **kwargs)
        if vars(self.function).get(_KEPT) is self:
            vars(self.function).pop(_KEPT, None)  # another thread may have been faster
        return self.wrapper(*args, **kwargs)


def spare_references() -> None:
    """Let the wrappers around reference implementations call them directly while torch's tracer is not loaded."""
    for wrapper in _wrappers():
        function = _cells(wrapper)["fn"]
        if _KEPT not in vars(function):
            setattr(function, _KEPT, _NotYet(wrapper, function))


def _wrappers() -> list[Host]:
    """The wrappers that the functions of these modules are, or call."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(_PLACES)]
    waiting = [item for module in modules for item in list(vars(module).values()) if type(item) is FunctionType]
    seen: set[Host] = set()
    while waiting:
        function = waiting.pop()
        if function not in seen:
            seen.add(function)
            waiting += [item for item in _cells(function).values() if type(item) is FunctionType]
    return [function for function in seen if function.__code__ is WRAPPER]


def _cells(function: FunctionType) -> dict[str, Host]:
    """The variables of enclosing functions that a function uses."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if cell != _EMPTY}
