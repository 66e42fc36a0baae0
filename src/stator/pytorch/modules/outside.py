"""What is done around the `forward` of a module and kept out of graphs: disabled hooks, as of `fully_shard`; DDP.

Around the compiled module itself it is ordinary Python, and `forward` is the graph, as where torch compiles a module.
For a module inside, what is disabled on both sides is one break, at its call.
"""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import TYPE_CHECKING

from stator.guards.raw import type_lookup
from stator.interp import policy
from stator.models.functions.function import refusal_of
from stator.pytorch import internals
from stator.space.facts import holds
from stator.space.signals import RunsAsItIs

if TYPE_CHECKING:
    from stator.models.containers.dict_ import DictValue
    from stator.pytorch.types import Host
    from stator.space.protocol import Refusal
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["kept_out", "runs_outside"]


def kept_out(space: Space, hooks: DictValue | None) -> Refusal | None:
    """The model of a hook that is kept out of graphs, if one of a module's is."""
    if hooks is None or hooks.source is None or space.trace.effects.is_mutated(hooks):
        return None
    found = holds(space, hooks, _are_kept_out, "has hooks that are kept out of graphs")
    return _refusal(hooks.host) if found else None


def _are_kept_out(hooks: Host) -> bool:
    return _refusal(hooks) is not None


def _refusal(hooks: Host) -> Refusal | None:
    """Of existing ones, which are not looked for by their keys: those are others in each module."""
    functions = (hook.__func__ if type(hook) is MethodType else hook for hook in hooks.values())
    models = (refusal_of(function) for function in functions if type(function) is FunctionType)
    return next((model for model in models if model is not None), None)


def runs_outside(space: Space, module: Value) -> None:
    """Around the compiled module itself nothing comes before it that could be traced: it is no break."""
    frame = space.trace.frame
    if frame.parent is None and frame.code is internals.module_wrapped_call.__code__:
        forward = type_lookup(module.cls, "forward")
        if type(forward) is FunctionType:
            policy.want(forward.__code__)
        raise RunsAsItIs
