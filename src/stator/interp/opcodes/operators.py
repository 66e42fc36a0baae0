"""Opcodes: operators, subscripts, jumps."""

from __future__ import annotations

from stator.bytecode.decode import Instr
from stator.interp.branches import branch, operand_truth, truth
from stator.interp.frame import Frame, opcode
from stator.models.containers.slice_ import SliceValue
from stator.space.protocol import FALSE, NONE, TRUE
from stator.space.value import Constant, Value


def _bool(value: bool) -> Constant:
    return TRUE if value else FALSE


@opcode
def BINARY_OP(f: Frame, instr: Instr) -> None:
    """left op right; left op= right"""
    stack = f.stack
    right, left = stack.pop(), stack.pop()
    stack.append(f.space.binary(instr.arg, left, right))


@opcode
def UNARY_NEGATIVE(f: Frame, instr: Instr) -> None:
    """-value"""
    f.push(f.space.unary("-", f.pop()))


@opcode
def UNARY_POSITIVE(f: Frame, instr: Instr) -> None:
    """+value"""
    f.push(f.space.unary("+", f.pop()))


@opcode
def UNARY_INVERT(f: Frame, instr: Instr) -> None:
    """~value"""
    f.push(f.space.unary("~", f.pop()))


@opcode
def UNARY_NOT(f: Frame, instr: Instr) -> None:
    """not value"""
    f.push(_bool(not truth(f, f.pop(), negated=True)))


@opcode
def TO_BOOL(f: Frame, instr: Instr) -> None:
    """bool(value)"""
    f.push(_bool(truth(f, f.pop())))


@opcode
def COMPARE_OP(f: Frame, instr: Instr) -> None:
    """left < right"""
    right, left = f.pop(), f.pop()
    f.push(f.space.compare(instr.arg, left, right))


@opcode
def IS_OP(f: Frame, instr: Instr) -> None:
    """left is right"""
    right, left = f.pop(), f.pop()
    f.push(_bool(f.space.is_(left, right) is not instr.arg))


@opcode
def CONTAINS_OP(f: Frame, instr: Instr) -> None:
    """item in container"""
    container, item = f.pop(), f.pop()
    found = f.space.contains(container, item)
    f.push(_bool(not f.space.truth(found)) if instr.arg else found)


@opcode
def GET_LEN(f: Frame, instr: Instr) -> None:
    """The length, in a match statement."""
    f.push(f.space.len(f.peek()))


@opcode
def BINARY_SUBSCR(f: Frame, instr: Instr) -> None:
    """container[key]"""
    key, container = f.pop(), f.pop()
    f.push(f.space.getitem(container, key, True))


@opcode
def STORE_SUBSCR(f: Frame, instr: Instr) -> None:
    """container[key] = value"""
    key, container, value = f.pop(), f.pop(), f.pop()
    f.space.setitem(container, key, value)


@opcode
def DELETE_SUBSCR(f: Frame, instr: Instr) -> None:
    """del container[key]"""
    key, container = f.pop(), f.pop()
    f.space.delitem(container, key)


def _slice(start: Value, stop: Value) -> Value:
    return SliceValue(start, stop, NONE)


@opcode
def BINARY_SLICE(f: Frame, instr: Instr) -> None:
    """container[start:stop]"""
    container, start, stop = f.popn(3)
    f.push(f.space.getitem(container, _slice(start, stop), True))


@opcode
def STORE_SLICE(f: Frame, instr: Instr) -> None:
    """container[start:stop] = value"""
    value, container, start, stop = f.popn(4)
    f.space.setitem(container, _slice(start, stop), value)


@opcode
def JUMP(f: Frame, instr: Instr) -> None:
    """On to another instruction."""
    f.index = instr.arg


@opcode
def POP_JUMP_IF_FALSE(f: Frame, instr: Instr) -> None:
    """if value:"""
    branch(f, f.pop(), f.index, instr.arg)


@opcode
def POP_JUMP_IF_TRUE(f: Frame, instr: Instr) -> None:
    """if not value:"""
    branch(f, f.pop(), instr.arg, f.index)


@opcode
def POP_JUMP_IF_NONE(f: Frame, instr: Instr) -> None:
    """if value is not None:"""
    if f.pop().is_none():
        f.index = instr.arg


@opcode
def POP_JUMP_IF_NOT_NONE(f: Frame, instr: Instr) -> None:
    """if value is None:"""
    if not f.pop().is_none():
        f.index = instr.arg


@opcode
def JUMP_IF_FALSE_OR_POP(f: Frame, instr: Instr) -> None:
    """value and …"""
    if operand_truth(f, f.peek()):
        f.pop()
    else:
        f.index = instr.arg


@opcode
def JUMP_IF_TRUE_OR_POP(f: Frame, instr: Instr) -> None:
    """value or …"""
    if operand_truth(f, f.peek()):
        f.index = instr.arg
    else:
        f.pop()
