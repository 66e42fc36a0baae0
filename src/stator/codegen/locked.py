"""The lines of a residual program that performs its effects under locks which existed before the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stator.codegen.writer import Writer
    from stator.models.stdlib.critical_section import CriticalSection

__all__ = ["Locked", "as_tuple"]


class Locked:
    """The locks of one program:

        handed = (model, lock)                              # what the guards have handed over
        locks = HeldLocks((lock,), (0,), guards)
        t0 = graph(…)
        if not locks.taken(forward, (model, x), handed):
            return tail_call(…)                             # ordinary Python executes the frame
        with locks:
            model.ready = True
        return t0

    Args:
        section: the locks, and the effects that come under them.
        writer: what the program is written with.
        called: the function of the frame and its arguments.
        again: the line by which ordinary Python executes the frame, where the locks are taken before the graph; empty
            where that is one more thing that may be found out about the graph.
    """

    def __init__(self, section: CriticalSection, writer: Writer, called: str, again: str) -> None:
        self._section = section
        self._name = writer.name("locks")
        self._handed = writer.name("handed")
        self._made = section.made(writer)
        #: the expression that takes them, and is false where the guards of this call would not pass any more
        self.taken = f"{self._name}.taken({called}, {self._handed})"
        self._refused = [f"if not {self.taken}:", f"    {again}"] if again else []
        #: whether they are taken before the graph
        self.first = bool(again)
        #: what is to be done before ordinary Python executes the frame because the graph has failed
        self.given_back = [f"{self._name}.give_back()"] if again else []

    def body(self, params: Sequence[str], head: list[str], made: list[str], epilogue: list[str]) -> list[str]:
        """The program: the `head` with the graph, what is `made` of its results, and the `epilogue`."""
        begin = [f"{self._handed} = {as_tuple(params)}", f"{self._name} = {self._made}"]
        inside = self._section.lines_inside
        before, held = (self._refused, head) if self.first else (head, [])
        held = [*held, *made, *epilogue[:inside]] or ["pass"]
        return [*begin, *before, f"with {self._name}:", *(f"    {line}" for line in held), *epilogue[inside:]]


def as_tuple(names: Sequence[str]) -> str:
    """The expression of a tuple."""
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"
