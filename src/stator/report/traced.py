"""The end of `stator.trace()`: the program is left when its first frame has been traced."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from stator.errors import StatorError
from stator.report.collector import graph_inputs, guard_records
from stator.report.events import Called, Compiled, Listener, listening
from stator.report.graphs import result_types
from stator.space.host_types import Host

__all__ = ["Traced", "stopping_after_trace"]


class Traced(BaseException):
    """Leaves the program: what was wanted of it is here."""

    def __init__(self, event: Compiled) -> None:
        super().__init__()
        self._event = event

    def graph_module(self) -> Host:
        """The graph, which knows its inputs and what was assumed."""
        event = self._event
        assert event.entry is not None
        graph = event.entry.owner.graph
        if graph is None:
            raise StatorError(f"{event.code.co_qualname} does nothing with tensors: it has no graph")
        graph.gm.sources = graph_inputs(event)
        graph.gm.guards = guard_records(event)
        return graph.gm


class _Stopping(Listener):
    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def called(self, event: Called) -> None:
        result_types(event.gm)  # which has them made while they can be

    def compiled(self, event: Compiled) -> None:
        if threading.get_ident() != self._thread or event.entry is None:
            return
        if event.entry.owner is None:
            around = f"{event.code.co_qualname} runs as ordinary Python around what is compiled"
            raise StatorError(f"{around}: no graph is that of the call")
        raise Traced(event)


@contextmanager
def stopping_after_trace() -> Iterator[None]:
    """The first frame that is compiled in the block, in this thread, ends it with `Traced`."""
    with listening(_Stopping()):
        yield
