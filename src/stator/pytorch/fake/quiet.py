"""Settings of torch's under which operations are tried: what they warn about is noted, and autocast keeps nothing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import torch

from stator.space.warning_trap import collected

__all__ = ["casts_not_kept", "warnings_of_torch"]


@contextlib.contextmanager
def casts_not_kept() -> Iterator[None]:
    """Autocast keeps nothing meanwhile."""
    # The cache that autocast keeps is the business of the real run.
    caching = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(caching)


class _WarnAlways:
    """torch warns each time while somebody needs to hear of it, and does not note what it has warned about once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.before = False

    def __enter__(self) -> None:
        with self.lock:
            if not self.users:
                self.before = torch.is_warn_always_enabled()
                torch.set_warn_always(True)
            self.users += 1

    def __exit__(self, *exc_info: object) -> None:
        with self.lock:
            self.users -= 1
            if not self.users:
                torch.set_warn_always(self.before)


_ALWAYS = _WarnAlways()


@contextlib.contextmanager
def warnings_of_torch(categories: set[type]) -> Iterator[None]:
    """Warnings of operations are not shown, and their categories put into the set."""
    with _ALWAYS, collected(categories):
        yield
