"""The starred arguments of calls and displays: `f(*positional, **keywords)`, `[*iterable]`."""

from __future__ import annotations

from stator.host.version_facts import HANDLED_EXCEPTION_CHANGES_MERGE_ERROR
from stator.space.space import Space
from stator.space.value import Raised, Value


def star_items(space: Space, iterable: Value) -> list[Value]:
    """`[*iterable]`, with CPython's message for what is not iterable."""
    try:
        return space.unpack(iterable)
    except Raised as e:
        if e.matches(TypeError) and not space.is_iterable(iterable):
            name = iterable.force().type_name(space)
            raise space.error(TypeError, f"Value after * must be an iterable, not {name}") from None
        raise


def star_args(space: Space, positional: Value, function: Value) -> list[Value]:
    """`f(*positional)`."""
    try:
        return space.unpack(positional)
    except Raised as e:
        if e.matches(TypeError) and not space.is_iterable(positional):
            name = positional.force().type_name(space)
            text = f"{_shown(space, function)} argument after * must be an iterable, not {name}"
            raise space.error(TypeError, text) from None
        raise


def keyword_args(space: Space, keywords: Value, function: Value) -> dict[str, Value]:
    """`f(**keywords)`."""
    keywords = keywords.force()
    items = getattr(keywords, "str_items", None)
    if items is not None:
        return items(space)  # type: ignore[no-any-return]
    merged = space.new_dict([])
    merge_keywords(space, merged, keywords, function)
    return merged.str_items(space)  # type: ignore[attr-defined, no-any-return]


def merge_keywords(space: Space, target: Value, mapping: Value, function: Value) -> None:
    """`f(**mapping)` into the dict of keywords: no key twice, all of them strings."""
    keys = space.getattr_or_none(mapping, "keys")
    if keys is None:
        name = mapping.force().type_name(space)
        text = f"{_shown(space, function)} argument after ** must be a mapping, not {name}"
        raise space.error(TypeError, text)
    for key in space.iterate(space.call(keys, [], {})):
        if space.truth(space.contains(target, key)):
            if HANDLED_EXCEPTION_CHANGES_MERGE_ERROR and space.trace.frame.being_handled():
                # Up to 3.11 the words below are only for a KeyError without a context.
                raise space.error(KeyError, space.known(key))
            text = f"{_shown(space, function)} got multiple values for keyword argument '{space.known(key)}'"
            raise space.error(TypeError, text)
        target.tp_setitem(space, key, space.getitem(mapping, key))  # type: ignore[attr-defined]


def _shown(space: Space, function: Value) -> str:
    """How `_PyObject_FunctionStr` names a callable in error messages."""
    function = function.force()
    name = space.getattr_or_none(function, "__qualname__")
    if name is None:
        return function.describe()
    module = space.getattr_or_none(function, "__module__")
    prefix = space.known(module) if module is not None else None
    text = str(space.known(name))
    return f"{prefix}.{text}()" if prefix and prefix != "builtins" else f"{text}()"
