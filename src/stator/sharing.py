"""What one `compile()` call has compiled serves others with the same settings, where its guards hold.

Libraries compile each block of a model by a `compile()` call of its own (`module.compile()` of every layer, regional
compilation), so that layers alike are compiled once. Each call keeps its own entries, limits and memory of what varies;
but before a frame is traced, the entries that other calls have for its code are asked.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from stator._core import Entry
from stator.guards.program import compile_guards
from stator.region import BUCKETS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    from stator.config import Config
    from stator.region import Bucket

__all__ = ["shared_entry"]

_PLAIN = (bool, int, float, str, type(None))


def shared_entry(bucket: Bucket, config: Config, function: Any, code: CodeType, args: list[Any]) -> Entry | None:
    """An entry for the frame made of another bucket's, which is now in this one; None if no other has one that fits."""
    have = bucket.region.entries(code)
    if len(have) >= config.recompile_limit or bucket.runs_eagerly(code):
        return None
    asked = {id(entry.owner) for entry in have}
    for other in list(BUCKETS):
        if other is bucket or not _alike(bucket, other):
            continue
        for entry in _whole(other, code, config):
            if id(entry.owner) in asked:
                continue
            asked.add(id(entry.owner))
            if entry.program.check(function, args):  # type: ignore[attr-defined]
                return _adopt(bucket, other, code, entry)
    return None


def _whole(bucket: Bucket, code: CodeType, config: Config) -> Iterator[Entry]:
    """The entries of the code, made under these settings, that run to its end: after a break, their bucket goes on."""
    for entry in reversed(bucket.region.entries(code)):
        if entry.target is not None and entry.owner is not None and entry.owner.whole_under == config:
            yield entry


def _adopt(bucket: Bucket, other: Bucket, code: CodeType, entry: Entry) -> Entry:
    # A program of its own: what a program remembers of the objects it has passed is of one module.
    program: Any = entry.program
    own = Entry(compile_guards(program.guards, program.outputs), entry.target, entry.owner)
    own.depth, own.drops_arguments = entry.depth, entry.drops_arguments
    state = bucket.state_of(code)
    for name, known in other.state_of(code).items():
        state.setdefault(name, copy.copy(known))
    bucket.add(code, own)
    return own


def _alike(bucket: Bucket, other: Bucket) -> bool:
    """Whether both were asked for the same."""
    return (
        (bucket.fullgraph, bucket.dynamic, bucket.is_first) == (other.fullgraph, other.dynamic, other.is_first)
        and (bucket.own_config, bucket.given) == (other.own_config, other.given)
        and _same_backend(bucket, other)
    )


def _same_backend(bucket: Bucket, other: Bucket) -> bool:
    if bucket.backend is other.backend:
        return True
    (name, mode, options), (others_name, others_mode, others_options) = bucket.asked, other.asked
    return (
        type(name) is type(others_name) is str
        and (name, mode) == (others_name, others_mode)
        and options.keys() == others_options.keys()
        and all(_equal(value, others_options[key]) for key, value in options.items())
    )


def _equal(value: Any, other: Any) -> bool:
    return type(value) in _PLAIN and type(value) is type(other) and bool(value == other)
