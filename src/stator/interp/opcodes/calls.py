"""Opcodes: calls, returns, context managers."""

from __future__ import annotations

from stator.bytecode.decode import Instr
from stator.interp.frame import Frame, opcode
from stator.models.functions.arguments import keyword_args, star_args
from stator.space.value import NULL, Value


@opcode
def CALL(f: Frame, instr: Instr) -> None:
    """function(a, b, key=c)"""
    count, names = instr.arg
    args = f.popn(count)
    _call(f, args, names)


@opcode
def CALL_KW(f: Frame, instr: Instr) -> None:
    """function(a, key=b), the names on the stack"""
    names = f.pop().as_host(f.space)
    _call(f, f.popn(instr.arg), names)


def _call(f: Frame, args: list[Value], names: tuple[str, ...]) -> None:
    function, receiver = f.pop_callable()
    split = len(args) - len(names)
    kwargs = dict(zip(names, args[split:], strict=True))
    f.push(f.space.call(function, receiver + args[:split], kwargs, True))


@opcode
def CALL_FUNCTION_EX(f: Frame, instr: Instr) -> None:
    """function(*args, **kwargs)"""
    keywords = f.pop() if instr.arg else NULL
    positional = f.pop()
    function, receiver = f.pop_callable()
    args = receiver + star_args(f.space, positional, function)
    kwargs = {} if keywords is NULL else keyword_args(f.space, keywords.force(), function)
    f.push(f.space.call(function, args, kwargs, True))


@opcode
def RETURN_VALUE(f: Frame, instr: Instr) -> None:
    """return value"""
    f.result = f.pop()


@opcode
def LOAD_SPECIAL(f: Frame, instr: Instr) -> None:
    """with manager: — one of its two methods"""
    owner = f.pop().force()
    method = f.space.special(owner, instr.arg)
    if method is None:
        raise _no_special(f, owner, instr.arg)
    f.push_callable(f.space.bind(method, owner))


def _no_special(f: Frame, owner: Value, name: str) -> Exception:
    """The error, which says so where the program may mean the other kind of `with`."""
    asynchronous = name.startswith("__a")
    kind, other = ("asynchronous ", "") if asynchronous else ("", "asynchronous ")
    text = f"'{f.space.full_name(owner.cls)}' object does not support the {kind}context manager protocol"
    text += f" (missed {name} method)"
    others = ("__enter__", "__exit__") if asynchronous else ("__aenter__", "__aexit__")
    if all(f.space.special(owner, method) is not None for method in others):
        statement = "with" if asynchronous else "async with"
        text += f" but it supports the {other}context manager protocol. Did you mean to use '{statement}'?"
    return f.space.error(TypeError, text)


@opcode
def BEFORE_WITH(f: Frame, instr: Instr) -> None:
    """with manager:"""
    manager = f.pop().force()
    space = f.space
    enter = space.special(manager, "__enter__")
    exit_ = space.special(manager, "__exit__")
    if enter is None:
        raise _no_protocol(f, manager, "")
    if exit_ is None:
        raise _no_protocol(f, manager, " (missed __exit__ method)")
    bound = space.bind(exit_, manager)
    f.push(bound)
    f.push(space.call(space.bind(enter, manager), [], {}))


def _no_protocol(f: Frame, manager: Value, missed: str, kind: str = "") -> Exception:
    return f.space.error(
        TypeError, f"'{manager.type_name(f.space)}' object does not support the {kind}context manager protocol{missed}"
    )


@opcode
def BEFORE_ASYNC_WITH(f: Frame, instr: Instr) -> None:
    """async with manager:"""
    manager = f.pop().force()
    space = f.space
    enter = space.special(manager, "__aenter__")
    exit_ = space.special(manager, "__aexit__")
    if enter is None:
        raise _no_protocol(f, manager, "", "asynchronous ")
    if exit_ is None:
        raise _no_protocol(f, manager, " (missed __aexit__ method)", "asynchronous ")
    f.push(space.bind(exit_, manager))
    f.push(space.call(space.bind(enter, manager), [], {}))
