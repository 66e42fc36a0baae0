"""The table of opcodes against the parts that its rows speak of."""

from __future__ import annotations

import re

import pytest

from stator.bytecode import CANONICAL
from stator.bytecode.canonical import IN_CODEGEN
from stator.codegen import native_calls
from stator.errors import InternalError
from stator.interp import opcodes
from stator.interp.frame import OPCODES, opcode

opcodes.load()


def test_each_row_has_an_executor_and_each_executor_a_row() -> None:
    assert set(OPCODES) == set(CANONICAL)
    refusing = {op for op, function in OPCODES.items() if function.__name__ == "_refuse"}
    assert refusing == {op for op, row in CANONICAL.items() if row.refused}


def test_an_executor_without_a_row_is_an_error() -> None:
    def NO_SUCH_OPCODE(frame: object, instr: object) -> None: ...

    with pytest.raises(InternalError, match="no row"):
        opcode(NO_SUCH_OPCODE)
    with pytest.raises(InternalError, match="twice"):
        opcode(OPCODES["LOAD_FAST"])


def test_what_generated_code_does_is_in_the_rows() -> None:
    assert set(native_calls.NATIVE) == {op for op, row in CANONICAL.items() if row.native}
    for op, row in CANONICAL.items():
        if row.native and row.native != IN_CODEGEN:
            known = {entry.removesuffix("…") for entry in row.before} | {"arg", "globals", "slice", "None"}
            assert set(re.findall(r"[a-zA-Z_]\w*", row.native.partition("(")[2])) <= known, op
            assert not row.refused


def test_rows_are_well_formed() -> None:
    for op, row in CANONICAL.items():
        for entries in (row.before, row.after, row.jump or ()):
            assert sum(entry.endswith("…") for entry in entries) <= 1, op
            assert all(re.fullmatch(r"\w+(\|\w+)*…?", entry) for entry in entries), (op, entries)
