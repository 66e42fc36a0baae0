"""`torch.utils.checkpoint.checkpoint`: the function is traced as a plain call, its nodes marked for recomputation.

Results, gradients and random numbers are those of eager, where the function runs a second time in the backward pass
with the random state of the first. What that second run would do besides (a counter, running statistics) would be lost:
a function that acts on anything is left to Python.
"""

from __future__ import annotations

import inspect
import itertools
from typing import TYPE_CHECKING, Any

import torch
import torch.utils.checkpoint as library

from stator import errors
from stator._core import CodePolicy, set_code_policy
from stator.pytorch import internals
from stator.pytorch.autograd import checkpoint_policy
from stator.pytorch.autograd.backward_graph import Witness
from stator.pytorch.autograd.checkpoint_policy import Policies, policies_of
from stator.pytorch.autograd.reentrant import run_reentrant, warn_if_lost
from stator.pytorch.autograd.sent_again import Checkpoints
from stator.pytorch.distributed.operators import is_message
from stator.pytorch.distributed.sending import computed_again, is_sent_again, results_in
from stator.pytorch.state.saved_hooks import SavedHooks
from stator.space.protocol import TRUE, register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch.fx

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Function
    from stator.space.space import Space

_checkpoint: Function = library.checkpoint
_original: Function = getattr(_checkpoint, "__wrapped__", _checkpoint)
_regions = itertools.count()
#: arguments of checkpoint itself, with the values that change nothing; None for any
_OWN: dict[str, tuple[object, ...] | None] = {
    "use_reentrant": (False, True),
    "context_fn": None,
    "determinism_check": None,
    "debug": (False,),
    "early_stop": None,
    "preserve_rng_state": (True, False),
}
#: options that change how often something is done, and what they are by default
_REAL: dict[str, Any] = {"preserve_rng_state": True, "determinism_check": "default", "early_stop": True}
if "respect_saved_tensors_hooks" in inspect.signature(_original).parameters:  # since torch 2.14
    _OWN["respect_saved_tensors_hooks"] = (None,)


def _handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`checkpoint(function, *args, use_reentrant=False, …)`."""
    own = {"use_reentrant": Constant(None)} | {name: value for name, value in kwargs.items() if name in _OWN}
    rest = {name: value for name, value in kwargs.items() if name not in _OWN}
    return _run(space, args, rest, own)


def _called_impl(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`_checkpoint_impl(function, args, kwargs, …)`, which a function decorated by `checkpoint()` calls."""
    if len(args) != 3:
        return None
    named = args[2].force().str_items(space)  # type: ignore[attr-defined]
    return _run(space, [args[0], *space.unpack(args[1])], named, kwargs)


def _run(space: Space, args: list[Value], kwargs: dict[str, Value], own: dict[str, Value]) -> Value:
    """A checkpoint of `args[0]`, called with the others; `own` are the options of the checkpoint."""
    for name, value in own.items():
        ordinary = _OWN[name]
        if ordinary is not None and not any(space.known(value.force()) is known for known in ordinary):
            raise _refusal(f"{name} is not {ordinary[0]!r}")
    if not args or internals.checkpoints_are_debugged():
        raise _refusal("it is called without a function or with debugging on")
    reentrant = space.known(own["use_reentrant"].force()) is True
    policies = _policies(space, own.get("context_fn"), reentrant)
    if reentrant:
        warn_if_lost(space, args[1:])
    recorder = space.trace.recorder
    before = _Acts(recorder)
    checkpoints = space.trace.extension(Checkpoints)
    begun = checkpoints.begin()
    if reentrant and kwargs:
        raise _refusal("it is reentrant, and has named arguments")
    with Witness(space, *args, *kwargs.values()) as witness:
        if reentrant:
            result = run_reentrant(space, args[0], args[1:])
        else:
            result = _run_plain(space, args, kwargs)
    if torch.is_grad_enabled() and (witness.acts or any(is_message(node.target) for node in _since(recorder, begun))):
        raise _refusal(_ACTS)
    before.refuse_others(draws=space.known(own.get("preserve_rng_state", TRUE).force()) is True)
    nodes = list(_since(recorder, begun))
    if is_sent_again(recorder, nodes):
        if reentrant or (policies is not None and not recorder.traces_backward):
            raise _refusal("its function communicates, which this kind of checkpoint does again as no graph does")
        if policies is None:
            options = {name: space.known(own.get(name, Constant(value)).force()) for name, value in _REAL.items()}
            results = results_in(space, result)
            again, why = computed_again(recorder, nodes, options, results)
            if why:
                raise _refusal(f"its function communicates, {why}")
            checkpoints.end(begun, options, nodes, results)
            nodes = again
    _mark(recorder, nodes, policies)
    before.refuse_others(draws=True)
    return result


def _run_plain(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The call of one that sets hooks on what is saved."""
    hooks = space.trace.extension(SavedHooks)
    if hooks.inside("transform"):
        raise _refusal("it sets hooks, in a transform that allows none")
    with hooks.entered("checkpoint"):
        return space.call(args[0], args[1:], kwargs)


_ACTS = "its function acts on objects or tensors outside of it"


class _Acts:
    """What a trace does besides computing, up to a point."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.before = self.now()

    def now(self) -> tuple[object, ...]:
        effects = self.recorder.effects
        return self.recorder.trace.effects.count, dict(effects.written), len(effects.drawing)

    def refuse_others(self, *, draws: bool) -> None:
        """Refuse what would be done twice; random draws are repeated, or must be the same (`draws`)."""
        *acts, drawn = self.now()
        if acts != list(self.before[:-1]):
            raise _refusal(_ACTS)
        if not draws and drawn != self.before[-1]:
            raise _refusal("its function draws other random numbers in the second run")


def _policies(space: Space, context_fn: Value | None, reentrant: bool) -> Policies | None:
    if context_fn is None or space.known(context_fn.force()) is library.noop_context_fn:
        return None
    found = None if reentrant else policies_of(space, context_fn.force())
    if found is None:
        raise _refusal("context_fn gives other contexts than those of a selective checkpoint")
    return found


def _mark(recorder: Recorder, nodes: list[torch.fx.Node], policies: Policies | None) -> None:
    """Ask the backend to recompute these, or to do what the policy says."""
    region = next(_regions)
    for node in nodes:
        if node.op != "placeholder" and "recompute" not in node.meta:
            operation = recorder.nodes.operations.get(node)
            policy = None if policies is None or operation is None else policies.of(operation)
            node.meta["recompute"] = policy or library.CheckpointPolicy.PREFER_RECOMPUTE
            node.meta["ac_graph_id"] = region


def _since(recorder: Recorder, last: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """What was recorded after a node."""
    node, end = last.next, internals.root(recorder.nodes.graph)
    while node is not end:
        yield node
        node = node.next


def _refusal(why: str) -> Unsupported:
    return Unsupported(errors.UnsupportedTensorOperation("torch.utils.checkpoint.checkpoint", why))


def install() -> None:
    """Register the models."""
    checkpoint_policy.install()
    register(_original, _handler)
    register(_checkpoint, _handler)
    # Left to Python, the first run must save the same tensors as the second, which no hook sees.
    set_code_policy(_original.__code__, CodePolicy.RUN_RECURSIVELY)
    impl = internals.checkpoint_impl()
    if impl is not None:
        register(impl, _called_impl)
        set_code_policy(impl.__code__, CodePolicy.RUN_RECURSIVELY)
