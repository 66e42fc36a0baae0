"""Opcodes: iteration, generators, coroutines."""

from __future__ import annotations

import inspect

from stator.bytecode.decode import Instr
from stator.interp.frame import Frame, opcode
from stator.interp.loops import Loops
from stator.models.functions import generator
from stator.models.functions.suspendable import stop_value
from stator.space.protocol import NONE
from stator.space.value import Raised


@opcode
def GET_ITER(f: Frame, instr: Instr) -> None:
    """for … in iterable"""
    f.push(f.space.iter(f.pop()))


@opcode
def FOR_ITER(f: Frame, instr: Instr) -> None:
    """for item in …"""
    item = f.space.next(f.stack[-1])
    f.trace.extension(Loops).asked(f, instr, item is None)
    if item is None:
        f.stack.pop()
        f.index = instr.arg
    else:
        f.stack.append(item)


@opcode
def GET_YIELD_FROM_ITER(f: Frame, instr: Instr) -> None:
    """yield from iterable"""
    value = f.pop().force()
    if isinstance(value, generator.GeneratorValue) and value.is_coroutine and not f.code.co_flags & _COROUTINES:
        raise f.space.error(TypeError, "cannot 'yield from' a coroutine object in a non-coroutine generator")
    f.push(value if isinstance(value, generator.GeneratorValue) else f.space.iter(value))


_COROUTINES = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE


@opcode
def SEND(f: Frame, instr: Instr) -> None:
    """One step of `yield from` or `await`."""
    sent = f.pop()
    try:
        f.push(generator.send(f.space, f.peek(), sent))
    except Raised as e:
        if not e.matches(StopIteration):
            raise
        f.pop()
        f.push(stop_value(f.space, e.value))
        f.index = instr.arg


@opcode
def END_SEND(f: Frame, instr: Instr) -> None:
    """The receiver is done with; its result stays."""
    del f.stack[-2]


@opcode
def CLEANUP_THROW(f: Frame, instr: Instr) -> None:
    """An exception thrown into `yield from` came out of the receiver."""
    value = f.pop()
    if not value.isa(StopIteration):
        raise Raised(value)
    f.popn(2)
    f.push(NONE)
    f.push(stop_value(f.space, value))


@opcode
def RETURN_GENERATOR(f: Frame, instr: Instr) -> None:
    """The body of a generator begins: its frame was made by the call, this is the first `send(None)`."""
    f.push(NONE)


@opcode
def YIELD_VALUE(f: Frame, instr: Instr) -> None:
    """yield value"""
    f.result = f.pop()


@opcode
def ASYNC_GEN_WRAP(f: Frame, instr: Instr) -> None:
    """yield value, in an async generator"""
    from stator.models.rare.functions.async_generator import Wrapped  # rare: loaded when met

    f.push(Wrapped(f.pop()))


@opcode
def GET_AWAITABLE(f: Frame, instr: Instr) -> None:
    """await value"""
    f.push(generator.awaited(f.space, f.pop(), instr.arg))


@opcode
def GET_AITER(f: Frame, instr: Instr) -> None:
    """async for … in value"""
    f.push(generator.aiter_(f.space, f.pop()))


@opcode
def GET_ANEXT(f: Frame, instr: Instr) -> None:
    """The next item of an async iterator, to be awaited."""
    f.push(generator.anext_(f.space, f.peek()))


@opcode
def END_ASYNC_FOR(f: Frame, instr: Instr) -> None:
    """The end of `async for`."""
    value = f.pop()
    if not value.isa(StopAsyncIteration):
        raise Raised(value)
    f.pop()
