"""`torch._dynamo.error_on_graph_break`: whether a graph may break here, as the traced program has said so far."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

__all__ = ["break_is_error"]

_FLAG = "_error_on_graph_break"


def break_is_error(traced: Mapping[int, CodeType], left: Callable[[dict[str, Any], str], object]) -> bool:
    """Whether a break is to raise. As in torch, nothing guards that.

    Args:
        traced: the code that has been traced, by id.
        left: what the traced program has left in a global, by its namespace and name.
    """
    utils: Any = sys.modules.get("torch._dynamo.utils")
    setter = getattr(utils, "_set" + _FLAG, None)
    if setter is None:
        return False
    if id(setter.__code__) not in traced:
        return bool(getattr(utils, _FLAG, False))
    return bool(left(vars(utils), _FLAG))
