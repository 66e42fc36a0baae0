"""What a rank has agreed upon with the others: a session lasts as long as the default process group.

A place in the order of collectives is a group and how many have been begun in it, which torch counts: ranks that
compile different numbers of times, or run a collective as ordinary Python, have the same number there. For each frame
that is compiled a rank writes two kinds of posts, and compares its own with what another has written there before:

    next GROUP NUMBER            the collectives from this place on, if the graph has any: those of all ranks must meet
    frame GROUP NUMBER FUNCTION  the same for one function, and whether it ends behind them: a rank whose function ends
                                 without what another's goes on with will not come

Where one post has more collectives than the other, the rest is a post for the place behind. A graph that communicates
waits until each member of the group has come to the same place; one that does not waits a moment for those who compile
the same function, so that a difference is an error of both.
"""

from __future__ import annotations

import atexit
import json
import sys
import threading
import time
import weakref
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from stator.errors import RankDivergenceError
from stator.pytorch import internals
from stator.pytorch.ranks.board import Board
from stator.pytorch.ranks.digest import Digest, Post, digest_of
from stator.pytorch.ranks.inquiry import UNHEARD, Inquiry, lives
from stator.pytorch.ranks.listener import LISTENER, in_company
from stator.pytorch.ranks.watcher import Watcher

if TYPE_CHECKING:
    from types import CodeType

    from stator._core import Entry
    from stator.pytorch.types import Host
    from stator.report.events import Broke

__all__ = ["Session", "begin", "current", "finish", "known", "leave"]

#: seconds that a graph without collectives waits for ranks that compile nothing
_MOMENT = 2.0
#: seconds after which the first rank that waits asks where the others are
_PATIENCE = 0.3
#: how many times as long a rank that comes later waits, and between its questions, at most
_LATER = 16
#: seconds that a rank which has ended waits for the others to end, so that what they find is its error too
_END = 5.0
#: seconds between its questions whether there is still one that could find something
_ALONE = 2 * _PATIENCE * UNHEARD


