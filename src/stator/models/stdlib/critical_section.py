"""What the traced program does under locks that exist outside: done under them, if what it has read is still so.

    if not model.ready:              # `ready` is read by the guards, before anything has run
        with lock:
            if not model.ready:      # as it is here, to the trace
                model.ready = True

The effects of a trace come after its graph, and so the locks are taken there: when the graph has run, before the
first effect. What was read from outside has been read before, when another thread could have changed it. So once the
locks are held, the guards are checked a second time, and all that they have handed over must be the same objects. If
anything differs, the locks are given back, what the graph did is undone, and ordinary Python executes the frame. If
nothing does, everything is written, and the locks are released where the program has released the last one.

Where the program computes with tensors under a lock, or writes to tensors of the outside when it has held one, the
locks are taken before the graph instead, and held around it. That is not done for all graphs, as others would wait for
longer, and cannot be for those that run code of the program's, which may want a lock itself.

Each lock is held for one stretch, from its first acquisition to the last release, with all that the trace writes
inside: other threads see what they would see if the program had been quick. A trace in which that does not hold is
ended before the first lock is taken, which is then an ordinary graph break:

- something has been changed, or is to be called, before the lock is taken: whoever holds it may wait for that;
- one lock is taken when another has been released: they would be held together;
- a function is to be called while some of the locks have been released: it may want one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator import errors
from stator.space.signals import Restart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stator.guards.program import GuardProgram
    from stator.space.host_types import Host
    from stator.space.interfaces import Trace, Writer
    from stator.space.value import Value


class CriticalSection:
    """The existing locks that one trace takes."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        #: values of the locks (see `threading_.LockValue`), in the order in which they are taken first
        self._locks: list[Any] = []
        #: the instruction that takes the first
        self._step = 0
        #: how many calls had been put off when the last lock was released
        self._calls_inside = 0
        #: how many had been when some were released and others not
        self._calls_partly: int | None = None
        #: whether they are to be taken before the graph, and whether it writes before the program takes the first
        self.around_graph = False
        self.written_before = False
        #: how many lines of effects of generated code come before the release of the last lock
        self.lines_inside = 0
        #: what generated code checks the guards with
        self.guards = GuardsAgain()

    def __bool__(self) -> bool:
        return bool(self._locks)

    @property
    def _held(self) -> int:
        return sum(lock.depth > 0 for lock in self._locks)

    def may_take(self, lock: Value) -> bool:
        """Whether the lock, which the program does not hold, can be taken with the others."""
        effects = self._trace.effects
        if not self._trace.root.repeatable or effects.acts():
            return False
        if lock in self._locks:
            return True
        untouched = all(value in self._locks for value in effects.changed())
        return untouched and self._held == len(self._locks)

    def take(self, lock: Value) -> None:
        """The program takes a lock."""
        self._refuse_calls()
        if not self._locks:
            recorder = self._trace.recorder
            self._step = self._trace.steps
            self.written_before = recorder is not None and bool(recorder.effects.written)
        if lock not in self._locks:
            self._locks.append(lock)

    def released(self) -> None:
        """The program has released a lock."""
        self._refuse_calls()
        calls = self._trace.effects.call_count
        if not self._held:
            self._calls_inside = calls
        elif self._held < len(self._locks):
            self._calls_partly = calls

    def _refuse_calls(self) -> None:
        """No call must have been put off since some of the locks were released."""
        if self._calls_partly not in (None, self._trace.effects.call_count):
            self.give_up()
        self._calls_partly = None

    def note_operation(self, *, writes: bool) -> None:
        """An operation is recorded in the graph; whether it `writes` to a tensor of the outside."""
        self.around_graph |= bool(self._locks) and (writes or self._held > 0)

    def give_up(self) -> None:
        """End the trace before the first lock is taken."""
        raise Restart(self._step, errors.UnsupportedCCall(f"{self._locks[0].kind.__name__}.acquire"))

    # -- generated code -----------------------------------------------------------------------------------------------

    def made(self, writer: Writer) -> str:
        """The expression that makes what holds the locks in generated code."""
        names = "".join(f"{writer.expr(lock)}, " for lock in self._locks)
        depths = "".join(f"{lock.depth}, " for lock in self._locks)
        return f"{writer.const(HeldLocks)}(({names}), ({depths}), {writer.const(self.guards, 'guards')})"

    def note_lines(self, effects: int) -> None:
        """Generated code has so many lines of effects, of which the last are the calls that were put off."""
        self._refuse_calls()
        self.lines_inside = effects - (0 if self._held else self._trace.effects.call_count - self._calls_inside)


class GuardsAgain:
    """The guards of an entry, checked while its program runs."""

    program: GuardProgram

    def hold(self, function: Host, args: tuple[Host, ...], handed: tuple[Host, ...]) -> bool:
        """Whether they hold still, and would hand over the same."""
        return self.program.hands_over(function, args, handed)


class HeldLocks:
    """The locks while generated code performs the effects.

    Args:
        locks: in the order in which they are taken.
        depths: how often each is held by the program in the end.
        guards: what is checked once they are held.
    """

    __slots__ = ("_depths", "_guards", "_held", "_locks")

    def __init__(self, locks: Sequence[Host], depths: Sequence[int], guards: GuardsAgain) -> None:
        self._locks = locks
        self._depths = depths
        self._guards = guards
        self._held: list[Host] = []

    def taken(self, function: Host, args: tuple[Host, ...], handed: tuple[Host, ...]) -> bool:
        """Take them, and tell whether what was read before is still so; if not, none is held."""
        try:
            for lock in self._locks:
                lock.acquire()
                self._held.append(lock)
            unchanged = self._guards.hold(function, args, handed)
        except BaseException:
            self.give_back()
            raise
        if not unchanged:
            self.give_back()
        return unchanged

    def give_back(self) -> None:
        """Release them all: generated code will do nothing else."""
        while self._held:
            self._held.pop().release()

    def __enter__(self) -> None:
        """They have been taken."""

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        """Hold them as often as the program does in the end; none where generated code has failed or given up."""
        if kind is None and self._held:
            states = [*zip(self._locks, self._depths, strict=True)]
            self._held = [lock for lock, depth in states if not depth]
            for lock, depth in states:
                for _ in range(depth - 1):
                    lock.acquire()
        self.give_back()
