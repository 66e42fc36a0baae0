"""Functions of torch.distributed: each call is traced, or is one break that names the function."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch.whole_calls import public_name, traced_or_whole
from stator.space.protocol import INTERCEPTS, Handler

if TYPE_CHECKING:
    from types import CodeType

    from stator.errors import Break
    from stator.pytorch.types import Host

__all__ = ["intercept", "is_left_whole"]

_FOLDER = os.path.join(os.path.dirname(torch.__file__), "distributed", "")
#: what programs call; files elsewhere in the folder (DDP, FSDP, DTensor) call code of the program's
_FILES = frozenset(
    _FOLDER + name for name in ("distributed_c10d.py", "_functional_collectives.py", "device_mesh.py", "c10d_logger.py")
)


def intercept(host: Host) -> Handler | None:
    """How a function of torch.distributed is handled (see protocol.INTERCEPTS)."""
    if not is_left_whole(host.__code__):
        return None
    name = public_name(host)

    def breaks(met: Break) -> Break:
        return errors.CollectiveCall(name, met.reason)

    return traced_or_whole(host, breaks, _belongs)


def is_left_whole(code: CodeType) -> bool:
    """Whether code belongs to a function that is traced or left to Python as a whole."""
    return code.co_filename in _FILES


def _belongs(code: CodeType) -> bool:
    return code.co_filename.startswith(_FOLDER)


def install() -> None:
    """Register the model."""
    INTERCEPTS.append(intercept)
