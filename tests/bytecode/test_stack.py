"""Depths and handled exceptions before each instruction."""

from __future__ import annotations

import asyncio.tasks
import contextlib
import dataclasses
import dis
import enum
import inspect
import types
import typing

import pytest

from stator.bytecode import Decoded, Instr, decode
from stator.bytecode.canonical import JUMPS
from stator.bytecode.stack import StackError, depths, effect, handled
from tests.bytecode import samples
from tests.bytecode.test_decode import module_codes

#: raw instructions whose effect is not that of the canonical ones they stand for, and why
ELSEWHERE = {
    "PRECALL": "the CALL after it takes all operands from the stack",
    "CALL": "in 3.11, PRECALL has taken the operands",
    "RETURN_GENERATOR": "the body's frame begins with what the first send() pushes",
    "END_FOR": "part of the canonical FOR_ITER",
    "RETURN_VALUE": "in 3.14, the caller's stack is counted",
}


@pytest.mark.parametrize("module", [asyncio.tasks, contextlib, dataclasses, enum, inspect, typing])
def test_rows_agree_with_dis(module: types.ModuleType) -> None:
    """What the rows say a raw instruction does to the depth is what CPython says."""
    for code in module_codes(module):
        by_offset: dict[int, list[Instr]] = {}
        for instr in decode(code).instrs:
            by_offset.setdefault(instr.offset, []).append(instr)
        for raw in dis.get_instructions(code):
            if raw.opname in ELSEWHERE or raw.offset not in by_offset:
                continue
            ours = sum(effect(instr) for instr in by_offset[raw.offset])
            arg = raw.arg if raw.opcode >= dis.HAVE_ARGUMENT else None
            assert ours == dis.stack_effect(raw.opcode, arg, jump=False), raw


def test_effect_by_argument() -> None:
    def one(op: str, arg: object) -> int:
        return effect(Instr(op, arg, 0, 0, None, None, op))

    assert one("CALL", (2, ("k",))) == -3
    assert one("CALL_FUNCTION_EX", True) == -3
    assert one("UNPACK_EX", (1, 2)) == 3
    assert one("MAKE_FUNCTION", 0b1001) == -2
    assert one("LOAD_SUPER_ATTR", ("a", True, False)) == -1
    assert one("BUILD_MAP", 2) == -3


def test_effect_when_jumping() -> None:
    for op in JUMPS:
        instr = Instr(op, 0, 0, 0, None, None, op)
        changes = (effect(instr), effect(instr, jump=True))
        assert (changes[0] != changes[1]) == (op in ("FOR_ITER", "SEND") or op.endswith("_OR_POP")), op


def broken(function: object, change: dict[str, str]) -> Decoded:
    """A decoded function with some instructions mistaken for others."""
    decoded = decode(function.__code__)  # type: ignore[attr-defined]
    clone = object.__new__(Decoded)
    clone.instrs = tuple(
        Instr(change.get(i.op, i.op), i.arg, i.index, i.offset, i.line, i.handler, i.raw) for i in decoded.instrs
    )
    return clone


def test_wrong_depths_are_noticed() -> None:
    depths(broken(samples.loops, {}))
    with pytest.raises(StackError):
        depths(broken(samples.loops, {"STORE_FAST": "DELETE_FAST"}))


def test_wrong_handlers_are_noticed() -> None:
    with pytest.raises(StackError):
        handled(broken(samples.tries, {"PUSH_EXC_INFO": "LOAD_CONST"}))


def test_handled_exceptions_are_counted() -> None:
    decoded = decode(samples.bare_raise.__code__)
    counts = handled(decoded)
    assert max(counts) == 2
    assert counts[0] == 0
    for instr in decoded.instrs:
        if instr.op == "PUSH_EXC_INFO":
            assert counts[instr.index + 1] == counts[instr.index] + 1
