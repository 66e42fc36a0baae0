"""The PyTorch layer: tensors, the recording of graphs, metadata, symbolic shapes, global state."""

from __future__ import annotations

from typing import Any

from stator.tensors.module_stand_in import module_stand_in

__all__ = ["install", "module_stand_in"]

_installed = False


def install() -> None:
    """Register the models of torch's objects and functions with the lower layers (once)."""
    global _installed
    if _installed:
        return
    _installed = True
    import torch

    from stator import errors, trace
    from stator.objects.protocol import CALL_HOOKS, MODELS
    from stator.objects.value import Unsupported
    from stator.tensors import (
        calls,
        constants,
        contexts,
        library,
        nn_module,
        operators,
        policy,
        reader,
        sizes,
        specials,
        symbols,
    )
    from stator.tensors.global_state import foreign_mode
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
    CALL_HOOKS.append(calls.call_hook)
    CALL_HOOKS.append(symbols.specialise)
    trace.INTERCEPTS.append(constants.intercept_constant)
    trace.INTERCEPTS.append(calls.intercept)

    def begin(new: Any) -> None:
        new.recorder = Recorder(new)
        mode = foreign_mode()
        if mode is not None:
            for guard in new.recorder.state.guards():
                new.guard(guard)
            new.root = refusing(mode)

    def refusing(mode: str) -> Any:
        def root(function: Any, code: Any, *args: Any) -> Any:
            raise Unsupported(errors.FrameGivenUp(code.co_qualname, mode))

        return root

    trace.TRACE_HOOKS.append(begin)
    trace.LITERAL_HOOKS.append(symbols.literal)
    trace.DECIDERS.append(symbols.decide)
    library.install()
