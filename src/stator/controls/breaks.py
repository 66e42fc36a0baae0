"""`torch._dynamo.error_on_graph_break`: whether a graph may break here, as the traced program has said so far."""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any, Protocol

__all__ = ["break_is_error"]

_FLAG = "_error_on_graph_break"


class Trace(Protocol):
    """What is asked of a trace."""

    traced_codes: dict[int, CodeType]
    space: Any

    def globals_of(self, host: dict[str, Any]) -> Any:
        """The value of a module's globals."""


def break_is_error(trace: Trace) -> bool:
    """Whether a break of this trace is to raise. As in torch, nothing guards that."""
    utils: Any = sys.modules.get("torch._dynamo.utils")
    setter = getattr(utils, "_set" + _FLAG, None)
    if setter is None:
        return False
    if id(setter.__code__) not in trace.traced_codes:
        return bool(getattr(utils, _FLAG, False))
    value = trace.globals_of(vars(utils)).get_str(trace.space, _FLAG)
    return value is not None and bool(trace.space.known(value))