class Session:
    """This rank's part."""

    def __init__(self, world: Host) -> None:
        #: the group is the program's: its connections close when the program lets it go
        self.world = weakref.ref(world)
        self.name = str(internals.world.pg_names[world])
        self.rank: int = world.rank()
        self.size: int = world.size()
        self.board = Board(internals.default_store())
        self.moment = _MOMENT
        #: why ranks differ, if they do: the text, the line, and what each rank has
        self.failure: list[Any] | None = None
        self.told = False
        self.watcher = Watcher(self.rank, self.board.another(), self.numbers, self.learn, self.close)
        self.watcher.start()

    def numbers(self) -> dict[str, int]:
        """How many collectives have been begun in each group that this rank is in with others, by the group's name."""
        groups = [
            (str(name), group) for group, name in list(internals.world.pg_names.items()) if hasattr(group, "size")
        ]
        return {name: internals.sequence_number(group) for name, group in groups if group.size() > 1}

    # -- comparing --------------------------------------------------------------------------------------------------

    def check(self, code: CodeType, entry: Entry, breaks: list[Broke]) -> None:
        """Compare a new entry with those of the others."""
        with self.watcher.checking():
            self._check(code, entry, breaks)
            self.raise_known()

    def _check(self, code: CodeType, entry: Entry, breaks: list[Broke]) -> None:
        self.raise_known()
        if self.told:
            return
        digest = digest_of(code, entry, breaks)
        self.watcher.runs(threading.get_ident(), entry.owner.function.__code__, digest.collectives)
        try:
            self._agree(digest)
        except RankDivergenceError:
            if self.failure is not None or digest.collectives:
                raise
            self.told = True  # the store is no more, and this rank goes on alone

    def _agree(self, digest: Digest) -> None:
        """Post what the frame does next in each group, and wait for the others."""
        numbers = self.numbers()
        orders = {group: self._post(digest, group, number) for group, number in numbers.items()}
        first = digest.collectives[0] if digest.collectives else None
        if first is not None and first.group in numbers:
            self.watcher.waits = (first.group, numbers[first.group])
            self._wait(Inquiry(self.board, self.rank, first, numbers), orders[first.group])
        elif digest.ends:
            self._wait_a_moment(_key("frame", self.name, numbers[self.name], digest))

    def _post(self, digest: Digest, group: str, number: int) -> int:
        """Post what comes next in a group, if there is anything; how many have come to that place."""
        mine = tuple(each for each in digest.collectives if each.group == group)
        if mine or digest.ends:
            self._compare("frame", group, number, Post(self.rank, mine, digest.ends), digest)
            self.board.count(_key("frame", group, number, digest), 1)
        if not mine:
            return 0
        self._compare("next", group, number, Post(self.rank, mine, False), digest)
        return self.board.count(_key("next", group, number, digest), 1)

    def _compare(self, kind: str, group: str, number: int, post: Post, digest: Digest) -> None:
        """Write a post, or compare it with the one that stands there; then the same with what one has more."""
        begin = number
        while True:
            text = post.dump()
            found = self.board.first(_key(kind, group, number, digest), text)
            if found == text:
                if kind == "frame" and number == begin:
                    self.board.write(f"why {_key(kind, group, number, digest)}", [self.rank, digest.evidence])
                return
            other = Post.load(found)
            for one, another in zip(post.collectives, other.collectives, strict=False):
                if not one.agrees(another):
                    self._differ(digest, group, begin, one.where, {post.rank: str(one), other.rank: str(another)})
            shorter, longer = sorted((post, other), key=lambda each: len(each.collectives))
            shared = len(shorter.collectives)
            rest = longer.collectives[shared:]
            if rest and shorter.ends:
                values = {longer.rank: str(rest[0]), shorter.rank: "no further collective: the function ends"}
                self._differ(digest, group, begin, rest[0].where, values)
            if not rest or not shared:
                return
            number, post = number + shared, Post(longer.rank, rest, longer.ends)

    def _differ(self, digest: Digest, group: str, number: int, where: str, values: dict[int, str]) -> None:
        lines = [f"  rank {rank}: {text}" for rank, text in sorted(values.items())]
        (found,) = self.board.read(f"why {_key('frame', group, number, digest)}")
        another, evidence = found or (self.rank, digest.evidence)
        for own, theirs in zip_longest(digest.evidence, evidence, fillvalue=["nothing", ""]):
            if own[0] != theirs[0]:
                texts = sorted([(self.rank, own), (another, theirs)])
                lines += ["the first difference of what they have compiled:"]
                lines += [f"  rank {rank}: {' at '.join(filter(None, text))}" for rank, text in texts]
                break
        self.fail("\n".join([f"ranks differ at {where}:", *lines]), where, values)

    # -- waiting ----------------------------------------------------------------------------------------------------

    def _wait(self, inquiry: Inquiry, order: int) -> None:
        """Until all members of the group have come to the place.

        The first to come asks most often where the others are, and what it finds holds for all who wait: so that not
        each of many ranks asks for each other.
        """
        patience = _PATIENCE * min(order, _LATER)
        end, ask = time.monotonic() + self.board.patience, time.monotonic() + patience
        pause = 0.001
        while self.board.count(inquiry.key) < len(inquiry.members):
            self.raise_known()
            now = time.monotonic()
            if now > ask:
                ask = now + 2 * patience
                finding = inquiry.ask()
                if finding is not None:
                    self.fail(*finding)
                if not inquiry.missing:
                    self.board.count(inquiry.key, len(inquiry.members))  # for those who wait with this one
                    return
            if now > end:
                text = f"waited {self.board.patience:.0f} seconds for rank {min(inquiry.missing)}: it has not come to"
                self.fail(f"{text} {inquiry.first}", inquiry.first.where, {self.rank: str(inquiry.first)})
            time.sleep(pause)
            pause = min(1.5 * pause, 0.1)

    def _wait_a_moment(self, key: str) -> None:
        """For others that compile the same function here; less each time that nobody has come."""
        end = time.monotonic() + self.moment
        while self.board.count(key) < self.size:
            self.raise_known()
            if time.monotonic() > end:
                if not self._others("compiling"):
                    self.moment /= 2
                    return
                end += _PATIENCE
            time.sleep(0.005)
        self.moment = _MOMENT

    def _others(self, fact: str) -> bool:
        """Whether something is true of another rank, by what it wrote last; and have them write again."""
        self.board.count("news", 1)
        return any(state[fact] for state in self._states())

    def _states(self) -> list[dict[str, Any]]:
        """What the watchers of the others wrote last, without those that have no session."""
        others = [f"state {rank}" for rank in range(self.size) if rank != self.rank]
        return [state for state in self.board.read(*others) if state is not None]

    # -- failing ----------------------------------------------------------------------------------------------------

    def fail(self, text: str, where: str, values: dict[int, str]) -> None:
        """Let all ranks raise the same error."""
        found = self.board.first("failure", json.dumps([text, where, values]))
        self.board.count("news", 1)
        self.failure = json.loads(found)
        self.raise_known()

    def learn(self, failure: list[Any]) -> type[RankDivergenceError] | None:
        """Another has failed; the error to raise in the program's thread, where that does not find it by itself."""
        self.failure = failure
        if LISTENER.compiling or self.told:
            return None
        self.told = True
        return _with(self.error())

    def raise_known(self) -> None:
        """Raise what is known, once."""
        if self.failure is not None and not self.told:
            self.told = True
            raise self.error()

    def error(self) -> RankDivergenceError:
        """What is known, as an exception."""
        assert self.failure is not None
        text, where, values = self.failure
        return RankDivergenceError(text, where, {int(rank): value for rank, value in values.items()})

    def close(self) -> None:
        """Free ranks that are in a collective which nobody comes to: their connections to this one break."""
        if dist.is_initialized() and dist.group.WORLD is self.world():
            dist.destroy_process_group()

    def finish(self) -> None:
        """This rank compiles and communicates no more: does another wait for it, or will do so soon?"""
        try:
            begin = time.monotonic()
            end, ask = begin + _END, begin + _ALONE
            self.watcher.over = True
            over = self.board.count("over", 1)
            while over < self.size and time.monotonic() < end:
                self.raise_known()
                if not self.told:
                    self._claimed()
                if time.monotonic() > ask:
                    ask += _ALONE
                    if not any(not state["over"] and lives(state) for state in self._states()):
                        break  # they have died, or compare nothing
                time.sleep(0.02)
                over = self.board.count("over")
        except RankDivergenceError:
            if self.failure is not None:
                raise
            # The store is no more: the rank that keeps it has seen all others end, and was faster.
        finally:
            self.watcher.stop()

    def _claimed(self) -> None:
        """An error if another rank waits for this one at the next place of a group."""
        for group, number in self.numbers().items() if dist.is_initialized() else ():
            (post,) = self.board.read(f"next {group} {number}")
            if post is not None:
                first = Post.of(post).collectives[0]
                values = {post[0]: str(first), self.rank: "no further collective: the program has ended"}
                text = "\n".join(f"  rank {rank}: {value}" for rank, value in sorted(values.items()))
                self.fail(f"ranks differ at {first.where}:\n{text}", first.where, values)


