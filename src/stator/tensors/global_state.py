"""The process's global torch state (grad mode, autocast, default dtype …): guarded, changed while tracing, put back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from stator.guards.guard import GlobalState

if TYPE_CHECKING:
    from stator.residual.writer import Writer

__all__ = ["SETTERS", "State", "snapshot"]

_C: Any = torch._C
_AUTOCAST_DEVICES = ("cpu", "cuda")


def _set_deterministic(value: tuple[bool, bool]) -> None:
    _C._set_deterministic_algorithms(value[0], warn_only=value[1])


def _autocast_setter(device: str) -> Callable[[Any], None]:
    def setter(value: tuple[bool, Any]) -> None:
        torch.set_autocast_enabled(device, value[0])
        torch.set_autocast_dtype(device, value[1])

    return setter


def _autocast_getter(device: str) -> Callable[[], Any]:
    return lambda: (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))


#: name → (read, write) of each part of the state
PARTS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "grad": (torch.is_grad_enabled, _C._set_grad_enabled),
    "autocast cache": (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    "default dtype": (torch.get_default_dtype, _C._set_default_dtype),
    "deterministic": (
        lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        _set_deterministic,
    ),
    **{f"autocast {d}": (_autocast_getter(d), _autocast_setter(d)) for d in _AUTOCAST_DEVICES},
}

#: C functions that change the state: performed while tracing, and recorded in the graph
SETTERS: dict[int, Any] = {
    id(function): function
    for function in (
        _C._set_grad_enabled,
        torch.set_autocast_enabled,
        torch.set_autocast_dtype,
        torch.set_autocast_cache_enabled,
        torch.autocast_increment_nesting,
        torch.autocast_decrement_nesting,
        torch.clear_autocast_cache,
        _C._set_default_dtype,
        _C._set_deterministic_algorithms,
    )
}


def snapshot() -> tuple[Any, ...]:
    """The state now."""
    return tuple([read() for read, _ in PARTS.values()])


def apply(state: tuple[Any, ...]) -> None:
    """Make the state what a snapshot says."""
    for (read, write), wanted in zip(PARTS.values(), state, strict=True):
        if read() != wanted:
            write(wanted)


class State:
    """The global state of one trace: as it was at the start, and as the traced program has made it."""

    def __init__(self) -> None:
        self.entry = snapshot()
        self.current = self.entry
        #: whether the trace has asked for the state though it has no tensors
        self.used = False
        self.nesting = 0
        self._pending_from = self.entry
        self._check = _check_of()
        self.key = self._key()

    def _key(self) -> Any:
        return (self.current, torch.is_inference_mode_enabled(), _C._len_torch_function_stack())

    def perform(self, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Let the traced program change the state, for real until the trace ends."""
        self.used = True
        result = function(*args, **kwargs)
        if function is torch.autocast_increment_nesting:
            self.nesting += 1
        elif function is torch.autocast_decrement_nesting:
            self.nesting -= 1
        self.current = snapshot()
        self.key = self._key()
        return result

    @property
    def changed(self) -> bool:
        """Whether the state differs from that at the start."""
        return self.current != self.entry or self.nesting != 0

    @contextlib.contextmanager
    def replaying(self) -> Iterator[None]:
        """Go back to where the operations that await replay began; afterwards they are no longer awaited."""
        start, self._pending_from = self._pending_from, self.current
        apply(start)
        try:
            yield
        finally:
            apply(self.current)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """The state of the start, for a while."""
        apply(self.entry)
        try:
            yield
        finally:
            apply(self.current)

    def restore(self) -> None:
        """Put the process's state back as it was at the start."""
        while self.nesting > 0:
            torch.autocast_decrement_nesting()
            self.nesting -= 1
        while self.nesting < 0:
            torch.autocast_increment_nesting()
            self.nesting += 1
        apply(self.entry)
        self.current = self.entry

    def undoing(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """Calls that lead from the state now to that at the start."""
        calls: list[tuple[Any, tuple[Any, ...]]] = [
            (write, (was,))
            for (_, write), was, now in zip(PARTS.values(), self.entry, self.current, strict=True)
            if was != now
        ]
        step = torch.autocast_decrement_nesting if self.nesting > 0 else torch.autocast_increment_nesting
        return calls + [(step, ())] * abs(self.nesting)

    def guard(self) -> GlobalState:
        """The state at the start is what it was."""
        return GlobalState(self._check, "torch's global state is as it was")

    def lines(self, writer: Writer) -> list[str]:
        """Generated lines that bring about the state at the end."""
        changes = [
            (write, wanted)
            for (_, write), was, wanted in zip(PARTS.values(), self.entry, self.current, strict=True)
            if was != wanted
        ]
        lines = [f"{writer.const(write)}({writer.const(wanted)})" for write, wanted in changes]
        step = torch.autocast_increment_nesting if self.nesting > 0 else torch.autocast_decrement_nesting
        return lines + [f"{writer.const(step)}()"] * abs(self.nesting)


def _check_of() -> Callable[[], bool]:
    guard = _C._dynamo.guards.GlobalStateGuard()
    check = guard.check
    inference = torch.is_inference_mode_enabled()
    functions, dispatch = _C._len_torch_function_stack(), _C._len_torch_dispatch_stack()
    peek = _C._functorch.peek_interpreter_stack
    is_inference, count, count_dispatch = (
        torch.is_inference_mode_enabled,
        _C._len_torch_function_stack,
        _C._len_torch_dispatch_stack,
    )
    transforms = peek()

    def same() -> bool:
        return (
            check()
            and is_inference() is inference
            and count() == functions
            and count_dispatch() == dispatch
            and (peek() is None) is (transforms is None)
        )

    return same
