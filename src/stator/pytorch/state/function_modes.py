"""TorchFunctionModes that the traced program enters: each of its operations is theirs, and so is traced as their call.

    with Recorded():
        y = x + 1          # Recorded.__torch_function__(Tensor.add, (), (x, 1))

A default device that the program sets by `with torch.device(…)` is such a mode. Default devices that are active when a
trace begins stay active, outside of those that are entered in it. Where other modes are active then, all of them are
taken from torch while the trace goes on, and are traced as if the program had just entered them. Generated code does
the same: torch has them back for what follows the graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator._core import are_overrides_off
from stator.guards.source import CallSource, ConstSource
from stator.pytorch import internals
from stator.pytorch.state.state_probe import let_core_turn_overrides_off
from stator.space.protocol import NONE, TRUE, register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.interfaces import Trace, Writer
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = ["FunctionModes", "active", "install"]


def active() -> list[Host]:
    """The active modes, outermost first."""
    return [internals.function_mode_at(i) for i in range(internals.len_function_stack())]


def leave_all() -> list[Host]:
    """Take the active modes from torch."""
    modes = active()
    for _ in modes:
        internals.pop_function_mode()
    return modes


def enter_all(modes: list[Host]) -> None:
    """Give them back, once."""
    while modes:
        internals.push_function_mode(modes.pop(0))


class FunctionModes:
    """The modes that the program has entered in one trace and not left, or that were active before it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        #: innermost last
        self.entered: list[Value] = []
        #: whether none of them is asked, as under `torch._C.DisableTorchFunction`
        self.off = not are_overrides_off() and (
            internals.torch_function_state() == internals.TorchFunctionState.ALL_DISABLED
        )
        #: those that were active before, as long as the trace has them
        self.taken: list[Host] = []
        self._overrides = contextlib.ExitStack()

    @property
    def asked(self) -> list[Value]:
        """Those that the operations of the program are up to."""
        return [] if self.off else self.entered

    def take(self) -> bool:
        """Have the trace see to the active modes, if not all of them are default devices."""
        found = active()
        if found and are_overrides_off():  # for those who look at tensors around the trace
            self._overrides.enter_context(internals.EnableTorchFunction())
        if all(isinstance(mode, internals.DeviceContext) for mode in found):
            return False
        self.taken = leave_all()
        for i, mode in enumerate(self.taken):
            source = CallSource(internals.function_mode_at, ConstSource(i, str(i)), "torch._C._get_function_stack_at")
            self.entered.append(self.trace.space.wrap(mode, source))
        return True

    def give_back(self) -> None:
        """The trace is over."""
        enter_all(self.taken)
        self._overrides.close()

    def around(self, writer: Writer) -> tuple[str, str] | None:
        """What generated code does first, and if it fails then: the modes are left, and entered again."""
        if not self.taken:
            return None
        name = writer.name("modes")
        return f"{name} = {writer.const(leave_all)}()", f"{writer.const(enter_all)}({name})"

    def push(self, mode: Value) -> None:
        """The program enters a mode."""
        self.trace.mutation_count += 1
        self.entered.append(mode)

    def pop(self, function: str) -> Value:
        """The program leaves the innermost."""
        if not self.entered:  # a default device that was there before
            raise Unsupported(errors.UnsupportedCCall(function))
        self.trace.mutation_count += 1
        return self.entered.pop().force()

    @contextmanager
    def within_innermost(self) -> Iterator[Value]:
        """What is done meanwhile the innermost mode does: only the others are active."""
        mode = self.entered.pop()
        try:
            yield mode.force()
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
    return TRUE if modes.asked else modes.trace.space.fresh(read())


def _at(modes: FunctionModes, operands: list[int], read: Function) -> Value:
    """`_get_function_stack_at(i)`."""
    before = internals.len_function_stack()
    if not 0 <= operands[0] - before < len(modes.entered):
        raise Unsupported(errors.UnsupportedCCall("torch._C._get_function_stack_at"))
    return modes.entered[operands[0] - before].force()


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
    let_core_turn_overrides_off()
    register(internals.push_function_mode, _push)
    register(internals.pop_function_mode, _pop)
    register(internals.len_function_stack, _with_entered(internals.len_function_stack, _count))
    register(internals.is_function_mode_enabled, _with_entered(internals.is_function_mode_enabled, _is_any))
    register(internals.function_mode_at, _with_entered(internals.function_mode_at, _at))
    register(torch.device.__enter__, _enter_device)
    register(torch.device.__exit__, _leave_device)
    register(internals.TorchDispatchMode.__enter__, _enter_dispatch)
