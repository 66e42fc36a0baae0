"""Bytecode: any supported CPython version's, as one canonical instruction set, and the way back to code objects."""

from .canonical import CANONICAL, JUMPS
from .continuation import (
    ContinuationError,
    continuation,
    continuation_freevars,
    in_prologue,
    make_function,
    original_of,
)
from .decode import Decoded, DecodeError, ExceptionEntry, Instr, argument_count, decode, is_suspendable
from .liveness import live_names
from .versions import current

NULL_FIRST: bool = current.NULL_FIRST
"""Whether a call's NULL lies under the callable (3.11, 3.12) or above it (from 3.13 on)."""

__all__ = [
    "CANONICAL",
    "JUMPS",
    "NULL_FIRST",
    "ContinuationError",
    "DecodeError",
    "Decoded",
    "ExceptionEntry",
    "Instr",
    "argument_count",
    "continuation",
    "continuation_freevars",
    "decode",
    "in_prologue",
    "is_suspendable",
    "live_names",
    "make_function",
    "original_of",
]
