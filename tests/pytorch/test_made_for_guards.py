"""Tensors that guards make at each call (of arrays, of floats) are made in the mode that the call begins in."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch

import stator
from tests.pytorch.training import BACKENDS


def decorated(image, rate):
    return torch.as_tensor(image).float() * torch.tensor(rate)


def entered(image, rate):
    with torch.inference_mode():
        return torch.from_numpy(image) * 2.0


def left(image, rate):
    with torch.inference_mode(False):
        return torch.from_numpy(image) * 3.0


PROGRAMS = {"decorated": torch.inference_mode()(decorated), "entered": entered, "left": left, "without": decorated}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("around", [contextlib.nullcontext, torch.inference_mode, torch.no_grad])
@pytest.mark.parametrize("name", PROGRAMS)
def test_inference_mode_compiles_no_more_than_others(name, around, backend):
    function = PROGRAMS[name]
    compiled, before = stator.compile(function, backend=backend), stator.stats()
    for rate in (0.5, 0.25, 0.75, 1.5, 2.5):
        image = np.ones((4, 4), np.float32) * rate
        with around():
            made, expected = compiled(image, rate), function(image, rate)
        np.testing.assert_array_equal(np.asarray(made), np.asarray(expected))
    assert stator.stats().diff(before).graphs <= 2
