"""What AOTAutograd and Inductor expect of their front end, around one call of a backend.

They look for a TracingContext with a fresh fake tensor mode on the trace's ShapeEnv, for the symbolic context and the
origin of every input, and for marks on the graph module; in return they leave guards in the context. What is expensive
to make waits until it is looked for (tracing_context).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import torch

from stator.guards.base import Guard
from stator.guards.guard import Predicate
from stator.guards.source import AttrSource, DictItemSource
from stator.host.collector import running
from stator.host.turns import LONGEST_WAIT, handed_over
from stator.pytorch import internals
from stator.pytorch.backend_call.tracing_context import Context, name_later
from stator.pytorch.shapes.unbacked import new_env
from stator.pytorch.tensors.classes import holds_opaque
from stator.pytorch.tensors.lowering import OPAQUE

if TYPE_CHECKING:
    import torch.fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.guards.source import Source
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedValue
    from stator.pytorch.types import Function

__all__ = ["Inputs", "backend_guards", "calling", "in_context", "marks_of"]

#: the inputs of a graph, each a node with what it stands for
Inputs: TypeAlias = "list[tuple[torch.fx.Node, TracedValue]]"
_frames = itertools.count()


@contextlib.contextmanager
def in_context(recorder: Recorder, gm: torch.fx.GraphModule, inputs: Inputs) -> Iterator[Context]:
    """The environment of a backend's call. Yields the TracingContext.

    Args:
        inputs: each input of the graph: its node, and the value that it stands for. One that is no input of the trace
            is what an earlier piece of its graph has computed.
    """
    shapes = recorder.shapes
    compile_id = internals.CompileId(frame_id=next(_frames), frame_compile_id=0)
    gm.meta["dynamo_compile_id"] = compile_id
    internals.begin_origins(gm)
    with contextlib.ExitStack() as settings:

        def env() -> ShapeEnv:
            settings.enter_context(_as_for_backends(shapes.env))
            return shapes.env

        context = Context((lambda: shapes.env) if shapes.begun else env)
        if shapes.begun:
            env()  # it is in use, and has the settings of a backend from the start
        for node, value in inputs:
            if value.node.op != "placeholder":
                internals.note_origin(node, None)
                continue
            name_later(node, shapes.origin_maker(value))
            if value.host is not None and isinstance(value.host, torch.Tensor):
                context.about(value.host, shapes.context_maker(value))
                node.meta["tensor_dict"] = marks_of(value.host, value.source)
        _forget_equal_objects(inputs)
        try:
            with context.at_work(), internals.compile_context(internals.CompileContext(compile_id)), running():
                yield context
        finally:
            _forget_equal_objects(inputs)
            context.outlive(functools.partial(new_env, shapes.may_be_new))


def _forget_equal_objects(inputs: Inputs) -> None:
    """torch remembers how results of wrappers are placed, with the opaque object (a mesh) that it has met first.

    AOTAutograd finds no other than those of the graph's inputs, and puts stand-ins for them, equal ones, into wrappers.
    """
    if any(value.cls in OPAQUE or holds_opaque(value.cls) for _, value in inputs):
        internals.forget_placements()


@contextlib.contextmanager
def calling(backend: Function) -> Iterator[None]:
    """In which it may leave behind another way of dispatching, as a backend that fails does.

    One of torch's is alone in the process: another thread may be in a backward pass, which Inductor compiles under the
    lock of torch's tracer. One of the program's may wait for threads that compile, so they are let in.
    """
    around = _tracers_lock() if _is_torchs(backend) else handed_over()
    with around, internals.PreserveDispatchKeyGuard():
        yield


def _is_torchs(backend: Function) -> bool:
    asked = getattr(backend, "backend", backend)  # with options
    return str(getattr(asked, "__module__", "")).partition(".")[0] in ("stator", "torch")


@contextlib.contextmanager
def _tracers_lock() -> Iterator[None]:
    """Where torch's tracer is loaded, under its lock; as with turns, nobody waits for ever."""
    lock = internals.compile_lock()
    taken = lock is not None and lock.acquire(timeout=LONGEST_WAIT)
    try:
        yield
    finally:
        if taken:
            lock.release()


@contextlib.contextmanager
def _as_for_backends(env: ShapeEnv) -> Iterator[None]:
    """A backend may use operations that Stator is told to break at: the gradient of `y[mask] = z` is `grad[mask]`."""
    before = env.settings
    env.settings = dataclasses.replace(before, allow_scalar_outputs=True, allow_dynamic_output_shape_ops=True)
    try:
        yield
    finally:
        env.settings = before
        env.cleanup()  # as torch does at the end of a trace: stacks that it has noted


def marks_of(tensor: torch.Tensor, source: Source | None) -> dict[str, object]:
    """What a graph input's tensor carries for the backend: parameters and buffers stay where they are in each call."""
    marked = getattr(tensor, "_dynamo_static_input_type", None)
    if marked is None and (isinstance(tensor, torch.nn.Parameter) or _is_buffer(source)):
        marked = "unguarded"
    return {} if marked is None else {"_dynamo_static_input_type": marked}


def _is_buffer(source: Source | None) -> bool:
    base = source.base if isinstance(source, DictItemSource) else None
    return isinstance(base, AttrSource) and base.name == "_buffers"


def backend_guards(recorder: Recorder, context: Context) -> list[Guard]:
    """The assumptions that the backend has made, as guards."""
    guards: list[Guard] = []
    for assumption in context.guards_context.aotautograd_guards:
        if isinstance(assumption, internals.StorageOverlap):
            parts = (assumption.overlapping_sources, assumption.non_overlapping_sources)
            sources = [recorder.shapes.source_of(s) for part in parts for s in part]
            check = _Overlap(len(parts[0]))
            guards.append(Predicate(tuple(sources), check, "inputs overlap in memory as they did"))
        else:
            raise NotImplementedError(f"guard of AOTAutograd: {assumption!r}")
    return guards


class _Overlap:
    """The first `count` tensors each overlap another of them, the others overlap none."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, *tensors: object) -> bool:
        overlapping = internals.overlapping_tensors(list(tensors), symbolic=False)
        return set(overlapping) == set(range(self.count))
