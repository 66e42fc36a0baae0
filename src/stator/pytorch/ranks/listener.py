"""Where `check_ranks` begins: what is compiled is told to the session of the process group, if there is one."""

from __future__ import annotations

import threading
from types import CodeType

import torch.distributed as dist

from stator import config
from stator.report.events import EVENTS, Broke, Called, Compiled, Listener

__all__ = ["LISTENER", "in_company", "install"]


class _Frames(threading.local):
    """The frames that this thread is compiling, innermost last: the breaks of each."""

    def __init__(self) -> None:
        self.breaks: list[list[Broke]] = []


class RankListener(Listener):
    """Hands what a frame has become to the others."""

    def __init__(self) -> None:
        self.frames = _Frames()
        #: how many frames this process is compiling, in all threads
        self.compiling = 0

    def begun(self, code: CodeType) -> None:
        self.compiling += 1
        self.frames.breaks.append([])
        if config.current().check_ranks and in_company():
            from stator.pytorch.ranks import session  # at the first check: most programs make none

            session.current()

    def broke(self, event: Broke) -> None:
        if self.frames.breaks:
            self.frames.breaks[-1].append(event)

    def called(self, event: Called) -> None:
        if self.frames.breaks and in_company():
            from stator.pytorch.ranks.digest import remember  # as above

            remember(event.gm)

    def compiled(self, event: Compiled) -> None:
        if not self.frames.breaks:  # it was begun before somebody listened
            return
        breaks = self.frames.breaks.pop()
        entry = event.entry
        try:
            if entry is None or entry.target is None or not entry.owner.config.check_ranks or not in_company():
                return
            from stator.pytorch.ranks import session  # as above

            session.current().check(event.code, entry, breaks)
        finally:
            self.compiling -= 1


def in_company() -> bool:
    """Whether there are other processes."""
    return dist.is_initialized() and dist.get_world_size() > 1 and dist.get_backend() != "fake"


LISTENER = RankListener()


def install() -> None:
    """Listen."""
    EVENTS.all += (LISTENER,)
