"""Functions of torch.distributed: each call is traced, or is one break that names the function."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.interp import policy
from stator.pytorch import internals
from stator.pytorch.whole_calls import public_name, traced_or_whole
from stator.space.protocol import INTERCEPTS, Handler
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
#: what DDP does before and after the forward pass of the module, mostly in C++
_OF_DDP = (internals.ddp_before, internals.ddp_after)


def intercept(host: Host) -> Handler | None:
    """How a function of torch.distributed is handled (see protocol.INTERCEPTS)."""
    if (host.__code__.co_filename, host.__code__.co_name) == _OF_FSDP:
        return _refuse(host)
    if not is_left_whole(host.__code__) and host not in _OF_DDP:
        return None
    return traced_or_whole(host, partial(left_to_python, public_name(host)), _belongs)


def _refuse(host: Host) -> Handler:
    def refuse(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        policy.LEFT.keep(host.__code__, True)
        raise Unsupported(errors.CollectiveCall(public_name(host), "torch keeps it out of graphs"))

    return refuse


def left_to_python(name: str, met: Break) -> Break:
    """The break at a call as a whole, for one that was met inside."""
    return errors.CollectiveCall(name, met.why if isinstance(met, errors.CollectiveCall) else met.reason)


def is_left_whole(code: CodeType) -> bool:
    """Whether code belongs to a function that is traced or left to Python as a whole."""
    return code.co_filename in _FILES


def _belongs(code: CodeType) -> bool:
    return code.co_filename.startswith(_FOLDER)


def install() -> None:
    """Register the model."""
    INTERCEPTS.append(intercept)
