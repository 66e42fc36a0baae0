"""TorchFunctionModes that the traced program enters: each of its operations is theirs, and so is traced as their call.

    with Recorded():
        y = x + 1          # Recorded.__torch_function__(Tensor.add, (), (x, 1))

A default device that the program sets by `with torch.device(…)` is such a mode. Modes that are active when a trace
begins stay active (those are default devices, see `other_tracers`), outside of those that are entered in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch import internals
from stator.space.protocol import NONE, TRUE, register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.interfaces import Trace, Writer
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = ["FunctionModes", "install"]


class FunctionModes:
    """The modes that the program has entered in one trace and not left."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        #: innermost last
        self.entered: list[Value] = []

    def push(self, mode: Value) -> None:
        """The program enters a mode."""
        self.trace.mutation_count += 1
        self.entered.append(mode)

    def pop(self, function: str) -> Value:
        """The program leaves the innermost."""
        if not self.entered:  # one that was there before
            raise Unsupported(errors.UnsupportedCCall(function))
        self.trace.mutation_count += 1
        return self.entered.pop()

    @contextmanager
    def within_innermost(self) -> Iterator[Value]:
        """What is done meanwhile the innermost mode does: only the others are active."""
        mode = self.entered.pop()
        try:
            yield mode
        finally:
            self.entered.append(mode)

    def lines(self, writer: Writer) -> list[str]:
        """Generated lines that enter the modes for what follows the graph."""
        return [f"{writer.const(internals.push_function_mode)}({writer.expr(mode)})" for mode in self.entered]


def _modes(space: Space) -> FunctionModes:
    found: FunctionModes = space.trace.recorder.state.modes
    return found


def _push(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`_push_on_torch_function_stack(mode)`."""
    _modes(space).push(args[0].force())
    return NONE


def _pop(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`_pop_torch_function_stack()`."""
    return _modes(space).pop("torch._C._pop_torch_function_stack")


def _with_entered(read: Function, answer: Function) -> Handler:
    """A reader of the stack: `answer(modes, operands, what it reads of those that were there before)`."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        space.trace.recorder.state.used = True
        found: Value = answer(_modes(space), [space.known(arg.force()) for arg in args], read)
        return found

    return handler


def _count(modes: FunctionModes, operands: list[int], read: Function) -> Value:
    return Constant(read() + len(modes.entered))


def _is_any(modes: FunctionModes, operands: list[int], read: Function) -> Value:
    return TRUE if modes.entered else modes.trace.space.fresh(read())


def _at(modes: FunctionModes, operands: list[int], read: Function) -> Value:
    """`_get_function_stack_at(i)`."""
    before = internals.len_function_stack()
    if not 0 <= operands[0] - before < len(modes.entered):
        raise Unsupported(errors.UnsupportedCCall("torch._C._get_function_stack_at"))
    return modes.entered[operands[0] - before]


def _enter_device(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch.device.__enter__`."""
    device = args[0].force()
    _modes(space).push(space.call(space.existing(internals.DeviceContext), [device], {}).force())
    return device


def _leave_device(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch.device.__exit__`."""
    _modes(space).pop("torch.device.__exit__")
    return NONE


def _enter_dispatch(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`TorchDispatchMode.__enter__`: the operations beneath those that the program calls are not in a trace."""
    raise Unsupported(errors.UnsupportedObject(f"the TorchDispatchMode {args[0].force().cls.__qualname__}"))


def install() -> None:
    """Register the models."""
    register(internals.push_function_mode, _push)
    register(internals.pop_function_mode, _pop)
    register(internals.len_function_stack, _with_entered(internals.len_function_stack, _count))
    register(internals.is_function_mode_enabled, _with_entered(internals.is_function_mode_enabled, _is_any))
    register(internals.function_mode_at, _with_entered(internals.function_mode_at, _at))
    register(torch.device.__enter__, _enter_device)
    register(torch.device.__exit__, _leave_device)
    register(internals.TorchDispatchMode.__enter__, _enter_dispatch)
