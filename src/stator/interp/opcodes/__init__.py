"""The opcodes, one method each."""
