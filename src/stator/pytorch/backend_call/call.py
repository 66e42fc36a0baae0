"""Handing a graph to the backend, in the environment that it expects, and checking what comes back."""

from __future__ import annotations

import time
import traceback
from typing import TYPE_CHECKING

from stator.errors import BackendError, StatorError
from stator.pytorch.autograd.engine_run import leave_runs_to_python
from stator.pytorch.backend_call.compiled import compiled_under_contract, example_of
from stator.pytorch.backend_call.contract import backend_guards, calling
from stator.pytorch.backend_call.order import only_backward_fails, runs_in_order
from stator.pytorch.graph.memory import separate_from_bytes
from stator.pytorch.graph.node_meta import NodeMeta
from stator.pytorch.shapes.look_ahead import look_ahead
from stator.pytorch.shapes.unbacked import trace_otherwise
from stator.report.events import EVENTS, Called
from stator.report.messages import backend_failed
from stator.report.stats import STATS

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedValue
    from stator.pytorch.types import Function

__all__ = ["call_backend"]


def call_backend(recorder: Recorder, gm: torch.fx.GraphModule, inputs: list[TracedValue]) -> Function:
    """Hand the graph to the backend in the global state of the start, and check what comes back."""
    look_ahead(recorder)
    backend, name = recorder.trace.compile_region.backend, _name(recorder)
    separate_from_bytes(recorder, inputs)
    started = time.perf_counter()
    EVENTS.calling(name)
    with calling(backend):
        try:
            if recorder.keeps_order:
                compiled = backend(gm, [example_of(value) for value in inputs])
            elif runs_in_order(recorder, gm, inputs):
                return gm.forward
            else:
                compiled, contexts = compiled_under_contract(recorder, gm, inputs, backend)
                for context in contexts:
                    recorder.extra_guards += backend_guards(recorder, context)
        except StatorError:
            raise
        except Exception as e:
            trace_otherwise(recorder, inputs, e)
            leave_runs_to_python(recorder, e)
            # What its frames hold (a guard of inference mode, say) puts back on its end how torch dispatched in there.
            traceback.clear_frames(e.__traceback__)
            if only_backward_fails(recorder, e):
                return gm.forward
            raise _failure(recorder, name, f"failed: {type(e).__name__}: {e}") from e
        finally:
            seconds = time.perf_counter() - started
            STATS.backend_seconds += seconds
            EVENTS.called(Called(name, gm, seconds))
            _release_examples(gm, show=not getattr(backend, "keeps_order", False))
    if not callable(compiled):
        raise _failure(recorder, name, f"returned {type(compiled).__name__}, which is not callable")
    return compiled


def _failure(recorder: Recorder, backend: str, why: str) -> BackendError:
    return BackendError(str(backend_failed(backend, why, recorder.trace.root.code)), backend=backend)


def _name(recorder: Recorder) -> str:
    """The backend's name, as the program has it."""
    asked: object = recorder.trace.compile_region.asked[0]
    return asked if isinstance(asked, str) else str(getattr(asked, "__name__", type(asked).__name__))


def _release_examples(gm: torch.fx.GraphModule, *, show: bool) -> None:
    """The trace is over: example values are made now, for whoever looks at the graph later, or not at all."""
    for node in gm.graph.nodes:
        if isinstance(node.meta, NodeMeta):
            if show:
                node.meta.settle("example_value")
            node.meta.release()
