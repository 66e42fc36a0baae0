"""Forward-mode differentiation: tangents travel beside the tensors, where neither a graph nor a trace sees them.

No frame is traced inside of a level (see `other_tracers.at_work`), and the functions that begin one, end one, or
make or read a tensor with a tangent are left to Python as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.autograd import forward_ad

from stator import errors
from stator._core import CodePolicy, set_code_policy
from stator.space.protocol import Handler, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.space import Space


def _refusing(host: Host) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Unsupported(errors.ForwardModeCall(f"torch.autograd.forward_ad.{host.__name__}"))

    return handler


def install() -> None:
    """Register the models."""
    functions: list[Function] = [forward_ad.enter_dual_level, forward_ad.exit_dual_level]
    for host in (*functions, forward_ad.make_dual, forward_ad.unpack_dual):
        register(host, _refusing(host))
        set_code_policy(host.__code__, CodePolicy.RUN_RECURSIVELY)
