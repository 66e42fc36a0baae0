"""What has made the value with which a continuation goes on, as the program writes it."""

from __future__ import annotations

import itertools
import linecache
from types import CodeType

from .canonical import CANONICAL
from .continuation import resumed_after
from .decode import decode

__all__ = ["result_text"]

_LONGEST = 60
_JUMPS = frozenset(op for op, row in CANONICAL.items() if row.jump is not None)


def result_text(code: CodeType) -> str:
    """The expression whose value a continuation is given: `net(x)`, or `net(…)` of a long call.

    "" where it is not known: it may be that of several (`a(x) if c else b(x)`).
    """
    place = resumed_after(code)
    if place is None:
        return ""
    original, index = place
    instrs = decode(original).instrs
    made = instrs[index]
    if CANONICAL[made.op].last or any(instr.op in _JUMPS and instr.arg == index + 1 for instr in instrs):
        return ""
    first, last, start, end = next(itertools.islice(original.co_positions(), made.offset >> 1, None))
    if first is None or start is None:
        return ""
    line = linecache.getline(original.co_filename, first).encode()
    text = line[start : end if first == last else None].decode(errors="replace").rstrip()
    if first == last and len(text) <= _LONGEST:
        return text
    callee, opened, _ = text.partition("(")
    return f"{callee}(…)" if opened and len(callee) <= _LONGEST else ""
