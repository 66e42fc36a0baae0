"""The PyTorch layer: tensors, the recording of graphs, metadata, symbolic shapes, global state."""

from __future__ import annotations

__all__ = ["install"]


def install() -> None:
    """Register the models of torch's objects and functions with the lower layers: called once, by `api`."""
    # Imported when something is compiled first: any module of this package imports it, and not all need torch yet.
    from stator.pytorch import internals

    internals.check()  # before any module is imported that touches a private name
    from stator.pytorch import registration

    registration.register()
