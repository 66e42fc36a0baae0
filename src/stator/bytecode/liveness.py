"""Which fast locals may still be read from an instruction on: what a continuation there has to be given."""

from __future__ import annotations

import weakref

from .canonical import CANONICAL
from .decode import Decoded
from .stack import successors

_READS = frozenset(op for op, row in CANONICAL.items() if row.reads)
_BINDS = frozenset(op for op, row in CANONICAL.items() if row.binds)
_SHOW_LOCALS = frozenset(
    {"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "breakpoint", "set_trace"}
)
"""A code object that mentions one of these may read any local by name."""

_cache: weakref.WeakKeyDictionary[Decoded, tuple[frozenset[str], ...]] = weakref.WeakKeyDictionary()


def live_names(decoded: Decoded, index: int) -> frozenset[str]:
    """The locals (not those in cells) that may be read on some path from `instrs[index]`, exceptions included."""
    found = _cache.get(decoded)
    if found is None:
        found = _cache[decoded] = _all_names(decoded)
    return found[index]


def _always(decoded: Decoded) -> frozenset[str]:
    """Locals that are read in ways no instruction shows."""
    code = decoded.code
    if not _SHOW_LOCALS.isdisjoint(code.co_names):
        return frozenset(decoded.varnames)
    # super() without arguments looks at the frame's first argument.
    if code.co_argcount and "super" in code.co_names and "__class__" in code.co_freevars:
        return frozenset(code.co_varnames[:1]) - frozenset(code.co_cellvars)
    return frozenset()


def _all_names(decoded: Decoded) -> tuple[frozenset[str], ...]:
    bits = {name: 1 << number for number, name in enumerate(decoded.varnames)}
    always = _always(decoded)
    made: dict[int, frozenset[str]] = {}
    for live in (masks := _masks(decoded, bits)):
        if live not in made:
            made[live] = always.union(name for name, bit in bits.items() if live & bit)
    return tuple(made[live] for live in masks)


def _masks(decoded: Decoded, bits: dict[str, int]) -> list[int]:
    """The live locals before each instruction, as bit sets: backwards over the flow until nothing changes."""
    instrs = decoded.instrs
    reads = [bits[instr.arg] if instr.op in _READS else 0 for instr in instrs]
    keeps = [~bits[instr.arg] if instr.op in _BINDS else -1 for instr in instrs]
    follow = [[index for index, _ in successors(instr)] for instr in instrs]
    handlers = [[] if instr.handler is None else [instr.handler.target] for instr in instrs]
    live = [0] * len(instrs)
    changed = True
    while changed:
        changed = False
        for index in range(len(instrs) - 1, -1, -1):
            after = raised = 0
            for target in follow[index]:
                after |= live[target]
            for target in handlers[index]:
                raised |= live[target]
            before = reads[index] | (after & keeps[index]) | raised
            if before != live[index]:
                live[index], changed = before, True
    return live
