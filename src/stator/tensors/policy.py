"""Which of torch's own frames are traced when they are met after a graph break."""

from __future__ import annotations

import importlib.util
import os

import torch

from stator.cache import policy

#: parts of torch that compute with tensors in Python, as a user's code would
_TRACED = ("nn", "distributions", "optim", "ao", "_refs", "_decomp", "_numpy")


def install() -> None:
    """Tell the policy of the frame hook."""
    root = os.path.dirname(torch.__file__)
    policy.SKIPPED.append(root + os.sep)
    # Python around C functions on arrays: each of its calls would break.
    numpy = importlib.util.find_spec("numpy")
    if numpy is not None:
        policy.SKIPPED.extend(os.path.join(place, "") for place in numpy.submodule_search_locations or ())
    policy.TRACED.extend(os.path.join(root, part, "") for part in _TRACED)
