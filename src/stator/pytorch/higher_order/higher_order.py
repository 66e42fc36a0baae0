"""Higher-order operators (`torch.cond`, `scan`, `flex_attention` …): each has a file in `operators`, named as it is.

torch wraps most of them in a Python function (`torch.cond`, the front), which checks and flattens what it is given. It
is traced like any other, and told that a compiler is at work (`is_compiling`), so that it calls the operator itself.
An operator without a file is one break with its name.

Where anything inside of the call breaks, the break is that of the whole call: the operator would see the functions run
with a traced inside, and not that they need gradients. The call then runs as in eager, nothing inside of it traced; its
front calls `torch.compile` of its own accord, which then means torch's own.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from stator.interp import policy
from stator.pytorch import internals
from stator.pytorch.graph.regions import Regions
from stator.pytorch.higher_order.body import breaks_of, refusal, whole
from stator.pytorch.shapes.symbols import decide
from stator.pytorch.whole_calls import public_name, traced_or_whole
from stator.space.protocol import INTERCEPTS, NONE, Handler
from stator.space.value import Value

if TYPE_CHECKING:
    from types import CodeType

    from stator.pytorch.types import Host, Operator
    from stator.space.space import Space

__all__ = ["install", "intercept", "model_of"]

_ROOT = os.path.dirname(torch.__file__)
#: the operators and their fronts; each is one call of the program
_FOLDER = os.path.join(_ROOT, "_higher_order_ops", "")
#: a function marked by `nested_compile_region` is called as it is, by functions of this file
_REGIONS = os.path.join(_FOLDER, "invoke_subgraph.py")
#: fronts elsewhere
_FLEX = os.path.join(_ROOT, "nn", "attention", "flex_attention.py")
_FRONT = {(_FLEX, "flex_attention"), (_FLEX, "create_mask")}
#: by which a front, told that a compiler is at work, tells it which sizes are to be numbers
_MARK = os.path.join(_ROOT, "_dynamo", "decorators.py"), "mark_static"

#: where the models of operators are
_MODELS = "stator.pytorch.higher_order.operators"


@functools.cache
def model_of(name: str) -> Callable[[Space, Operator, list[Value], dict[str, Value]], Value] | None:
    """The model of the operator that torch has registered under this name: `trace` of the file so named."""
    if importlib.util.find_spec(f"{_MODELS}.{name}") is None:
        return None
    # What programs without such an operator never need is not imported before one is met.
    found: Any = importlib.import_module(f"{_MODELS}.{name}")
    return found.trace


def intercept(host: Host) -> Handler | None:
    """How a function of higher-order operators, or the call of one, is handled (see protocol.INTERCEPTS)."""
    code = host.__code__
    if code.co_name == "__call__" and any(host is call for call in _calls()):
        return _called_operator(host)
    if code.co_filename == _REGIONS:
        return _region if code.co_name == "invoke_subgraph_placeholder" else None
    if (code.co_filename, code.co_name) == _MARK:
        return _marked
    return traced_or_whole(host, breaks_of(public_name(host)), _runs_whole) if _runs_whole(code) else None


def _marked(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The mark of a size by a front, which makes none in eager."""
    if not _runs_whole(space.trace.frame.code) or len(args) != 2 or kwargs:
        return None
    size = space.getitem(space.getattr(args[0].force(), "shape"), args[1])
    if size.symbolic:
        decide(space.trace, size)
    return NONE


def _runs_whole(code: CodeType) -> bool:
    """Whether nothing inside of a call of the code is traced after a break (see policy.WHOLE)."""
    name = code.co_filename
    return (name.startswith(_FOLDER) and name != _REGIONS) or (name, code.co_name) in _FRONT


def _calls() -> Iterator[Any]:
    """What is executed when a higher-order operator is called, for each class of them."""
    classes = [internals.HigherOrderOperator]
    while classes:
        cls = classes.pop()
        yield cls.__call__
        classes += cls.__subclasses__()


def _called_operator(host: Host) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        called: Operator = space.identity(args[0].force()) if args else None
        if not isinstance(called, internals.HigherOrderOperator):
            raise refusal(public_name(host), "it is called without an operator")
        name = f"torch.ops.higher_order.{called.name()}"
        model = model_of(called.name())
        with whole(host, name):
            if model is None:
                raise refusal(name, "it has no model")
            return model(space, called, args[1:], kwargs)

    return handler


def _region(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The call of a function that is marked as a region of its own."""
    options = space.getattr(args[0].force(), "__marked_compile_region_config__").force()
    if options.source is not None:
        space.guard_identity(options)
    with space.trace.extension(Regions).call(space.identity(options)):
        return space.call(args[0], args[1:], kwargs)


def install() -> None:
    """Register the models, and tell the policy of the frame hook."""
    INTERCEPTS.append(intercept)
    policy.WHOLE.append(_runs_whole)
