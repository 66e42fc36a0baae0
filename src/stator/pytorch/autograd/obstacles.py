"""Why a graph cannot run the autograd engine: gradients go on outside of it, or somebody sees them on their way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.guards.guard import GlobalState
from stator.pytorch.autograd.history import leaves_reached
from stator.pytorch.autograd.onlookers import is_engine_unwatched, who_watches_the_engine
from stator.pytorch.state.saved_hooks import SavedHooks
from stator.pytorch.tensors.latent import rely_on_leaf

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.tensors.tensor import TensorValue
    from stator.pytorch.traced import TracedTensor

__all__ = ["in_the_way", "name_of"]


def in_the_way(recorder: Recorder, ends: list[TensorValue], until: list[TensorValue]) -> str:
    """What is in the way of gradients of `ends` up to `until` and to leaves; nothing, if the text is empty."""
    if not recorder.trace.config.trace_backward:
        return "stator.config.trace_backward is off"
    if recorder.nodes.graph is not recorder.nodes.whole and not _only_mapped(recorder):
        return "it is called in a function that an operation of the graph runs"
    if recorder.tracked.scattered:
        return "the data of a leaf was exchanged before, so that its gradient comes from several places"
    if recorder.tracked.hooked:
        return "a hook that was registered before waits for gradients"
    recorder.state.rely(("anomaly",))
    if torch.is_anomaly_enabled():  # now: the program may have switched it
        return "anomaly detection looks at what it computes"
    onlooker = who_watches_the_engine()
    if onlooker:
        return onlooker
    leaves = leaves_reached(recorder, [t.fake for t in ends], [t.fake for t in until])
    if leaves is None:
        return f"gradients go on into what was computed before: {_from_before(recorder)}"
    recorder.trace.guard(GlobalState(is_engine_unwatched, "nobody sees the autograd engine at work"))
    for leaf in leaves:
        rely_on_leaf(leaf)
    return ""


def _only_mapped(recorder: Recorder) -> bool:
    """Whether the functions that are being traced are all mapped, and no more: `vmap` of vector times Jacobian."""
    return recorder.trace.extension(SavedHooks).depth("vmap") == len(recorder.nodes.around)


def _from_before(recorder: Recorder) -> str:
    """The names of the tensors which autograd has operations before the trace for."""
    existing = [value for value in recorder.tracked.existing if value.requires_grad]
    found = [name_of(value) for value in existing if value.meta is None or not value.meta.is_leaf]
    return ", ".join(found[:3])


def name_of(value: TracedTensor) -> str:
    """How the program calls an existing tensor."""
    return "a tensor" if value.source is None else value.recorder.trace.root.names.of(value.source)
