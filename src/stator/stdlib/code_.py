"""`compile`, `eval` and `exec` of known text: the code is traced as a class body is, with a namespace."""

from __future__ import annotations

import ast
import builtins
import types
import warnings
from typing import TYPE_CHECKING, Any

from stator.objects.function import FunctionValue
from stator.objects.protocol import NONE, builtin
from stator.objects.value import Constant, Raised, Value
from stator.stdlib.support import known_host, refuse

if TYPE_CHECKING:
    from stator.objects.space import Space

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
) -> Value:
    text = known_host(space, source, "compile")
    if not isinstance(text, (str, bytes)):
        raise refuse("compile of what is no text")
    bits = space.int_(flags)
    if bits & ast.PyCF_ONLY_AST:
        raise refuse("compile to a syntax tree")
    name, kind = known_host(space, filename, "compile"), known_host(space, mode, "compile")
    if not space.truth(dont_inherit):
        bits |= space.trace.current_frame.code.co_flags & _INHERITED
    return Constant(_compiled(space, text, name, kind, bits, space.int_(optimize)))


def _compiled(space: Space, text: Any, filename: str, mode: str, flags: int, optimize: int = -1) -> types.CodeType:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        code: types.CodeType | None = None
        failure: Exception | None = None
        try:
            code = compile(text, filename, mode, flags, True, optimize)
        except Exception as e:
            failure = e
    if given:  # what becomes of a warning is for the program's own filters to say
        raise refuse("compile of text with a warning")
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
    if closure.force().cls is not type(None):
        raise refuse("exec with a closure")
    _run(space, "exec", source, globals, locals)
    return NONE


def _run(space: Space, mode: str, source: Value, globals: Value, locals: Value) -> Value:
    frame = space.trace.current_frame
    text = known_host(space, source, mode)
    if isinstance(text, (str, bytes)):
        text = text.lstrip(" \t") if mode == "eval" and isinstance(text, str) else text
        text = _compiled(space, text, "<string>", mode, frame.code.co_flags & _INHERITED)
    if not isinstance(text, types.CodeType) or text.co_freevars:
        raise refuse(f"{mode} of what is neither text nor code without free variables")
    globals, locals = globals.force(), locals.force()
    host = frame.globals
    if globals.cls is type(None):
        namespace = space.call_builtin(builtins.locals, [], {}) if locals.cls is type(None) else locals
    else:
        host = space.identity(globals)
        if not isinstance(host, dict) or space.trace.globals_of(host).value(space) is not globals:
            raise refuse(f"{mode} with globals that belong to no module")
        namespace = globals if locals.cls is type(None) else locals
    if not issubclass(namespace.force().cls, dict):
        raise refuse(f"{mode} with a namespace that is no dict")
    return space.trace.inline_class_body(FunctionValue(text, host, text.co_name), namespace.force())
