"""Imports every opcode module and every model, and checks that the canonical set is complete."""

from stator import objects, stdlib
from stator.interp import ops_build, ops_calls, ops_exceptions, ops_generators, ops_operators, ops_stack
from stator.interp.frame import check_complete

check_complete()
__all__ = [
    "objects",
    "ops_build",
    "ops_calls",
    "ops_exceptions",
    "ops_generators",
    "ops_operators",
    "ops_stack",
    "stdlib",
]
