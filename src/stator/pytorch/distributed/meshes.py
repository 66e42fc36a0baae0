"""Device meshes: torch's Python is traced, which finds ranks, coordinates and groups in attributes of the mesh.

Only what is made of a mesh, `mesh["dp"]`, is made for real: it follows from the mesh and the names, and makes tensors
of ranks. In eager execution each call makes another, equal one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.distributed.device_mesh import DeviceMesh

from stator.space.protocol import Handler, register
from stator.space.value import NotKnown, Value

if TYPE_CHECKING:
    from stator.space.space import Space

__all__ = ["install"]


def _slice(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`mesh[names]`; one with all names is the mesh itself, which torch's Python says."""
    if len(args) != 2 or kwargs:
        return None
    mesh, names = args[0].force(), space.known(args[1].force())
    if mesh.host is None or names is NotKnown:
        return None
    space.guard_identity(mesh)
    try:
        made = mesh.host[names]
    except Exception:
        return None
    return None if made is mesh.host else space.existing(made, "a part of a mesh")


def install() -> None:
    """Register the model."""
    model: Handler = _slice
    register(DeviceMesh.__getitem__, model)
