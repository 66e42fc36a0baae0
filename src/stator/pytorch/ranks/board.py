"""The process group's store, as ranks write to each other in it: who comes first writes, the others compare.

No rank reads what each of the others wrote: a post is one round trip, whatever the number of ranks.
"""

from __future__ import annotations

import json
from typing import Any

from stator.errors import RankDivergenceError
from stator.pytorch.types import Host

__all__ = ["Board"]


class Board:
    """A store, or a connection of its own to it, so that one thread's waiting delays no other's."""

    def __init__(self, store: Host) -> None:
        clone = getattr(store, "clone", None)  # an older torch has none
        self.store = store if clone is None else clone()
        self.patience: float = store.timeout.total_seconds()

    def another(self) -> Board:
        """The same with another connection."""
        return Board(self.store)

    def first(self, key: str, text: str) -> str:
        """Write, unless somebody has; what stands there then."""
        found: bytes = self._ask("compare_set", _key(key), "", text)
        return found.decode()

    def write(self, key: str, value: object) -> None:
        """Write over what stands there."""
        self._ask("set", _key(key), json.dumps(value))

    def read(self, *keys: str) -> list[Any]:
        """What stands there, in their order; None for what is not written, which takes more round trips than two."""
        asked = [_key(key) for key in keys]
        if not asked or self._ask("check", asked):
            return [json.loads(text) for text in (self._ask("multi_get", asked) if asked else [])]
        half = len(keys) // 2
        return [*self.read(*keys[:half]), *self.read(*keys[half:])] if half else [None]

    def count(self, key: str, more: int = 0) -> int:
        """Add to a number, and what it is then."""
        number: int = self._ask("add", _key(f"{key} count"), more)
        return number

    def _ask(self, method: str, *args: object) -> Any:
        try:
            return getattr(self.store, method)(*args)
        except (RuntimeError, ValueError) as error:  # torch's errors of networks and stores are RuntimeErrors
            reason = str(error).partition("\n")[0]
            raise RankDivergenceError(
                f"the store does not answer: has the rank that keeps it ended? ({reason})"
            ) from error


def _key(key: str) -> str:
    return f"stator.ranks {key}"
