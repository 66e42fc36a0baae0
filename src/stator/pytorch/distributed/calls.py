"""Functions of torch.distributed: each call is traced, or is one break that names the function."""

from __future__ import annotations

import inspect
import os
from functools import partial
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator._core import CodePolicy, set_code_policy
from stator.pytorch import internals
from stator.pytorch.modules.outside import runs_outside
from stator.pytorch.whole_calls import public_name, traced_or_whole
from stator.space.protocol import INTERCEPTS, Handler, Refusal, refuse
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from types import CodeType

    from stator.errors import Break
    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = ["intercept", "is_left_whole", "left_to_python"]

_FOLDER = os.path.join(os.path.dirname(torch.__file__), "distributed", "")
#: what programs call; files elsewhere in the folder (DDP, FSDP, DTensor) call code of the program's
_FILES = frozenset(
    _FOLDER + name for name in ("distributed_c10d.py", "_functional_collectives.py", "device_mesh.py", "c10d_logger.py")
)
#: has what FSDP2 puts around its hooks, which disables them anew in each call
_OF_FSDP = os.path.join(_FOLDER, "fsdp", "_fully_shard", "_fsdp_common.py"), "wrapper"
#: what DDP does before and after the forward pass of the module, mostly in C++; and what calls both, and the module
_AROUND = (internals.ddp_before, internals.ddp_after)
_OF_DDP = (internals.ddp_forward, internals.ddp_run, internals.ddp_inside)
_KEPT_OUT = "torch keeps it out of graphs"


def intercept(host: Host) -> Handler | None:
    """How a function of torch.distributed is handled (see protocol.INTERCEPTS)."""
    if (host.__code__.co_filename, host.__code__.co_name) == _OF_FSDP:
        set_code_policy(host.__code__, CodePolicy.RUN_RECURSIVELY)
        return Refusal(refuse, errors.CollectiveCall(public_name(host), _KEPT_OUT))
    if host is internals.ddp_forward:
        return _ddp_forward
    if not is_left_whole(host.__code__) and host not in _AROUND:
        return None
    return traced_or_whole(host, partial(left_to_python, public_name(host)), _belongs)


def _ddp_forward(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`DistributedDataParallel.forward`: ordinary Python around the module, which is compiled by itself."""
    if not args:
        return None
    runs_outside(space, args[0].force())
    if not torch.is_grad_enabled() or space.truth(space.getattr(args[0], "_use_python_reducer")):
        return None
    raise Unsupported(errors.CollectiveCall(public_name(internals.ddp_forward), _KEPT_OUT))


def left_to_python(name: str, met: Break) -> Break:
    """The break at a call as a whole, for one that was met inside."""
    return errors.CollectiveCall(name, met.why if isinstance(met, errors.CollectiveCall) else met.reason)


def is_left_whole(code: CodeType) -> bool:
    """Whether code belongs to a function that is traced or left to Python as a whole."""
    return code.co_filename in _FILES


def _belongs(code: CodeType) -> bool:
    return code.co_filename.startswith(_FOLDER)


def install() -> None:
    """Register the models."""
    for function in (*_OF_DDP, *_AROUND):
        left = CodePolicy.RUN_RECURSIVELY if function in _AROUND else CodePolicy.SKIP
        set_code_policy(inspect.unwrap(function).__code__, left)
    INTERCEPTS.append(intercept)
