"""Exception groups: splitting, deriving, and what `except*` does with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.host.words import error_words
from stator.models.exceptions.exception import alternatives, is_exception_class, matches
from stator.space.protocol import NONE, TRUE, builtin
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.space.space import Space

Matcher = Callable[[Value], bool]


@builtin(BaseExceptionGroup.derive)
def derive(space: Space, group: Value, exceptions: Value, /) -> Value:
    message = space.getattr(group, "message")
    return space.call(space.existing(BaseExceptionGroup), [message, exceptions], {})


@builtin(BaseExceptionGroup.split)
def split(space: Space, group: Value, condition: Value, /) -> Value:
    match, rest = _split(space, group.force(), _matcher(space, condition), True)
    return space.new_tuple([match or NONE, rest or NONE])


@builtin(BaseExceptionGroup.subgroup)
def subgroup(space: Space, group: Value, condition: Value, /) -> Value:
    match, _ = _split(space, group.force(), _matcher(space, condition), False)
    return match or NONE


_CONDITION = error_words(BaseExceptionGroup("", [ValueError()]).split, None)


def _matcher(space: Space, condition: Value) -> Matcher:
    condition = condition.force()
    if all(is_exception_class(item.force()) for item in alternatives(space, condition)):
        return lambda exc: matches(space, exc, condition)
    if condition.isa(tuple):
        raise space.error(TypeError, _CONDITION)
    if space.special(condition, "__call__") is None or condition.isa(type):
        raise space.error(TypeError, _CONDITION)
    return lambda exc: space.truth(space.call(condition, [exc], {}))


def _is_group(exc: Value) -> bool:
    return exc.isa(BaseExceptionGroup)


def members(space: Space, group: Value) -> list[Value]:
    """The exceptions in a group."""
    return [item.force() for item in space.unpack(space.getattr(group, "exceptions"))]


def _split(space: Space, exc: Value, matcher: Matcher, want_rest: bool) -> tuple[Value | None, Value | None]:
    if matcher(exc):
        return exc, None
    if not _is_group(exc):
        return None, exc
    found: list[Value] = []
    left: list[Value] = []
    for item in members(space, exc):
        match, rest = _split(space, item, matcher, want_rest)
        found += [] if match is None else [match]
        left += [] if rest is None else [rest]
    return _subset(space, exc, found), _subset(space, exc, left) if want_rest else None


def _subset(space: Space, original: Value, exceptions: list[Value]) -> Value | None:
    """A group like `original` of some of its exceptions."""
    if not exceptions:
        return None
    derived = space.call_method(original, "derive", space.new_list(exceptions)).force()
    if not _is_group(derived):
        raise space.error(TypeError, "derive must return an instance of BaseExceptionGroup")
    _take_traceback(space, derived, original)
    for name in ("__context__", "__cause__"):
        value = original.get_field(space, name)
        if value is not None and not value.is_none():
            derived.set_field(space, name, value)
    derived.set_field(space, "__suppress_context__", TRUE)  # as PyException_SetCause does, even of none
    notes = space.getattr_or_none(original, "__notes__")
    if notes is not None and notes.isa((list, tuple)):
        space.setattr(derived, "__notes__", space.new_list(list(space.unpack(notes))))
    return derived


def _take_traceback(space: Space, group: Value, original: Value) -> None:
    traceback = original.get_field(space, "__traceback__")
    if traceback is None or not group.set_field(space, "__traceback__", traceback):
        raise Unsupported(errors.UnsupportedMethod(group.cls.__name__, "split"))


def match(space: Space, exc: Value, pattern: Value) -> tuple[Value, Value]:
    """`except* pattern:`: what is left, and what matches."""
    exc = exc.force()
    if exc.is_none():
        return NONE, NONE
    _check_pattern(space, pattern)
    if matches(space, exc, pattern):
        if _is_group(exc):
            return NONE, exc
        return NONE, _group_of(space, space.new_tuple([exc]))
    if not _is_group(exc):
        return exc, NONE
    pair = space.call_method(exc, "split", pattern).force()
    if not pair.isa(tuple):
        text = f"{exc.type_name(space)}.split must return a tuple, not {pair.type_name(space)}"
        raise space.error(TypeError, text)
    items = space.unpack(pair)
    if len(items) < 2:
        text = f"{exc.type_name(space)}.split must return a 2-tuple, got tuple of size {len(items)}"
        raise space.error(TypeError, text)
    return items[1].force(), items[0].force()


def _group_of(space: Space, members: Value) -> Value:
    """`_PyExc_CreateExceptionGroup("", members)`."""
    return space.call(space.existing(BaseExceptionGroup), [Constant(""), members], {}).force()


def _check_pattern(space: Space, pattern: Value) -> None:
    if any(is_exception_class(item.force(), BaseExceptionGroup) for item in alternatives(space, pattern)):
        text = "catching ExceptionGroup with except* is not allowed. Use except instead."
        raise space.error(TypeError, text)


def prepare_reraise(space: Space, original: Value, raised: Value) -> Value:
    """`_PyExc_PrepReraiseStar`: what the `except*` clauses leave to be raised, or None."""
    original = original.force()
    items = [item.force() for item in space.unpack(raised)]
    if not items:
        return NONE
    if not _is_group(original):
        return items[0]
    given = [item for item in items if not item.is_none()]
    again = [item for item in given if _same_metadata(space, item, original)]
    new = [item for item in given if not any(item is other for other in again)]
    kept = _projection(space, original, again)
    if not new:
        return kept or NONE
    if kept is not None:
        new.append(kept)
    if len(new) == 1:
        return new[0]
    return _group_of(space, space.new_list(new))


def _same_metadata(space: Space, exc: Any, original: Any) -> bool:
    if not _is_group(exc) or not _is_group(original):
        return False
    notes = [space.getattr_or_none(e, "__notes__") for e in (exc, original)]
    if (notes[0] is None) != (notes[1] is None):
        return False
    if notes[0] is not None and notes[1] is not None and not space.equal(notes[0], notes[1]):
        return False
    if exc.tb_entries[: len(original.tb_entries)] != original.tb_entries[: len(exc.tb_entries)]:
        return False
    return all(_same_link(space, exc, original, name) for name in ("__cause__", "__context__"))


def _same_link(space: Space, exc: Value, original: Value, name: str) -> bool:
    mine, theirs = exc.get_field(space, name) or NONE, original.get_field(space, name) or NONE
    return space.is_(mine, theirs)


def _leaves(space: Space, exc: Value) -> list[Value]:
    if not _is_group(exc):
        return [exc]
    return [leaf for item in members(space, exc) for leaf in _leaves(space, item)]


def _projection(space: Space, original: Value, again: list[Value]) -> Value | None:
    """The part of `original` that consists of the leaves of what is raised again."""
    keep = {id(leaf) for exc in again for leaf in _leaves(space, exc)}
    found, _ = _split(space, original, lambda exc: not _is_group(exc) and id(exc) in keep, False)
    return found


__all__ = ["derive", "match", "prepare_reraise", "split", "subgroup"]
