"""The PyTorch layer: tensors, the recording of graphs, metadata, symbolic shapes, global state."""

from __future__ import annotations

from typing import Any

__all__ = ["install"]


def install() -> None:
    """Register the models of torch's objects and functions with the lower layers: called once, by `api`."""
    from stator.tensors import internals

    internals.check()
    _register()


def _register() -> None:
    import torch

    from stator import region, stance, trace
    from stator.controls import resets
    from stator.objects.protocol import CALL_HOOKS, MODELS
    from stator.tensors import (
        calls,
        compiled_forward,
        constants,
        contexts,
        dynamism,
        library,
        nn_module,
        operators,
        optimized_module,
        other_tracers,
        policy,
        reader,
        sizes,
        specials,
        symbols,
    )
    from stator.tensors.recorder import Recorder
    from stator.tensors.tensor import TensorValue

    MODELS[torch.Tensor] = TensorValue
    reader.configure()
    constants.install()
    contexts.install()
    specials.install()
    sizes.install()
    operators.install()
    nn_module.install()
    policy.install()
    other_tracers.install()
    optimized_module.install()
    compiled_forward.install()
    CALL_HOOKS.append(calls.call_hook)
    CALL_HOOKS.append(symbols.specialise)
    trace.INTERCEPTS.append(constants.intercept_constant)
    trace.INTERCEPTS.append(calls.intercept)

    def begin(new: Any) -> None:
        new.recorder = Recorder(new)

    trace.TRACE_HOOKS.append(begin)
    trace.LITERAL_HOOKS.append(symbols.literal)
    trace.DECIDERS.append(symbols.decide)
    library.install()
    stance.NOTE_FIRST_CALL.append(dynamism.note_first_call)
    stance.follow_torch()
    resets.follow_from_import(region.forget_all)
