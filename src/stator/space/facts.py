"""The door: how a model learns something about an object that exists outside the trace.

What can't be guarded can't be read. `value.host` is such an object; its attributes, items, length, type or text may be
others in the next call, so they are asked for here and nowhere else, and the answer comes with its guard:

>>> facts.attribute(space, function, "__doc__")         # a Value, guarded when it is used
>>> facts.constant(space, method, "__name__")           # the host's answer, guarded now to be equal
>>> facts.answer(space, cached, is_bare, "is_bare")     # what a function of ours finds out, guarded to be equal
>>> facts.holds(space, tensor, is_plain, "is plain")     # whether one is true: guarded if so, and not to be used if not
>>> facts.fixed(descriptor, "__objclass__")             # what cannot change as long as the object lives

`tests/test_door.py` finds other reads. The class of an object is guarded by `space.guard_type`, the bases of a class by
`space.mro`, its attributes by `space.host_lookup`.
"""

from __future__ import annotations

import contextvars
import re
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stator.guards.callable_names import INSTANCE_METHOD
from stator.guards.guard import Equals, IdIs, Predicate
from stator.guards.source import CallSource, GetAttrSource
from stator.space.host_types import Host
from stator.space.wrapping import LITERALS, plain_name

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.space.interfaces import Trace
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = [
    *("CHANGING", "FIXED", "answer", "attribute", "constant", "expect_others", "fixed", "holds", "is_fixed", "part"),
    "plain_name",
    "stays",
]

#: in `Trace.region_state`: the sources, as text, of numbers that are expected to be others in later traces
CHANGING = "changing numbers"

_VARIES = object()

_DESCRIPTOR = {
    "__name__": "a read-only member, set when the type is made",
    "__objclass__": "a read-only member, set when the type is made",
    "__qualname__": "computed once and kept, of a class and a name that do not change",
}

#: attributes that stay what they are as long as the object lives: type → name → why
FIXED: dict[type, dict[str, str]] = {
    types.MethodDescriptorType: _DESCRIPTOR,
    types.ClassMethodDescriptorType: _DESCRIPTOR,
    types.WrapperDescriptorType: _DESCRIPTOR,
    types.GetSetDescriptorType: _DESCRIPTOR,
    types.MemberDescriptorType: _DESCRIPTOR,
    types.BuiltinFunctionType: {
        "__name__": "in the static PyMethodDef",
        "__self__": "a read-only member, set when the function is made",
        "__qualname__": "of __self__ and __name__, for messages",
    },
    types.MethodWrapperType: {
        "__name__": "that of the slot, in a static table",
        "__self__": "a read-only member, set when the wrapper is made",
    },
    types.FunctionType: {
        "__globals__": "a read-only member, set when the function is made",
        "__closure__": "a read-only member, set when the function is made; the cells may change",
    },
    re.Match: {"string": "a read-only member, set when the match is made"},
    INSTANCE_METHOD: {"__func__": "a read-only member, set when the method is made"},
    contextvars.ContextVar: {"name": "a read-only member, set when the variable is made"},
}


def is_fixed(host: Host, name: str) -> bool:
    """Whether the attribute of the object cannot change."""
    return name in FIXED.get(type(host), ())


def fixed(host: Host, name: str) -> Host:
    """An attribute that cannot change during the object's life; which object it is, is guarded already."""
    assert is_fixed(host, name), f"{type(host).__qualname__}.{name} may change"
    return getattr(host, name)


def part(space: Space, host: Host, source: Source, name: str) -> Value:
    """A C-level attribute of an object that is just being met: see `attribute`."""
    return space.wrap(getattr(host, name), GetAttrSource(source, name))


def attribute(space: Space, value: Any, name: str) -> Value:
    """A C-level attribute of an existing object, guarded when the program uses it."""
    return part(space, value.host, value.source, name)


def constant(space: Space, value: Any, name: str) -> Host:
    """A C-level attribute that the model itself needs: guarded to be equal, or the same object."""
    found = getattr(value.host, name)
    source = GetAttrSource(value.source, name)
    space.trace.guard(Equals(source, found) if type(found) in LITERALS and found is not None else IdIs(source, found))
    return found


def answer(space: Space, value: Any, read: Callable[[Host], Host], text: str) -> Host:
    """What `read(host)` says, a literal or a tuple of such: guarded to be equal. `read` runs no code of the program."""
    found = read(value.host)
    space.trace.guard(Equals(CallSource(read, value.source, text), found))
    return found


def holds(
    space: Space, value: Any, test: Callable[[Host], bool], text: str, guard: type[Predicate] = Predicate
) -> bool:
    """Whether `test(host)` is true: guarded if it is. Who is told that it is not has to ask for something else."""
    found = test(value.host)
    if found:
        space.trace.guard(guard((value.source,), test, f"{value.source.expr()} {text}"))
    return found


def expect_others(trace: Trace, source: Source) -> None:
    """A number found there is mostly another one when the code runs again: the count of a loop's rounds, its next item.

    Where numbers may be symbols, it is one at once, and not only when it has been seen to vary.
    """
    trace.region_state.setdefault(CHANGING, set()).add(source.expr())


def stays(trace: Trace, what: str, key: str, found: Host) -> bool:
    """Whether what is found under a key is what it was in all earlier traces of the same code.

    Args:
        what: the kind of things that have such keys, in a word.
    """
    seen = trace.region_state.setdefault(what, {})
    if seen.setdefault(key, found) != found:
        seen[key] = _VARIES
    return seen[key] is not _VARIES
