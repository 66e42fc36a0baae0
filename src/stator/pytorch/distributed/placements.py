"""How DTensors are laid out: placements are constants, device meshes are known by identity.

    DTensor.from_local(x, mesh, [Shard(0)])        # Shard(0) is a value, like a number

Placements are written in C++ and do not change; two of them are alike if they are equal. The classes of this file are
imported with `torch.distributed.tensor`: it is loaded when the first of them is met.
"""

from __future__ import annotations

from typing import Any

from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import placement_types

from stator.guards.callable_names import function_of
from stator.guards.raw import class_dict
from stator.pytorch.tensors.lowering import OPAQUE
from stator.space.protocol import IMMUTABLE, pure

_PLACEMENTS: tuple[type, ...] = (placement_types.Shard, placement_types.Replicate, placement_types.Partial)
#: what C++ answers by the object's own value; the other methods are made by Python of these
_ANSWERED = ("dim", "reduce_op", "is_shard", "is_replicate", "is_partial", "__eq__")


def _declare(cls: type) -> None:
    members = [class_dict(base).get(name) for base in cls.__mro__ for name in _ANSWERED]
    functions: list[Any] = [function_of(member) for member in members if member is not None]
    pure(*[function for function in functions if type(function) is type(len)])


for _cls in _PLACEMENTS:
    _declare(_cls)
OPAQUE.update((*_PLACEMENTS, DeviceMesh))
IMMUTABLE.update(_PLACEMENTS)
