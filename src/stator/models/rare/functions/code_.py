"""`compile`, `eval` and `exec` of known text: the code is traced as a class body is, with a namespace."""

from __future__ import annotations

import ast
import builtins
import types
import warnings
from typing import Any

from stator.bytecode import is_suspendable
from stator.models.functions.function import FunctionValue
from stator.space.operands import known_host, refuse_use
from stator.space.protocol import NONE, builtin
from stator.space.space import Space
from stator.space.value import Constant, Raised, Value

#: the flags of a frame's code that text compiled in it inherits: those of `from __future__ import …`
_INHERITED = 0x1FE0000
_ZERO, _MINUS = Constant(0), Constant(-1)


@builtin(compile)
def compile_(
    space: Space,
    source: Value,
    filename: Value,
    mode: Value,
    flags: Value = _ZERO,
    dont_inherit: Value = _ZERO,
    optimize: Value = _MINUS,
    *,
    _feature_version: Value = _MINUS,
) -> Value:
    text = known_host(space, source, "compile")
    if not isinstance(text, (str, bytes, ast.AST)):
        raise refuse_use("compile", "of what is neither text nor a syntax tree")
    bits = space.int_(flags)
    name, kind = known_host(space, filename, "compile"), known_host(space, mode, "compile")
    if not space.truth(dont_inherit):
        bits |= space.trace.frame.code.co_flags & _INHERITED
    version = space.int_(_feature_version)
    return space.fresh(_compiled(space, text, name, kind, bits, space.int_(optimize), _feature_version=version))


def _compiled(space: Space, text: Any, filename: str, mode: str, flags: int, optimize: int = -1, **options: int) -> Any:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        code: types.CodeType | ast.AST | None = None
        failure: Exception | None = None
        try:
            code = compile(text, filename, mode, flags, True, optimize, **options)
        except Exception as e:
            failure = e
    globals().pop("__warningregistry__", None)  # CPython notes there what has been said
    if given:  # what becomes of a warning is for the program's own filters to say
        raise refuse_use("compile", "of text that the compiler warns of")
    if failure is not None:
        raise Raised(space.exception(failure))
    assert code is not None
    return code


@builtin(eval)
def eval_(space: Space, source: Value, globals: Value = NONE, locals: Value = NONE, /) -> Value:
    return _run(space, "eval", source, globals, locals)


@builtin(exec)
def exec_(
    space: Space, source: Value, globals: Value = NONE, locals: Value = NONE, /, *, closure: Value = NONE
) -> Value:
    if not closure.is_none():
        raise refuse_use("exec", "with a closure")
    _run(space, "exec", source, globals, locals)
    return NONE


def _run(space: Space, mode: str, source: Value, globals: Value, locals: Value) -> Value:
    frame = space.trace.frame
    globals, locals = globals.force(), locals.force()
    _check_namespaces(space, mode, globals, locals)
    text = known_host(space, source, mode)
    if isinstance(text, (str, bytes)):
        text = text.lstrip(" \t") if mode == "eval" and isinstance(text, str) else text
        text = _compiled(space, text, "<string>", mode, frame.code.co_flags & _INHERITED)
    if isinstance(text, bytearray | memoryview):
        raise refuse_use(mode, "of a buffer")
    if not isinstance(text, types.CodeType):
        raise space.error(TypeError, f"{mode}() arg 1 must be a string, bytes or code object")
    if text.co_freevars:
        raise space.error(TypeError, f"code object passed to {mode}() may not contain free variables")
    if is_suspendable(text):
        raise refuse_use(mode, "of code that awaits")
    host = frame.globals
    if globals.is_none():
        namespace = space.call_builtin(builtins.locals, [], {}) if locals.is_none() else locals
    else:
        host = _globals_of(space, mode, globals)
        namespace = globals if locals.is_none() else locals
    return space.trace.calls.inline_class_body(FunctionValue(text, host, text.co_name), namespace.force())


def _check_namespaces(space: Space, mode: str, globals: Value, locals: Value) -> None:
    """The two arguments' types, tested in the order and refused in the words of `eval` and of `exec`."""
    if mode == "eval":
        if _no_mapping(space, locals):
            raise space.error(TypeError, "locals must be a mapping")
        if _no_dict(globals):
            real = "globals must be a dict"
            hint = "globals must be a real dict; try eval(expr, {}, mapping)"
            raise space.error(TypeError, real if _no_mapping(space, globals) else hint)
    elif _no_dict(globals):
        raise space.error(TypeError, f"exec() globals must be a dict, not {globals.type_name(space)}")
    elif _no_mapping(space, locals):
        raise space.error(TypeError, f"locals must be a mapping or None, not {locals.type_name(space)}")


def _no_dict(value: Value) -> bool:
    return not value.is_none() and not value.isa(dict)


def _no_mapping(space: Space, value: Value) -> bool:
    return not value.is_none() and space.special(value, "__getitem__") is None


def _globals_of(space: Space, mode: str, globals: Value) -> Any:
    """The dict as globals, with builtins in it as CPython puts them there."""
    host = space.trace.namespaces.globals_from(globals)
    names = space.trace.namespaces.globals_of(host)
    if names.value(space) is not globals:
        raise refuse_use(mode, "with a dict that is known by two ways")
    if globals.cls is not dict:
        raise refuse_use(mode, "with globals of a class derived from dict")
    builtins_ = names.get_str(space, "__builtins__")
    if builtins_ is None:
        own = space.trace.namespaces.builtins_of(space.trace.frame.globals)
        names.set_str(space, "__builtins__", own.value(space))
    elif not builtins_.force().isa((dict, types.ModuleType)):
        raise refuse_use(mode, "with builtins that are no dict")
    return host
