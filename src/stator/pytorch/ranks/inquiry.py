"""Where the others are, whom a rank waits for: what their watchers write when they are asked."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from stator.pytorch import internals
from stator.pytorch.ranks.digest import Collective, family

if TYPE_CHECKING:
    from stator.pytorch.ranks.board import Board

__all__ = ["HOST", "UNHEARD", "Inquiry", "lives"]

HOST = socket.gethostname()
#: questions without an answer after which a rank on another host counts as ended
_SILENCE = 60
#: questions after which nobody waits for a rank that compares nothing
UNHEARD = 3

#: what there is to say about ranks that differ: the text, the line, what each has
Finding = tuple[str, str, dict[int, str]]


class Inquiry:
    """A wait for the members of a group, before a collective.

    Args:
        first: the collective.
        numbers: how many have been begun in each group that this rank is in.
    """

    def __init__(self, board: Board, rank: int, first: Collective, numbers: dict[str, int]) -> None:
        self.board = board
        self.rank = rank
        self.first = first
        self.numbers = numbers
        self.members = _members(first.group)
        self.key = f"next {first.group} {numbers[first.group]}"
        self.missing = [member for member in self.members if member != rank]
        self.asked = 0
        self.silent = dict.fromkeys(self.missing, 0)
        self.stuck: dict[int, object] = {}

    def ask(self) -> Finding | None:
        """Look at the answers to the last question, and ask again; a finding is a reason not to wait longer."""
        states = self.board.read(*(f"state {member}" for member in self.missing))
        for rank, state in list(zip(self.missing, states, strict=True)):
            finding = self._judge(rank, state) if state is not None else self._unheard(rank)
            if finding is not None:
                return finding
        self.asked = self.board.count("news", 1)
        return None

    def _unheard(self, rank: int) -> Finding | None:
        """It has compiled nothing so far: it may be running ordinary Python, and is not waited for long."""
        self.silent[rank] += 1
        if self.silent[rank] > UNHEARD:
            self.missing.remove(rank)
        return None

    def _judge(self, rank: int, state: dict[str, Any]) -> Finding | None:
        if state["over"]:
            return self._differs(rank, "no further collective: the program has ended")
        if not lives(state):
            return self._differs(rank, "nothing more: its process has ended")
        if state["news"] < self.asked:
            self.silent[rank] += 1
            return self._differs(rank, "no answer") if self.silent[rank] > _SILENCE else None
        self.silent[rank] = 0
        here = self.first.group
        if state["waits"] == [here, self.numbers[here]]:
            self.missing.remove(rank)
        elif state["numbers"].get(here, 0) > self.numbers[here]:
            if state["doing"] is not None and not self._meets(state["doing"]):
                return self._differs(rank, _text(state["doing"]))
            self.missing.remove(rank)  # it runs what it has compiled before, or ordinary Python
        else:
            return self._elsewhere(rank, state)
        return None

    def _elsewhere(self, rank: int, state: dict[str, Any]) -> Finding | None:
        """It has not come yet: does it wait for this rank somewhere else?"""
        if state["waits"] is not None:
            group, number = state["waits"]
            if group in self.numbers and self.numbers[group] <= number and group != self.first.group:
                (post,) = self.board.read(f"next {group} {number}")
                if post is not None and self.board.count(f"next {group} {number}") < len(_members(group)):
                    return self._twice(rank, ("waits", group, number), str(Collective(*post[1][0])))
        ahead = [name for name, number in state["numbers"].items() if number > self.numbers.get(name, number)]
        if ahead and state["doing"] is not None:
            return self._twice(rank, state["doing"], _text(state["doing"]))
        self.stuck.pop(rank, None)
        return None

    def _twice(self, rank: int, at: object, text: str) -> Finding | None:
        """It is an error if it is still so at the next answer."""
        seen, self.stuck[rank] = self.stuck.get(rank), at
        return self._differs(rank, text) if seen == at else None

    def _meets(self, doing: dict[str, Any]) -> bool:
        """Whether what it runs may be the same collective."""
        if "graph" in doing:
            return any(self.first.of_any_call().agrees(Collective(*each).of_any_call()) for each in doing["graph"])
        sizes = {doing["size"], self.first.size} - {None}
        return bool(family(doing["op"]) == self.first.op and len(sizes) < 2)

    def _differs(self, rank: int, text: str) -> Finding:
        values = {self.rank: str(self.first), rank: text}
        lines = [f"  rank {each}: {value}" for each, value in sorted(values.items())]
        return "\n".join([f"ranks differ at {self.first.where}:", *lines]), self.first.where, values


def _members(group: str) -> list[int]:
    """The ranks of a group, by its name."""
    return dist.get_process_group_ranks(internals.group_of_name(group))


def _text(doing: dict[str, Any]) -> str:
    if "graph" in doing:
        return ", ".join(str(Collective(*fields)) for fields in doing["graph"])
    size = "" if doing["size"] is None else f" of {doing['size']} elements"
    return f"{doing['op']}{size} at {doing['where']}"


def lives(state: dict[str, Any]) -> bool:
    """Whether the process that wrote this runs, or may, being on another host."""
    return state["host"] != HOST or _runs(state["pid"])


def _runs(pid: int) -> bool:
    """Whether a process of this host runs; one that has ended may wait for its parent to notice."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's, or there is no /proc
        return True
