"""The symbolic interpreter. Importing it registers every opcode, and checks that none is missing."""

from stator.interp import opcodes

opcodes.load()
