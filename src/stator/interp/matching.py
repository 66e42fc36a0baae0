"""The patterns of match statements: `match_keys` and `match_class` of CPython's `ceval.c`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.space.protocol import NONE
from stator.space.value import Constant, Raised, Value

if TYPE_CHECKING:
    from stator.space.space import Space

#: `_Py_TPFLAGS_MATCH_SELF`: one positional pattern matches the subject itself
_MATCH_SELF = 1 << 22


def match_keys(space: Space, subject: Value, keys: Value) -> Value:
    """The tuple of values for the keys, or None when one is absent."""
    values: list[Value] = []
    seen: set[object] = set()
    dummy = space.call(space.class_value(object), [], {})
    get = None
    for key in space.unpack(keys):
        hash_key = space.key(key)
        if hash_key in seen:
            raise space.error(ValueError, f"mapping pattern checks duplicate key ({space.known(key)!r})")
        seen.add(hash_key)
        get = get or space.getattr(subject, "get")
        value = space.call(get, [key, dummy], {}).force()
        if value is dummy:
            return NONE
        values.append(value)
    return space.new_tuple(values)


def match_class(space: Space, subject: Value, cls: Value, count: int, names: Value) -> Value:
    """The tuple of matched attributes, or None when the subject is no instance or lacks one."""
    cls = cls.force()
    if not cls.isa(type):
        raise space.error(TypeError, "called match pattern must be a class")
    if not space.truth(space.call_builtin(isinstance, [subject, cls], {})):
        return NONE
    attributes: list[Value] = []
    seen: set[str] = set()
    try:
        if count:
            attributes += _positional(space, subject, cls, count, seen)
        for name in space.unpack(names):
            attributes.append(_attribute(space, subject, cls, space.str_(name), seen))
    except Raised as e:
        if e.matches(AttributeError):
            return NONE
        raise
    return space.new_tuple(attributes)


def _positional(space: Space, subject: Value, cls: Value, count: int, seen: set[str]) -> list[Value]:
    host = cls.as_host(space)
    match_args = space.getattr_or_none(cls, "__match_args__")
    if match_args is None:
        if not host.__flags__ & _MATCH_SELF:
            raise _too_many(space, host, 0, count)
        if count > 1:
            raise _too_many(space, host, 1, count)
        return [subject]
    match_args = match_args.force()
    if match_args.cls is not tuple:
        given = match_args.type_name(space)
        raise space.error(TypeError, f"{space.class_name(host)}.__match_args__ must be a tuple (got {given})")
    names = space.unpack(match_args)
    if count > len(names):
        raise _too_many(space, host, len(names), count)
    found = []
    for name in names[:count]:
        if name.force().cls is not str:
            kind = name.force().type_name(space)
            raise space.error(TypeError, f"__match_args__ elements must be strings (got {kind})")
        found.append(_attribute(space, subject, cls, space.str_(name), seen))
    return found


def _too_many(space: Space, host: type, allowed: int, count: int) -> Raised:
    plural = "" if allowed == 1 else "s"
    text = f"{space.class_name(host)}() accepts {allowed} positional sub-pattern{plural} ({count} given)"
    return space.error(TypeError, text)


def _attribute(space: Space, subject: Value, cls: Value, name: str, seen: set[str]) -> Value:
    if name in seen:
        text = f"{space.class_name(cls.as_host(space))}() got multiple sub-patterns for attribute {name!r}"
        raise space.error(TypeError, text)
    seen.add(name)
    return space.getattr(subject, name)


__all__ = ["Constant", "match_class", "match_keys"]
