"""Binding call arguments to parameters: `initialize_locals` of CPython's `ceval.c`."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING

from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from stator.space.space import Space

_VARARGS = 0x04
_VARKEYWORDS = 0x08


class Mismatch(Exception):
    """The arguments do not fit the parameters; CPython words the error."""


def bind(
    space: Space,
    code: CodeType,
    args: list[Value],
    kwargs: dict[str, Value],
    defaults: Callable[[], list[Value]],
    kwdefault: Callable[[str], Value | None],
) -> dict[str, Value]:
    """Parameter name → value, in parameter order; raises Mismatch."""
    names = code.co_varnames
    positional = code.co_argcount
    keyword_only = code.co_kwonlyargcount
    if len(args) == positional and not (kwargs or keyword_only or code.co_flags & (_VARARGS | _VARKEYWORDS)):
        return dict(zip(names, args, strict=False))
    bound: dict[str, Value] = dict(zip(names[:positional], args, strict=False))
    extra = args[positional:]
    if extra and not code.co_flags & _VARARGS:
        raise Mismatch
    rest: dict[str, Value] = {}
    acceptable = names[code.co_posonlyargcount : positional + keyword_only]
    for name, value in kwargs.items():
        if name in acceptable:
            if name in bound:
                raise Mismatch
            bound[name] = value
        else:
            rest[name] = value
    if rest and not code.co_flags & _VARKEYWORDS:
        raise Mismatch
    unfilled = [i for i in range(len(args), positional) if names[i] not in bound]
    values = defaults() if unfilled else []
    for i in unfilled:
        if i < positional - len(values):
            raise Mismatch
        bound[names[i]] = values[i - positional + len(values)]
    for name in names[positional : positional + keyword_only]:
        if name not in bound:
            value_or_none = kwdefault(name)
            if value_or_none is None:
                raise Mismatch
            bound[name] = value_or_none
    _collect(space, code, bound, extra, rest)
    return bound


def _collect(space: Space, code: CodeType, bound: dict[str, Value], extra: list[Value], rest: dict[str, Value]) -> None:
    slot = code.co_argcount + code.co_kwonlyargcount
    if code.co_flags & _VARARGS:
        bound[code.co_varnames[slot]] = space.new_tuple(extra)
        slot += 1
    if code.co_flags & _VARKEYWORDS:
        pairs = [(Constant(name), value) for name, value in rest.items()]
        bound[code.co_varnames[slot]] = space.new_dict(pairs)  # type: ignore[arg-type]
