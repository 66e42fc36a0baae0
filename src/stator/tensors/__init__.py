"""The PyTorch layer: tensors, the recording of graphs, metadata, symbolic shapes, global state."""

from __future__ import annotations

from typing import Any

from stator.tensors.module_stand_in import module_stand_in
from stator.tensors.other_tracers import innermost

__all__ = ["innermost", "install", "module_stand_in"]


def install() -> None:
    """Register the models of torch's objects and functions with the lower layers: called once, by `api`."""
    import torch

    from stator import trace
    from stator.objects.protocol import CALL_HOOKS, MODELS
    from stator.tensors import (
        calls,
        constants,
        contexts,
        library,
        nn_module,
        operators,
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
