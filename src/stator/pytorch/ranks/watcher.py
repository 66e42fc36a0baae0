"""A thread of each rank that tells the others where the program is, and raises in it what another has found.

It looks into the store a few times a second; the program's own threads do nothing for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch

from stator.host.threads import frame_of, frames_of, raise_in
from stator.pytorch.ranks.digest import Collective, family, own_place
from stator.pytorch.ranks.inquiry import HOST
from stator.pytorch.ranks.listener import LISTENER

if TYPE_CHECKING:
    from stator.pytorch.ranks.board import Board

__all__ = ["Watcher"]

_EVERY = 0.25
#: seconds that the program has to leave a collective that the others will not come to
_LEAVES = 0.5
_TRIES = 120
#: seconds that an answer of the store may take when the session ends
_ENDS = 5.0
_EAGER = ("distributed_c10d.py", "_functional_collectives.py")
_CALLS = frozenset({"all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "gather", "reduce", "scatter"})
_CALLS |= {"reduce_scatter", "send", "recv"}


class Watcher(threading.Thread):
    """Args:
    rank: of this process.
    board: with a connection of its own.
    numbers: how many collectives have been begun in each group.
    learn: told why another rank has failed; gives the class to raise in the program, if it is to be raised here.
    close: closes the connections to the others.
    """

    def __init__(
        self,
        rank: int,
        board: Board,
        numbers: Callable[[], dict[str, int]],
        learn: Callable[[list[Any]], type[BaseException] | None],
        close: Callable[[], None],
    ) -> None:
        super().__init__(name="stator ranks", daemon=True)
        self.rank = rank
        self.board = board
        self.numbers = numbers
        self.learn = learn
        self.close = close
        #: whether the program compares what it has compiled, and the group and number that it waits for
        self.checks = False
        self.waits: tuple[str, int] | None = None
        self.over = False
        self.program = threading.main_thread().ident or 0
        #: residual program → the collectives in its graph
        self.graphs: dict[CodeType, tuple[Collective, ...]] = {}
        self.stopped = threading.Event()
        self._tell(0)

    def runs(self, thread: int, program: CodeType, collectives: tuple[Collective, ...]) -> None:
        """The program's thread has got a new graph."""
        self.program = thread
        self.graphs[program] = collectives

    @contextmanager
    def checking(self) -> Iterator[None]:
        """The program compares in the block, and may wait for others."""
        self.checks = True
        try:
            yield
        finally:
            self.checks, self.waits = False, None

    def stop(self) -> None:
        """The session is over, and the thread ends: one that is in a store when Python ends aborts the process."""
        self.stopped.set()
        if threading.current_thread() is not self:
            self.join(_ENDS)

    def run(self) -> None:
        """Look for news until the session is over."""
        seen = 0
        try:
            while not self.stopped.wait(_EVERY):
                news = self.board.count("news")
                if news != seen:
                    seen = news
                    (failure,) = self.board.read("failure")
                    if failure is not None:
                        return self._raise(failure)
                    self._tell(news)
        except Exception:  # the store is no more, or the group
            return None

    def _tell(self, news: int) -> None:
        state = {"news": news, "host": HOST, "pid": os.getpid(), "over": self.over, "waits": self.waits}
        state |= {"compiling": bool(LISTENER.compiling and not self.checks)}
        state |= {"numbers": self.numbers(), "doing": self._doing()}
        self.board.write(f"state {self.rank}", state)

    # -- where the program is ---------------------------------------------------------------------------------------

    def _doing(self) -> dict[str, Any] | None:
        """The collective that the program is in, as far as its frames tell."""
        for frame in frames_of(self.program):
            code = frame.f_code
            if family(code.co_name) in _CALLS and code.co_filename.endswith(_EAGER):
                tensor: Any = frame.f_locals.get("tensor")
                size = tensor.numel() if isinstance(tensor, torch.Tensor) else None
                return {"op": code.co_name, "size": size, "where": own_place(frame)}
            if code in self.graphs:
                return {"graph": self.graphs[code]} if self.graphs[code] else None
        return None

    # -- failing ----------------------------------------------------------------------------------------------------

    def _raise(self, failure: list[Any]) -> None:
        """Raise it in the program; free the ranks that are in a collective which nobody comes to."""
        error = self.learn(failure)
        at = frame_of(self.program)
        if error is not None:
            raise_in(self.program, error)
        last = -1 if at is None else at.f_lasti
        for _ in range(_TRIES):
            if self.stopped.wait(_LEAVES):
                return
            now = frame_of(self.program)
            if error is not None and now is not None and now is at and now.f_lasti == last:
                self.board.write("stuck", self.rank)
            elif self.board.read("stuck") != [None]:
                return self.close()
