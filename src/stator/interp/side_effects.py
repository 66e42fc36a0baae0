"""The ordered log of what the traced program did to things that existed before the trace, and its replay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stator.models.classes.bookkeeping import Bookkeeping
from stator.space.host_types import Host
from stator.space.identity.aliasing import separate_changed
from stator.space.identity.reachability import noticing

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.space.interfaces import Writer
    from stator.space.value import Value


class Effects:
    """Mutated objects (in order of their first mutation) and calls put off until the graph has run (in order)."""

    def __init__(self) -> None:
        #: counts the changes, so that one can tell whether a stretch of the program made any
        self.count = 0
        self._mutated: dict[int, Value] = {}
        #: where the program assigns, to an attribute or under a string, with what is there now
        self.assigned: dict[Source, Value] = {}
        #: what the mutated objects held before the trace that notices its end
        self._noticing: dict[int, list[Host]] = {}
        self._deferred: list[tuple[Host, list[Value], dict[str, Value]]] = []
        #: all that changes meanwhile, whether it existed or not, for who wants to know
        self.witness: list[Value] | None = None

    @contextmanager
    def witnessed(self) -> Iterator[list[Value]]:
        """A list of all that changes meanwhile, also of what the traced program has made."""
        outer, self.witness = self.witness, []
        seen = self.witness
        try:
            yield seen
        finally:
            self.witness = outer
            if outer is not None:
                outer += seen

    def __bool__(self) -> bool:
        return bool(self._mutated or self._deferred)

    def mutated(self, value: Value, watched: tuple[Host, ...] = ()) -> bool:
        """An existing object is about to change; its final state will be written back.

        Returns whether it may let go of an object that notices that, as those `watched` do.
        """
        self.count += 1
        if id(value) not in self._mutated or watched:
            self._mutated[id(value)] = value
            found = noticing(value.host, watched)
            if found:
                self._noticing[id(value)] = found
        return id(value) in self._noticing

    def released(self) -> list[Host]:
        """The objects that notice their end and are no longer held by what has held them before the trace."""
        return [host for at, hosts in self._noticing.items() for host in self._mutated[at].dropped(hosts) or ()]

    def is_mutated(self, value: Value) -> bool:
        """Whether the existing object has been changed by the traced program."""
        return id(value) in self._mutated

    def changed(self) -> list[Value]:
        """The existing objects that the traced program has changed."""
        return list(self._mutated.values())

    def changed_hosts(self) -> list[Host]:
        """The existing objects that the traced program has changed, as they still are."""
        return [value.host for value in self._mutated.values()]

    def matter(self) -> bool:
        """Whether anything is to be done that a function which is called now could miss."""
        return bool(self._mutated) or not all(isinstance(function, Bookkeeping) for function, _, _ in self._deferred)

    def acts(self) -> bool:
        """Whether anything is to be done to the world outside."""
        return bool(self._deferred)

    @property
    def call_count(self) -> int:
        """How many calls are put off."""
        return len(self._deferred)

    def is_deferred(self, function: Host) -> bool:
        """Whether a call of the function is put off."""
        return any(found is function for found, _, _ in self._deferred)

    def deferred(self, function: Host, args: list[Value], kwargs: dict[str, Value]) -> None:
        """`function(*args, **kwargs)` acts on the world outside: perform it after the graph, in order."""
        self.count += 1
        self._deferred.append((function, args, kwargs))

    def prepare(self, writer: Writer) -> list[str]:
        """Emit what the effects need, and return the lines that perform them."""
        separate_changed(writer.trace.space, self._mutated.values())
        lines: list[str] = []
        done: set[int] = set()
        # Writing one object back may realise others that were mutated too: hence the loop.
        while len(done) < len(self._mutated):
            for key, value in list(self._mutated.items()):
                if key not in done:
                    done.add(key)
                    lines += value.effects(writer)  # type: ignore[attr-defined]
        calls = []
        for function, args, kwargs in self._deferred:
            parts = [writer.expr(a) for a in args] + [f"{k}={writer.expr(v)}" for k, v in kwargs.items()]
            calls.append(f"{writer.const(function)}({', '.join(parts)})")
        return [*lines, *writer.late, *calls]
