"""The process's global torch state (grad mode, autocast, default dtype …): guarded, changed while tracing, put back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from stator._core import are_overrides_off
from stator.guards.base import Guard
from stator.guards.guard import Equals, GlobalState
from stator.guards.source import GlobalSource
from stator.pytorch import internals
from stator.pytorch.state import switches
from stator.pytorch.state.function_modes import FunctionModes, active
from stator.pytorch.state.program_hooks import ProgramHooks
from stator.pytorch.state.state_probe import state_probe
from stator.pytorch.state.switches import Calls

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.fake.fake_executor import FakeExecutor
    from stator.pytorch.graph.effects import GraphEffects
    from stator.pytorch.graph.nodes import GraphNodes
    from stator.pytorch.traced import Operation
    from stator.pytorch.types import Args, Function, Host, Kwargs
    from stator.space.interfaces import Trace, Writer

__all__ = ["SETTERS", "State", "computes_alike", "grad_mode", "snapshot"]

_AUTOCAST_DEVICES = ("cpu", "cuda")


#: the value of one part of the state, which its setter takes
Part: TypeAlias = Any

#: name → (read, the calls that make it a given value) of each part of the state, gradients first
PARTS: dict[str, tuple[Callable[[], Part], Callable[[Part], Calls]]] = {
    "grad": (torch.is_grad_enabled, lambda to: [(internals.set_grad_enabled, (to,))]),
    "autocast cache": (torch.is_autocast_cache_enabled, lambda to: [(torch.set_autocast_cache_enabled, (to,))]),
    "default dtype": (torch.get_default_dtype, lambda to: [(internals.set_default_dtype, (to,))]),
    "deterministic": (
        lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        lambda to: [(_deterministic_warning if to[1] else torch.use_deterministic_algorithms, (to[0],))],
    ),
}


def _deterministic_warning(mode: bool) -> None:
    torch.use_deterministic_algorithms(mode, warn_only=True)


def _autocast_part(device: str) -> tuple[Callable[[], Part], Callable[[Part], Calls]]:
    def read() -> Part:
        return torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)

    def calls(to: Part) -> Calls:
        return [(torch.set_autocast_enabled, (device, to[0])), (torch.set_autocast_dtype, (device, to[1]))]

    return read, calls


PARTS.update({f"autocast {device}": _autocast_part(device) for device in _AUTOCAST_DEVICES})
PARTS.update({name: (switch.read, switch.calls) for name, switch in switches.SWITCHES.items()})

#: setters of switches → the names of these
_SWITCHED_BY = {setter: name for name, switch in switches.SWITCHES.items() for setter in switch.setters}

#: C functions that change the state: performed while tracing, and recorded in the graph
SETTERS: dict[int, Function] = {
    id(function): function
    for function in (
        internals.set_grad_enabled,
        torch.set_autocast_enabled,
        torch.set_autocast_dtype,
        torch.set_autocast_cache_enabled,
        torch.autocast_increment_nesting,
        torch.autocast_decrement_nesting,
        torch.clear_autocast_cache,
        internals.set_default_dtype,
        internals.set_deterministic_algorithms,
        *_SWITCHED_BY,
    )
}

#: those of them that only count, or forget what eager kernels have cached
NESTING = frozenset({torch.autocast_increment_nesting, torch.autocast_decrement_nesting, torch.clear_autocast_cache})


def snapshot() -> tuple[Part, ...]:
    """The state now."""
    return tuple([read() for read, _ in PARTS.values()])


def apply(state: tuple[Part, ...]) -> None:
    """Make the state what a snapshot says."""
    for (read, calls), wanted in zip(PARTS.values(), state, strict=True):
        if read() != wanted:
            for function, args in calls(wanted):
                function(*args)


def changes(before: tuple[Part, ...], after: tuple[Part, ...]) -> Calls:
    """The calls that lead from one state to another."""
    parts = zip(PARTS.values(), before, after, strict=True)
    return [call for (_, calls), was, wanted in parts if was != wanted for call in calls(wanted)]


def computes_alike(key: Any, other: Any) -> bool:
    """Whether operations compute the same in two states, by their keys: whether with gradients does not matter."""
    return key is other or (key[0][1:], key[2]) == (other[0][1:], other[2])


def autocast_nesting() -> int:
    """In how many blocks of autocast the thread is."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def leave_autocast(nesting: int) -> None:
    """Leave the blocks of autocast beyond so many; after the last nothing is kept of what was cast in them."""
    for _ in range(nesting, autocast_nesting()):
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()


def leave_blocks(count: int) -> None:
    """Leave so many blocks of autocast that the program had entered before the trace."""
    leave_autocast(autocast_nesting() - count)


