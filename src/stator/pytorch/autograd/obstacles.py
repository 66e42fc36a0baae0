"""Why a graph cannot run the autograd engine: gradients go on outside of it, or somebody sees them on their way."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

import torch

from stator.bytecode.continuation import entered_at
from stator.bytecode.decode import argument_count
from stator.guards.guard import GlobalState
from stator.guards.source import LocalSource
from stator.interp.break_report import break_before
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
        return f"{recorder.tracked.scattered} before, so that gradients come from several places"
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
        return _from_before(recorder)
    recorder.trace.guard(GlobalState(is_engine_unwatched, "nobody sees the autograd engine at work"))
    for leaf in leaves:
        rely_on_leaf(leaf)
    return ""


def _only_mapped(recorder: Recorder) -> bool:
    """Whether the functions that are being traced are all mapped, and no more: `vmap` of vector times Jacobian."""
    return recorder.trace.extension(SavedHooks).depth("vmap") == len(recorder.nodes.around)


def _from_before(recorder: Recorder) -> str:
    """That autograd has operations before the trace for tensors: which, and behind which break the trace goes on."""
    existing = [value for value in recorder.tracked.existing if value.requires_grad]
    found = [value for value in existing if value.meta is None or not value.meta.is_leaf]
    brk = break_before(recorder.trace.root.code)
    before = f" the break at {os.path.basename(brk[1])} ({brk[0]})" if brk and any(map(_is_made_inside, found)) else ""
    return f"gradients go on into what was computed before{before}: {', '.join(map(name_of, found[:3]))}"


def _is_made_inside(value: TracedTensor) -> bool:
    """Whether a frame that is gone on with has it, and was not given it when it was called."""
    if value.source is None:
        return False
    *_, held = value.source.chain()
    entered = entered_at(value.recorder.trace.root.code)
    given = () if entered is None else entered[0].co_varnames[: argument_count(entered[0])]
    return isinstance(held, LocalSource) and held.name not in given


def name_of(value: TracedTensor) -> str:
    """How the program calls an existing tensor."""
    return "a tensor" if value.source is None else value.recorder.trace.root.names.of(value.source)
