"""The symbolic interpreter: frames, opcodes, the trace and its parts."""
