"""What torch 2.13 cannot do, and later versions can."""

import pytest
import torch

#: the oldest torch that Stator supports
OLD_TORCH = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14)


#: whether lengths of rows of jagged tensors are numbers, each a graph of its own that no backend is given
FIXED_ROWS = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15)


def fails_on_old_torch(reason: str) -> pytest.MarkDecorator:
    """An expected failure on that version alone."""
    return pytest.mark.xfail(OLD_TORCH, reason=f"torch 2.13: {reason}", strict=True)
