"""`torch.compiler.config.dynamic_sources` and its like: the names of sources whose sizes or ints are symbols, or not.

A program writes names as torch does: `L['x']` for an argument, `L['self']._modules['linear']` for a part of one.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from stator.guards.source import CellSource, DictItemSource, GlobalSource, ItemSource, LocalSource, Source
from stator.pytorch import internals

if TYPE_CHECKING:
    from stator.space.interfaces import Trace

__all__ = ["is_told_of", "parameter_of", "told_dynamic"]


def is_told_of(trace: Trace) -> bool:
    """Whether any such option is set."""
    config = trace.config
    return bool(config.static_sources or config.dynamic_sources or config.unbacked_sources or config.dynamic_values)


def told_dynamic(
    trace: Trace, source: Source, number: int, dim: int | None = None, by_value: bool = True
) -> bool | None:
    """Whether an int, or the size of a tensor's dimension, is to be a symbol; None where nothing is said of it.

    Args:
        trace: whose settings count.
        source: of the int, or of the tensor.
        number: what it is now.
        dim: the dimension.
        by_value: whether `dynamic_values` are heeded.
    """
    config = trace.config
    name = _torchs_name(trace, source)
    if _is_among(config.static_sources, name, dim):
        return False
    if _is_among(config.dynamic_sources, name, dim) or _is_among(config.unbacked_sources, name, dim):
        return True
    return True if by_value and number in _numbers(config.dynamic_values) else None


def _is_among(entries: str, name: str, dim: int | None) -> bool:
    return any(
        (pattern == name or _matches(pattern, name)) and (dim is None or only is None or only == dim)
        for pattern, only in _parsed(entries)
    )


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.match(pattern, name) is not None
    except re.error:  # a name need not be a regular expression
        return False


@functools.lru_cache
def _parsed(entries: str) -> tuple[tuple[str, int | None], ...]:
    """Names or regular expressions, each with the dimension that it is about, if it is about one."""
    found: list[tuple[str, int | None]] = []
    for entry in filter(None, entries.replace(" ", "").split(",")):
        match = re.fullmatch(r"(.+):(\d+)", entry)
        found.append((match[1], int(match[2])) if match else (entry, None))
    return tuple(found)


@functools.lru_cache
def _numbers(entries: str) -> frozenset[int]:
    return frozenset(int(entry) for entry in entries.replace(" ", "").split(",") if entry)


def _torchs_name(trace: Trace, source: Source) -> str:
    """The name that torch gives to a source: as ours, but for where it begins."""
    parameter = parameter_of(trace, source)
    if parameter is not None:
        return f"L[{parameter!r}]"
    if isinstance(source, GlobalSource):
        return f"G[{source.name!r}]"
    base = source.base
    if base is None:
        return source.expr()
    return _torchs_name(trace, base) + source.expr().removeprefix(base.expr())


def parameter_of(trace: Trace, source: Source) -> str | None:
    """The local variable that a source is; None for others.

    Of a module the first frame is that of its `__call__`, and torch's that of `forward`: the names are those of its
    parameters.
    """
    if isinstance(source, LocalSource | CellSource):
        return source.name
    base = source.base
    if trace.root.code is not internals.module_wrapped_call.__code__ or not isinstance(base, LocalSource):
        return None
    if isinstance(source, DictItemSource) and base.name == "kwargs":
        return str(source.key)
    code = getattr(getattr(type(trace.root.args[0]), "forward", None), "__code__", None)
    if not isinstance(source, ItemSource) or base.name != "args" or code is None:
        return None
    place = source.index + 1  # after `self`
    return code.co_varnames[place] if place < code.co_argcount else None
