"""Registers the models of torch's objects and functions, and what else the layers below ask the PyTorch layer."""

from __future__ import annotations

from typing import Any

import torch

from stator.compiler import region
from stator.controls import resets
from stator.interp import trace
from stator.marks import stance
from stator.pytorch import basic_models, library
from stator.pytorch.graph.recorder import Recorder
from stator.pytorch.shapes import dynamism, symbols
from stator.pytorch.tensors import calls, reader
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import CALL_HOOKS, DECIDERS, INTERCEPTS, LITERAL_HOOKS, MODELS

__all__ = ["register"]


def register() -> None:
    """Called once, when all private names of torch have been found as they should be."""
    MODELS[torch.Tensor] = TensorValue
    reader.configure()
    reader.learn_kinds()
    basic_models.install()
    CALL_HOOKS.append(calls.call_hook)
    CALL_HOOKS.append(symbols.specialise)
    INTERCEPTS.append(calls.intercept)

    def begin(new: Any) -> None:
        new.recorder = Recorder(new)

    trace.TRACE_HOOKS.append(begin)
    LITERAL_HOOKS.append(dynamism.literal)
    DECIDERS.append(symbols.decide)
    library.install()
    stance.NOTE_FIRST_CALL.append(dynamism.note_first_call)
    stance.follow_torch()
    resets.follow_from_import(region.forget_all)
