"""Many random programs, each known by its number, and what came of them."""

from __future__ import annotations

import collections
import random
import re

from tests.fuzz.compare import Difference, Unfit, check
from tests.fuzz.programs import program
from tests.fuzz.reduce import reduced


class Campaign:
    """Runs programs, and counts them."""

    def __init__(self, tensors: bool) -> None:
        self.tensors = tensors
        self.ran = 0
        self.unfit: collections.Counter[str] = collections.Counter()
        self.breaks: collections.Counter[str] = collections.Counter()
        self.failures: collections.Counter[str] = collections.Counter()

    def run(self, number: int) -> str | None:
        """Run program `number`; where it differs in a new way, the smallest program that does, and what differs."""
        source, positions = program(number, self.tensors), breaks_of(number)
        outcome = outcome_of(source, positions)
        if isinstance(outcome, Unfit):
            self.unfit[str(outcome).split(":")[0][:60]] += 1
            return None
        self.ran += 1
        if isinstance(outcome, Difference):
            kind = kind_of(outcome)
            self.failures[kind] += 1
            return smallest(source, positions) if self.failures[kind] == 1 else None
        self.breaks[outcome["as one graph"] or "none"] += 1
        return None

    def report(self, seconds: float) -> str:
        unfit = ", ".join(f"{count} {reason}" for reason, count in self.unfit.most_common(3))
        breaks = ", ".join(f"{code} {count}" for code, count in self.breaks.most_common(8))
        rate = self.ran / seconds
        return (
            f"{self.ran} programs in {seconds:.0f} s, {rate:.1f} a second, {sum(self.failures.values())} differ\n"
            f"breaks with fullgraph: {breaks}\nunfit: {sum(self.unfit.values())} ({unfit})"
        )


def breaks_of(number: int) -> list[int]:
    """Where breaks are forced: at one of the first instructions, and at one farther in."""
    rng = random.Random(-number)
    return [rng.randrange(1, 60), rng.randrange(60, 400)]


def kind_of(e: Difference) -> str:
    """Differences of one kind are reduced and shown once: the last one's words without their numbers."""
    return re.sub(r"\d+", "", str(e).split("\n")[-1])[:90]


def smallest(source: str, positions: list[int]) -> str:
    small = reduced(source, lambda text: isinstance(outcome_of(text, positions), Difference))
    return f"{small}\n# breaks at {positions}\n{outcome_of(small, positions)}\n"


def outcome_of(source: str, positions: list[int]) -> dict[str, str] | Difference | Unfit:
    """As `check` does, which never runs while an exception is handled: that would be the context of the program's."""
    try:
        return check(source, positions)
    except (Difference, Unfit) as e:
        return e
