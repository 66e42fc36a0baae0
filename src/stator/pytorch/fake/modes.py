"""Dispatch modes that are active while an operation is tried, and see the operators beneath it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch import internals

if TYPE_CHECKING:
    from stator.pytorch.types import Args, Kwargs, Nested, Operator

__all__ = ["Listing", "Mode"]


class Mode(internals.TorchDispatchMode):
    """One that does not load torch._dynamo, as what torch puts around `__torch_dispatch__` does."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class Listing(Mode):
    """Notes the operators that run, and what they are given."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Operator, Args, Kwargs]] = []

    def __torch_dispatch__(
        self, func: Operator, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> Nested:
        self.found.append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))
