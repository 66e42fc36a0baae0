"""Higher-order operators (`torch.cond`, `while_loop`, `scan`, `flex_attention` …): left to Python as a whole.

What the functions handed to such an operator capture is not among its arguments, and an operator that is called with a
traced inside would not see that it needs gradients. So one break surrounds the whole call, which runs as in eager: its
front function (`torch.cond`) calls `torch.compile` of its own accord, which then means torch's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator._core import CodePolicy, set_code_policy
from stator.interp import policy
from stator.pytorch import internals
from stator.space.protocol import INTERCEPTS, Handler
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from types import CodeType

    from stator.pytorch.types import Host, Operator
    from stator.space.space import Space

__all__ = ["install", "intercept"]

_ROOT = os.path.dirname(torch.__file__)
#: the operators and their front functions; each is one call of the program
_FOLDER = os.path.join(_ROOT, "_higher_order_ops", "")
#: a function marked by `nested_compile_region` is called as it is, by functions of this file
_REGIONS = os.path.join(_FOLDER, "invoke_subgraph.py")
#: front functions elsewhere
_FRONT = {(os.path.join(_ROOT, "nn", "attention", "flex_attention.py"), "flex_attention")}


def intercept(host: Host) -> Handler | None:
    """How a function of higher-order operators, or the call of one, is handled (see protocol.INTERCEPTS)."""
    code = host.__code__
    if code.co_filename == _REGIONS and not host.__qualname__.startswith("InvokeSubgraphHOP."):
        return _region if code.co_name == "invoke_subgraph_placeholder" else None
    if _runs_whole(code) or (code.co_name == "__call__" and host in _calls()):
        return _refusing(host)
    return None


def _runs_whole(code: CodeType) -> bool:
    """Whether nothing inside of a call of the code is traced (see policy.WHOLE)."""
    name = code.co_filename
    return (name.startswith(_FOLDER) and name != _REGIONS) or (name, code.co_name) in _FRONT


def _calls() -> Iterator[Any]:
    """What is executed when a higher-order operator is called, for each class of them."""
    classes = [internals.HigherOrderOperator]
    while classes:
        cls = classes.pop()
        yield cls.__call__
        classes += cls.__subclasses__()


def _refusing(host: Host) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        operator: Operator = space.identity(args[0].force()) if args and host.__name__ == "__call__" else None
        is_operator = isinstance(operator, internals.HigherOrderOperator)
        name = f"torch.ops.higher_order.{operator.name()}" if is_operator else _name(host)
        set_code_policy(host.__code__, CodePolicy.RUN_RECURSIVELY)
        raise Unsupported(errors.HigherOrderOperatorCall(name))

    return handler


def _name(host: Host) -> str:
    return "torch.cond" if host is torch.cond else f"{host.__module__}.{host.__qualname__}"


def _region(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The call of a function that is marked as a region of its own: in eager that is all."""
    return space.call(args[0], args[1:], kwargs)


def install() -> None:
    """Register the model, and tell the policy of the frame hook."""
    INTERCEPTS.append(intercept)
    policy.WHOLE.append(_runs_whole)
