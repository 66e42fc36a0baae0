"""Sorting: CPython's own `list.sort` decides which items to compare, the traced program decides how they compare."""

from __future__ import annotations

from stator.models.numbers.advice import FOR_ORDER, advising
from stator.space.host_types import Host
from stator.space.space import Space
from stator.space.value import NotKnown, Raised, Unsupported, Value

__all__ = ["sorted_items"]

_PLAIN = frozenset({int, float, bool, str, bytes})


class _Key:
    """A sort key whose `<` is that of the traced program."""

    __slots__ = ("space", "value")

    def __init__(self, space: Space, value: Value) -> None:
        self.space = space
        self.value = value

    def __lt__(self, other: _Key) -> bool:
        with advising(FOR_ORDER):
            return self.space.truth(self.space.compare("<", self.value, other.value))


def sorted_items(space: Space, items: list[Value], key: Value, backwards: bool, result: list[Value]) -> None:
    """Put `items` into `result` in order; after an exception they are there as far sorted as CPython leaves them."""
    keys = items if space.known(key) is None else [space.call(key, [item], {}) for item in items]
    order = list(range(len(items)))
    try:
        hosts = _plain_hosts(space, keys)
        order.sort(
            key=[_Key(space, k) for k in keys].__getitem__ if hosts is None else hosts.__getitem__, reverse=backwards
        )
    except (Raised, Unsupported):
        raise
    except TypeError as e:  # known keys that do not compare
        raise Raised(space.exception(e)) from None
    finally:
        result[:] = [items[i] for i in order]


def _plain_hosts(space: Space, keys: list[Value]) -> list[Host] | None:
    """The host objects of the keys, if CPython compares them without running code of the program."""
    try:
        hosts = [key.force().as_host(space) for key in keys if not key.force().symbolic]
    except NotKnown:
        return None
    return hosts if len(hosts) == len(keys) and all(map(_plain, hosts)) else None


def _plain(host: Host) -> bool:
    return type(host) in _PLAIN or (type(host) is tuple and all(map(_plain, host)))
