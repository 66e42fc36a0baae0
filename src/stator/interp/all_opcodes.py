"""Imports every opcode module and every model, and checks that the canonical set is complete."""

from stator import models
from stator.interp.frame import check_complete
from stator.interp.opcodes import build, calls, exceptions, generators, operators, stack

check_complete()
__all__ = ["build", "calls", "exceptions", "generators", "models", "operators", "stack"]
