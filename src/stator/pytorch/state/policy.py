"""Which of torch's own frames are traced when they are met after a graph break."""

from __future__ import annotations

import importlib.util
import os
from types import CodeType
from typing import TYPE_CHECKING

import torch
import typing_extensions  # torch needs it

from stator.interp import policy

if TYPE_CHECKING:
    from stator.pytorch.types import Function

#: parts of torch that compute with tensors in Python, as a user's code would
_TRACED = ("nn", "distributions", "optim", "ao", "_refs", "_decomp", "_numpy")

#: its tracers and compilers
_MACHINERY = (
    *("_dynamo/", "_inductor/", "_functorch/_aot_autograd/", "_functorch/aot_autograd.py", "_subclasses/"),
    *("export/", "_export/", "fx/_symbolic_trace.py", "fx/experimental/", "fx/passes/", "jit/"),
)
#: `torch._dynamo.disable()`: what torch's own functions wear for Dynamo's sake, Stator traces
_DISABLING = ("_fn", "nonrecursive_disable_wrapper")


def _disabled(code: CodeType, function: Function) -> bool | None:
    """`torch.compiler.disable()` around the user's function: what it calls is left alone. The wrappers share a code."""
    if code.co_name != "_fn" or "_torchdynamo_disable" not in getattr(function, "__dict__", ()):
        return None
    module = getattr(function.__dict__.get("_torchdynamo_orig_callable"), "__module__", None) or ""
    return not f"{module}.".startswith("torch.")


def install() -> None:
    """Tell the policy of the frame hook."""
    policy.SHARED.append(_disabled)
    root = os.path.dirname(torch.__file__)
    # typing_extensions are parts of later versions of the standard library
    policy.skip(root + os.sep, typing_extensions.__file__)
    policy.COMPUTED_BY.append(root + os.sep)
    policy.COMPUTING += [torch.Tensor, torch.nn.Module]
    policy.MACHINERY.extend(os.path.join(root, part) for part in _MACHINERY)
    policy.NO_MACHINERY.update(_DISABLING)
    # Python around C functions on arrays: each of its calls would break.
    numpy = importlib.util.find_spec("numpy")
    if numpy is not None:
        policy.COMPUTING.append(importlib.import_module("numpy").ndarray)
        policy.skip(*[os.path.join(place, "") for place in numpy.submodule_search_locations or ()])
    policy.TRACED.extend(os.path.join(root, part, "") for part in _TRACED)
