"""What a program keeps for its own speed: caches of functions, what abstract classes remember of their subclasses.

Filling such a memory is a side effect, performed after the graph like any other. But a function that is called before
that has been done returns what it would return afterwards.
"""

from __future__ import annotations

from stator.space.host_types import Host

__all__ = ["Bookkeeping"]


class Bookkeeping:
    """A deferred call that only fills a memory; what anyone computes is the same before and after."""

    def __call__(self, *args: Host, **kwargs: Host) -> None:
        raise NotImplementedError
