"""`dict(…)`, `update`, `|=`: `dict_update_arg`, `PyDict_Merge` and `PyDict_MergeFromSeq2`."""

from __future__ import annotations

from stator import errors
from stator.host.version_facts import MERGING_ADDS_A_NOTE
from stator.models.containers.dict_base import DictBase
from stator.space.space import Space
from stator.space.value import Constant, Raised, Unsupported, Value


def merge(space: Space, target: DictBase, other: Value) -> None:
    """Put the entries of a mapping or of an iterable of pairs into the dict."""
    other = other.force()
    # CPython reads the entries of a dict directly, unless its class has changed how it is iterated.
    if isinstance(other, DictBase) and space.host_lookup(other.cls, "__iter__") is dict.__iter__:
        _merge_dict(space, target, other)
        return
    keys = space.getattr_or_none(other, "keys")
    if keys is not None:
        for key in _listed(space, other, space.call(keys, [], {}).force()):
            target.tp_setitem(space, key, space.getitem(other, key))
    else:
        _merge_pairs(space, target, other)


def _merge_dict(space: Space, target: DictBase, other: DictBase) -> None:
    if other is target or (other.table.complete and not other.table.entries):
        return
    entries = list(other.table.finish(space).items())
    target.mark_mutated(space)
    if target.table.complete and not target.table.entries:
        target.table.fill_from(other.table)  # CPython copies the whole table
        return
    version = other.table.version
    for key, entry in entries:
        assert entry.item is not None
        target.table.put(space, key, entry.key, entry.item)
        if other.table.version != version:
            _refuse_changed(space, other, len(entries))


def _refuse_changed(space: Space, other: DictBase, size: int) -> None:
    """A comparison of keys has changed the dict that is being read."""
    if other.table.size(space) >= size or not other.table.entries:
        raise space.error(RuntimeError, "dict mutated during update")
    # CPython goes on past entries that were deleted.
    raise Unsupported(errors.UnsupportedMutation("deleting keys", "a dict that update() is reading"))


def _listed(space: Space, other: Value, keys: Value) -> list[Value]:
    """`PyMapping_Keys`: all keys before the first is looked up."""
    if not space.is_iterable(keys):
        text = f"{other.type_name(space)}.keys() returned a non-iterable (type {keys.type_name(space)})"
        raise space.error(TypeError, text)
    return space.unpack(keys)


def _merge_pairs(space: Space, target: DictBase, other: Value) -> None:
    for index, element in enumerate(space.iterate(other)):
        pair = _pair(space, index, element)
        if len(pair) != 2:
            length = len(pair)
            raise space.error(
                ValueError, f"dictionary update sequence element #{index} has length {length}; 2 is required"
            )
        target.tp_setitem(space, pair[0], pair[1])


def _pair(space: Space, index: int, element: Value) -> list[Value]:
    text = f"cannot convert dictionary update sequence element #{index} to a sequence"
    try:
        return space.unpack(element)
    except Raised as e:
        if not e.value.isa(TypeError):
            raise
        if not MERGING_ADDS_A_NOTE:
            raise space.error(TypeError, text) from None
        error = e if _is_iterable(space, element) else space.error(TypeError, "object is not iterable")
        space.call_method(error.value, "add_note", Constant(text.capitalize()))
        raise error from None


def _is_iterable(space: Space, element: Value) -> bool:
    try:
        space.iter(element)
    except Raised:
        return False
    return True
