"""What compile() calls with equal settings share: the entries that fit, and what traces have learnt of a code object.

So 48 equal layers that are compiled one by one are one trace: the second one's first call finds the first one's entry.

    for layer in model.layers:
        layer.compile(backend="inductor")

Each call keeps its own cache, in which it looks first, and its own limits: none can use up another's.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from types import CodeType, MethodType
from typing import TYPE_CHECKING, Any

from stator.bytecode.by_code import ByCode
from stator.bytecode.continuation import unvaried
from stator.compiler import kept

if TYPE_CHECKING:
    from stator._core import Entry
    from stator.compiler.region import Asked, CompileRegion
    from stator.config import Config
    from stator.space.host_types import Host

#: the pools of the compile regions alive, by their settings
_POOLS: weakref.WeakValueDictionary[Hashable, Pool] = weakref.WeakValueDictionary()


class Pool:
    """The compile regions of one kind, or a single one that keeps to itself.

    Args:
        isolated: there is to be one compile region only.
    """

    def __init__(self, *, isolated: bool = False) -> None:
        self.isolated = isolated
        self._regions: weakref.WeakSet[CompileRegion] = weakref.WeakSet()
        self._states = ByCode[dict[object, Any]]()
        #: what traces of any code leave for those of others
        self.shared_state: dict[object, Any] = {}

    def join(self, compile_region: CompileRegion) -> None:
        """One more compile region is of this kind."""
        self._regions.add(compile_region)

    def keep(self, compile_region: CompileRegion) -> None:
        """Others may use an entry of the compile region, when what compile() gave has gone too."""
        if not self.isolated:
            kept.keep(compile_region)

    def state_of(self, code: CodeType) -> dict[object, Any]:
        """What earlier traces of this code left for the next (which sizes vary …)."""
        return self._states.of(unvaried(code), lambda code: {})

    def forget(self) -> None:
        """Forget what traces have learnt."""
        self._states.clear()
        self.shared_state.clear()

    def entry_for(
        self, code: CodeType, function: Host, args: list[Host], config: Config, *, beside: CompileRegion
    ) -> Entry | None:
        """An entry of another compile region that is for this call too, and was made under these very settings: torch's
        own, which are among them, may have been others."""
        tried = set(beside.region.entries(code))
        for other in list(self._regions):
            for entry in reversed(other.region.entries(code)):
                if entry not in tried and fits(entry, function, args, config):
                    self.keep(other)
                    return entry
                tried.add(entry)
        return None


def fits(entry: Entry, function: Host, args: list[Host], config: Config) -> bool:
    """Whether an entry is for this call, and was made under these very settings."""
    return _is_for(entry, config) and _passes(entry, function, args)


def pool_of(
    config: Config, asked: Asked, *, fullgraph: bool, dynamic: Host, given: frozenset[str], backend: Host
) -> Pool:
    """The pool of compile regions with these settings; one of its own where settings can't be compared."""
    name, mode, options = asked
    wanted = backend if isinstance(name, str) else _identity(name)
    try:
        key = (config, wanted, mode, frozenset(options.items()), fullgraph, dynamic, given)
        pool = _POOLS.get(key)
    except TypeError:  # an option that is a list, say
        return Pool(isolated=True)
    if pool is None:
        pool = _POOLS[key] = Pool()
    return pool


def forget_all() -> None:
    """Forget what the traces of all compile regions have learnt, and those whose compile() call has ended."""
    kept.forget()
    for pool in list(_POOLS.values()):
        pool.forget()


def _identity(backend: Host) -> Hashable:
    """A backend that is no name. Two that are equal by a comparison of their own may still differ."""
    if isinstance(backend, MethodType):
        return id(backend.__self__), id(backend.__func__)
    return id(backend)


def _is_for(entry: Entry, config: Config) -> bool:
    return entry.target is not None and bool(entry.owner.config == config)


def _passes(entry: Entry, function: Host, args: list[Host]) -> bool:
    if entry.prologue is not None:
        try:
            entry.prologue()
        except Exception:
            return False
    return isinstance(entry.program.run(function, tuple(args)), tuple)
