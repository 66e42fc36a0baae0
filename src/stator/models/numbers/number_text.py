"""The text of a number that is known when the graph has run, which waits for it: `f"{loss.item():.3f}"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator.space.deferred import DeferredNumber, DeferredStr
from stator.space.protocol import CALL_HOOKS
from stator.space.value import Raised

if TYPE_CHECKING:
    from collections.abc import Callable

    from stator.space.host_types import Host
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["METHODS", "shown_later", "shows_any"]

#: the methods of numbers that show them, by their ids, with what they come down to
METHODS: dict[int, Callable[..., str]] = {
    id(vars(cls)[f"__{function.__name__}__"]): function for cls in (int, float) for function in (format, repr)
}


def shown_later(space: Space, function: Callable[..., str], values: list[Value]) -> Value | None:
    """`function(number, *options)`; None where it may fail, or options are not known."""
    number, *options = values
    if not all(option.constant for option in options):
        return None
    sample: Any = number.cls(1)
    return DeferredStr([(function, values)]) if shows_any(space, function, sample, options) else None


def shows_any(space: Space, function: Callable[..., str], sample: Host, options: list[Value]) -> bool:
    """Whether `function(number, *options)` gives a text for all numbers if it does for one. Raises what it raises."""
    hosts = [option.as_host(space) for option in options]
    if hosts and str(hosts[0]).endswith("c"):
        return False  # a character, which not every number is
    try:
        function(sample, *hosts)
    except Exception as e:
        raise Raised(space.exception(e)) from None
    return True


def _show(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A method that shows a number (see protocol.CALL_HOOKS)."""
    function = METHODS.get(id(host))
    if function is None or not args or not isinstance(args[0].force(), DeferredNumber):
        return None
    return shown_later(space, function, [arg.force() for arg in args])


CALL_HOOKS.insert(0, _show)
