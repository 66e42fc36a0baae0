"""`torch.utils.checkpoint.checkpoint`: the function is traced as a plain call, its nodes marked for recomputation.

Results, gradients and random numbers are those of eager, where the function runs a second time in the backward pass
with the random state of the first. What that second run would do besides (a counter, running statistics) would be lost:
a function that acts on anything is left to Python.
"""

from __future__ import annotations

import inspect
import itertools
from typing import TYPE_CHECKING

import torch.utils.checkpoint as library

from stator import errors
from stator._core import CodePolicy, set_code_policy
from stator.pytorch import internals
from stator.space.protocol import register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    import torch
    import torch.fx

    from stator.pytorch.types import Function
    from stator.space.space import Space

_checkpoint: Function = library.checkpoint
_original: Function = getattr(_checkpoint, "__wrapped__", _checkpoint)
_regions = itertools.count()
#: arguments of checkpoint itself, with the values that change nothing; None for any
_OWN: dict[str, tuple[object, ...] | None] = {
    "use_reentrant": (False,),
    "context_fn": (library.noop_context_fn,),
    "determinism_check": None,
    "debug": (False,),
    "early_stop": None,
    "preserve_rng_state": (True,),
}
if "respect_saved_tensors_hooks" in inspect.signature(_original).parameters:  # since torch 2.14
    _OWN["respect_saved_tensors_hooks"] = (None,)


def _handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`checkpoint(function, *args, use_reentrant=False, …)`."""
    own = {"use_reentrant": Constant(None)} | {name: value for name, value in kwargs.items() if name in _OWN}
    for name, value in own.items():
        ordinary = _OWN[name]
        if ordinary is not None and not any(space.known(value.force()) is known for known in ordinary):
            raise _refusal(f"{name} is not {ordinary[0]!r}")
    if not args or internals.checkpoints_are_debugged():
        raise _refusal("it is called without a function or with debugging on")
    recorder, effects = space.trace.recorder, space.trace.effects
    changes, written, last = effects.count, dict(recorder.effects.written), internals.root(recorder.nodes.graph).prev
    rest = {name: value for name, value in kwargs.items() if name not in _OWN}
    result = space.call(args[0], args[1:], rest)
    if effects.count != changes or recorder.effects.written != written:
        raise _refusal("its function acts on objects or tensors outside of it")
    _mark(recorder.nodes.graph, last)
    return result


def _mark(graph: torch.fx.Graph, last: torch.fx.Node) -> None:
    """Ask the backend to recompute what was recorded after a node."""
    region = next(_regions)
    node = last.next
    while node is not internals.root(graph):
        if node.op != "placeholder" and "recompute" not in node.meta:
            node.meta["recompute"] = library.CheckpointPolicy.PREFER_RECOMPUTE
            node.meta["ac_graph_id"] = region
        node = node.next


def _refusal(why: str) -> Unsupported:
    return Unsupported(errors.UnsupportedTensorOperation("torch.utils.checkpoint.checkpoint", why))


def install() -> None:
    """Register the model."""
    register(_original, _handler)
    register(_checkpoint, _handler)
    # Left to Python, the first run must save the same tensors as the second, which no hook sees.
    set_code_policy(_original.__code__, CodePolicy.RUN_RECURSIVELY)