class StateChange:
    """A change of the global state among the operations that await being run on fake tensors."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(self, function: Function, args: list[object], kwargs: Kwargs) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def replay(self, fake_executor: FakeExecutor) -> None:
        """Perform it again."""
        self.function(*self.args, **self.kwargs)


class State:
    """The global state of one trace: as it was at the start, and as the traced program has made it."""

    def __init__(self, trace: Trace, nodes: GraphNodes, effects: GraphEffects) -> None:
        self.trace = trace
        self.nodes = nodes
        self.effects = effects
        #: what has been recorded and not yet run on fake tensors, with the changes of the state among it
        self.pending: list[Operation | StateChange] = []
        self.entry = snapshot()
        self.current = self.entry
        #: whether the trace has asked for the state though it has no tensors
        self.used = False
        self.nesting = 0
        #: context managers the program has entered and not left
        self.open: list[Host] = []
        self._pending_from = self.entry
        self.modes = FunctionModes(trace)
        torchs = internals.GlobalStateGuard().check
        if self.modes.take():
            self.used = True
        self._check = _check_of(torchs, len(self.modes.taken))
        self.key = self.entry_key = self._key()
        self.hooks = ProgramHooks()
        #: switches that the trace depends on
        self.relied: dict[str, None] = {}
        #: whether operations on distributed tensors are handled otherwise than they are at the start
        self.handles_otherwise = False

    def _key(self) -> object:
        return (self.current, torch.is_inference_mode_enabled(), tuple(map(str, _devices())))

    @staticmethod
    def infers(key: Any) -> bool:
        """Whether inference mode is on in the global state of this key."""
        return bool(key[1])

    def at_entry(self) -> torch.inference_mode:
        """Inference mode on or off as at the start: what guards load in a call, and make anew, is made so."""
        return torch.inference_mode(self.infers(self.entry_key))

    def rely(self, names: Iterable[str]) -> None:
        """The trace depends on these switches, as they were at its start."""
        self.used = True
        self.relied.update(dict.fromkeys(names))

    # -- changes ----------------------------------------------------------------------------------------------------

    def change(self, function: Function, args: list[object], kwargs: Kwargs | None = None) -> object:
        """Perform a change that the program makes, and record it."""
        kwargs = kwargs or {}
        result = self.perform(function, args, kwargs)
        self.add_node(function, tuple(args), kwargs)
        if function not in NESTING:
            self.pending.append(StateChange(function, args, kwargs))
        self.trace.mutation_count += 1
        return result

    def switch(self, function: Function, args: list[object]) -> None:
        """Change the state as C code does around a call: nothing of it appears in the graph."""
        self.perform(function, args, {})
        self.pending.append(StateChange(function, args, {}))

    def leave(self) -> None:
        """End the graph with the nodes that put the state back as it was at its beginning."""
        for function, args in self.undoing():
            self.add_node(function, args)

    def add_node(self, function: Function, args: Args, kwargs: Kwargs | None = None) -> torch.fx.Node:
        """Add a call that changes the state to the graph."""
        node = self.nodes.graph.call_function(function, args, kwargs or {})
        self.effects.note_state(node)
        return node

    def perform(self, function: Function, args: list[object], kwargs: Kwargs) -> object:
        """Let the traced program change the state, for real until the trace ends."""
        self.used = True
        if function in _SWITCHED_BY:
            self.rely((_SWITCHED_BY[function],))
        if function is torch.clear_autocast_cache:
            return None  # what is in it was cast by operations that have run: the graph forgets it when it runs
        result = function(*args, **kwargs)
        if function is torch.autocast_increment_nesting:
            self.nesting += 1
        elif function is torch.autocast_decrement_nesting:
            self.nesting -= 1
        self.note()
        return result

    def note(self) -> None:
        """The state has changed."""
        self.used = True
        self.current = snapshot()
        self.key = self._key()

    @property
    def changed(self) -> bool:
        """Whether the state differs from that at the start."""
        return self.current != self.entry or self.nesting != 0

    def differs(self, name: str) -> bool:
        """Whether this part of the state differs from that at the start."""
        at = list(PARTS).index(name)
        return bool(self.current[at] != self.entry[at])

    def replay(self, fake_executor: FakeExecutor) -> None:
        """Run everything that is pending, in order and in the state that it was recorded in."""
        if not self.pending:
            return
        pending, self.pending = self.pending, []
        start, self._pending_from = self._pending_from, self.current
        apply(start)
        try:
            for operation in pending:
                operation.replay(fake_executor)
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
        while self.open:
            self.open.pop().leave_for_real()
        apply(self.entry)
        self.current = self.entry
        self.hooks.restore()

    def undoing(self) -> Calls:
        """Calls that lead from the state now to that at the start."""
        calls = [call for context in reversed(self.open) for call in context.leaving()]
        calls += changes(self.current, self.entry)
        step = torch.autocast_decrement_nesting if self.nesting > 0 else torch.autocast_increment_nesting
        return calls + [(step, ())] * abs(self.nesting)

    def guards(self) -> list[Guard]:
        """The state at the start is what it was."""
        before = dict(zip(PARTS, self.entry, strict=True))
        return [
            GlobalState(self._check, "torch's global state is as it was", _Changed(self.entry)),
            Equals(_LEVEL, internals.forward_level()),
            *(switches.guard_on(name, before[name]) for name in self.relied),
        ]

    def lines(self, writer: Writer) -> list[str]:
        """Generated lines that bring about the state at the end."""
        lines = [f"{writer.expr(context)}.__enter__()" for context in self.open] + self.modes.lines(writer)
        for function, args in changes(self.entry, self.current):
            lines.append(f"{writer.const(function)}({', '.join(map(writer.const, args))})")
        if self.nesting < 0:
            return [*lines, f"{writer.const(leave_blocks)}({-self.nesting})"]
        return lines + [f"{writer.const(torch.autocast_increment_nesting)}()"] * self.nesting


class grad_mode:
    """Gradients are recorded meanwhile, or not.

    Args:
        change: how the state changes: `State.change`, with nodes of the graph, or `State.switch`, without.
    """

    def __init__(self, change: Function, enabled: bool) -> None:
        self.change = change
        self.enabled = enabled

    def __enter__(self) -> None:
        self.before = torch.is_grad_enabled()
        if self.before is not self.enabled:
            self.change(internals.set_grad_enabled, [self.enabled])

    def __exit__(self, *exc: object) -> None:
        if self.before is not self.enabled:
            self.change(internals.set_grad_enabled, [self.before])


class _Changed:
    """Says which part of the global state is no longer what it was.

    Args:
        parts: the state as it was, by `snapshot`.
    """

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = parts
        self.others = {name: read() for name, read in _OTHERS.items()}

    def __call__(self) -> str:
        told = list(zip(PARTS, self.parts, snapshot(), strict=True))
        told += [(name, was, _OTHERS[name]()) for name, was in self.others.items()]
        for name, was, now in told:
            if was != now and type(was) is tuple and type(was[0]) is bool:  # whether it is on, and what else
                was, now = (was[0], now[0]) if was[0] != now[0] else (was[1], now[1])
            if was != now:
                return f"{_WORDS.get(name, name)} was {_on_or_off(was)}, is {_on_or_off(now)}"
        return ""


#: what the state is called, where users have another word for it
_WORDS = {
    "grad": "grad mode",
    "autocast cache": "the cache of autocast",
    "default dtype": "the default dtype",
    "deterministic": "the use of deterministic algorithms",
    **{f"autocast {device}": f"autocast for {device}" for device in _AUTOCAST_DEVICES},
}
#: what else `_check_of` compares
_OTHERS: dict[str, Callable[[], Part]] = {
    "inference mode": torch.is_inference_mode_enabled,
    "the number of threads": torch.get_num_threads,
    "the number of active torch function modes": internals.len_function_stack,
    "the number of active dispatch modes": internals.len_dispatch_stack,
}


def _on_or_off(value: object) -> str:
    return str(value) if type(value) is not bool else "on" if value else "off"


#: the innermost level of forward-mode differentiation: tensors have tangents only while there is one
_LEVEL = GlobalSource(*internals.forward_level_name())


def _devices() -> list[Host]:
    """What the active modes are, as far as they may be active while tracing: default devices."""
    return [mode.device if isinstance(mode, internals.DeviceContext) else mode for mode in active()]


def _check_of(check: Callable[[], bool], taken: int) -> Callable[[], bool]:
    """Whether the state is as it was, to torch too; of modes that were taken the trace guards what they are like."""
    inference = torch.is_inference_mode_enabled()
    devices = _devices()
    overrides_off = are_overrides_off()
    # Looked up once: this runs at every call.
    is_inference, count, dispatch = (
        torch.is_inference_mode_enabled,
        internals.len_function_stack,
        internals.len_dispatch_stack,
    )
    peek = internals.innermost_transform

    if not devices and not taken:
        probe = state_probe()  # all of this without running Python
        if probe is not None:
            return probe

    def same() -> bool:
        return (
            check()
            and is_inference() is inference
            and count() == len(devices) + taken
            and dispatch() == 0
            and are_overrides_off() is overrides_off
            and peek() is None
            and (not devices or _devices() == devices)
        )

    return same
