"""The bytecode of the supported CPython versions, a file each: `current` is the running version's."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Protocol, cast

from .common import Convert, Split

__all__ = ["Version", "current"]


class Version(Protocol):
    """What a version's file says."""

    NULL_FIRST: bool
    """A call's NULL lies under the callable, and not above it."""

    END_FOR_LENGTH: int
    """How many raw instructions an exhausted FOR_ITER steps over at its target."""

    SEND_SKIPS_END: bool
    """SEND's target is an END_SEND, which the canonical SEND includes."""

    TAKE: tuple[str, ...]
    """The raw instructions that push a local and unbind it."""

    LOOKS_BEFORE_CALLS: bool
    """The handler of what a called Python function raises is looked up one code unit before the call."""

    KEYWORDS_OR_NULL: bool
    """CALL_FUNCTION_EX finds its keyword arguments or a NULL on top, and not only where its flag says so."""

    CONVERT: dict[str, Convert]
    """Each simple raw instruction: how it becomes a canonical one."""

    SPLIT: dict[str, Split]
    """The raw instructions that stand for several simple ones: which."""

    JUMPS: dict[str, tuple[str, int]]
    """Each raw jump: its canonical name and its direction."""

    NOT_DECODED: dict[str, str]
    """Raw opcodes that have no row in these tables, and why."""


_module: Any = import_module(f".py{sys.version_info[0]}{sys.version_info[1]}", __name__)
current = cast(Version, _module)