def _key(kind: str, group: str, number: int, digest: Digest) -> str:
    return f"{kind} {group} {number}" + (f" {digest.function}" if kind == "frame" else "")


def _with(error: RankDivergenceError) -> type[RankDivergenceError]:
    """A class whose instances are this error: only a class can be raised in another thread."""

    def init(self: RankDivergenceError) -> None:
        RankDivergenceError.__init__(self, *error.args)

    names = {"__init__": init, "__module__": RankDivergenceError.__module__, "__doc__": RankDivergenceError.__doc__}
    return type(RankDivergenceError.__name__, (RankDivergenceError,), names)


_sessions: list[Session] = []
_beginning = threading.Lock()


def current() -> Session:
    """The session of the default process group."""
    world = dist.group.WORLD
    with _beginning:
        if not _sessions or _sessions[0].world() is not world:
            for session in _sessions:
                session.watcher.stop()
            _sessions[:] = [Session(world)]
            atexit.unregister(_at_exit)
            atexit.register(_at_exit)
        return _sessions[0]


def begin() -> bool:
    """Begin the session, if there is a process group of several."""
    ready = in_company()
    if ready:
        current()
    return ready


def known() -> RankDivergenceError | None:
    """The error that another rank has found, where this one has met what follows from it."""
    return next((session.error() for session in _sessions if session.failure is not None), None)


def finish() -> None:
    """The program ends: raises `RankDivergenceError` if another rank still waits for this one."""
    while _sessions:
        _sessions.pop().finish()


def leave() -> None:
    """The last that the process does: end the process group, which torch asks of programs and many leave to the exit.

    Gloo's threads may hold tensors a while after a collective is over. One that lets go of them while Python is ending
    aborts the process; ending the group waits for the threads, and for collectives that no other rank has come to.
    """
    if dist.is_initialized():
        ending = threading.Thread(target=dist.destroy_process_group, daemon=True)
        ending.start()
        ending.join(_END)


def _at_exit() -> None:
    try:
        finish()
    except RankDivergenceError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
