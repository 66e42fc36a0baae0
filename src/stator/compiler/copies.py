"""Copying and pickling what `compile()` has made: what comes of it is compiled alike, with caches of its own."""

from __future__ import annotations

import copy
import functools
import sys
from typing import TYPE_CHECKING

from stator._core import Compiled
from stator.space.host_types import Host

if TYPE_CHECKING:
    from stator.compiler.region import CompileRegion

__all__ = ["Compiling", "copied", "deep_copied", "reduced", "reduced_to"]


def copied(compiled: Host) -> Host:
    """`copy.copy(compiled)`"""
    return _with_attributes(_again(compiled, compiled.__wrapped__), compiled.__dict__)


def deep_copied(compiled: Host, memo: dict[int, Host]) -> Host:
    """`copy.deepcopy(compiled)`: functions are never copied, but the objects of bound methods are."""
    function = copy.deepcopy(compiled.__wrapped__, memo)
    made = memo.get(id(compiled))  # the object may refer to its compiled method
    if made is None:
        made = memo[id(compiled)] = _again(compiled, function)
        _with_attributes(made, copy.deepcopy(_attributes(compiled.__dict__), memo))
    return made


def reduced(compiled: Host, protocol: Host) -> Host:
    """`compiled.__reduce_ex__(protocol)`"""
    name = compiled.__dict__.get("__qualname__")
    if _found(compiled.__dict__.get("__module__"), name) is compiled:
        return name
    return (*reduced_to(compiled.__wrapped__, compiled.region.owner), _attributes(compiled.__dict__))


def _found(module: Host, name: Host) -> Host:
    """What a module has by a name, which may be a path through classes."""
    if not isinstance(name, str) or "<locals>" in name:
        return None
    return functools.reduce(lambda at, part: getattr(at, part, None), name.split("."), sys.modules.get(module))


class Compiling:
    """Compiles functions as one `compile()` call would, into its caches: torch's `compiled_module.dynamo_ctx`.

    >>> model.training_step = compiled.dynamo_ctx(model.training_step)
    """

    def __init__(self, compile_region: CompileRegion) -> None:
        self._compile_region = compile_region

    def __call__(self, function: Host) -> Host:
        made = Compiled(function, self._compile_region.region)
        made.__dict__["_stator_region"] = self._compile_region
        return made

    def __deepcopy__(self, memo: dict[int, Host]) -> Compiling:
        return Compiling(self._compile_region.copy())

    def __reduce__(self) -> tuple[Host, ...]:
        remake, (_, *settings) = reduced_to(None, self._compile_region)
        return _compiling, (remake, *settings)


def _compiling(remake: Host, *settings: Host) -> Compiling:
    return Compiling(remake(_nothing, *settings).region.owner)


def _nothing() -> None:
    """What is compiled for its settings alone."""


def reduced_to(model: Host, compile_region: CompileRegion) -> tuple[Host, ...]:
    """How pickle makes it again: the function or module, compiled with these settings."""
    return compile_region.remake, (model, compile_region.own_config, compile_region.asked, compile_region.settings())


def _again(compiled: Host, function: Host) -> Host:
    return Compiling(compiled.region.owner.copy())(function)


def _attributes(own: dict[str, Host]) -> dict[str, Host]:
    """What a compiled callable's dict holds but its caches."""
    return {key: value for key, value in own.items() if key != "_stator_region"}


def _with_attributes(made: Host, own: dict[str, Host]) -> Host:
    made.__dict__.update(_attributes(own))
    return made
