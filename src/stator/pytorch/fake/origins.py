"""Where torch's ShapeEnv is told that the numbers it knows come from.

torch has classes for it in `torch._dynamo.source`, behind the import of its whole tracer. These bear the same names and
give the same text, and are used in their place where Stator asks torch (`fake/apart.py`). A backend makes torch's own,
and is given those (`as_torchs`).
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from stator.pytorch import internals

#: the classes and the enumeration, by torch's names
NAMES = (
    "AttrSource",
    "CallMethodItemSource",
    "ConstantSource",
    "FloatTensorSource",
    "LocalSource",
    "RandomValueSource",
    "TensorProperty",
    "TensorPropertySource",
)

__all__ = ["NAMES", *NAMES]


class TensorProperty(enum.Enum):
    """Which numbers of a tensor."""

    SIZE = "size"
    STRIDE = "stride"
    STORAGE_OFFSET = "storage_offset"


@dataclasses.dataclass(frozen=True)
class LocalSource(internals.Source):
    """An input."""

    local_name: str
    guard_source = internals.GuardSource.LOCAL

    @property
    def _name_template(self) -> str:
        return f"L[{self.local_name!r}]"

    def as_torchs(self) -> Any:
        """The same, of torch's class."""
        return internals.LocalSource(local_name=self.local_name)


@dataclasses.dataclass(frozen=True)
class ConstantSource(internals.Source):
    """Nothing that exists."""

    source_name: str
    guard_source = internals.GuardSource.CONSTANT

    @property
    def _name_template(self) -> str:
        return self.source_name


class RandomValueSource:
    """A number drawn by Python's own `random`: there are none."""


@dataclasses.dataclass(frozen=True)
class AttrSource(internals.ChainedSource):
    """An attribute."""

    member: str

    @property
    def _name_template(self) -> str:
        return f"{{0}}.{self.member}" if self.member.isidentifier() else f"getattr({{0}}, {self.member!r})"

    def as_torchs(self) -> Any:
        """The same, of torch's class."""
        return internals.AttrSource(self.base.as_torchs(), self.member)


@dataclasses.dataclass(frozen=True)
class FloatTensorSource(internals.ChainedSource):
    """A float, as a tensor."""

    _name_template = "___as_tensor({0})"

    def as_torchs(self) -> Any:
        """The same, of torch's class."""
        return internals.FloatTensorSource(self.base.as_torchs())


@dataclasses.dataclass(frozen=True)
class CallMethodItemSource(internals.ChainedSource):
    """The number in a tensor."""

    _name_template = "{0}.item()"


@dataclasses.dataclass(frozen=True)
class TensorPropertySource(internals.ChainedSource):
    """A size, a stride, or the offset of a tensor in its memory."""

    prop: TensorProperty
    idx: int | None = None

    @property
    def _name_template(self) -> str:
        index = "" if self.idx is None else f"[{self.idx}]"
        return f"{{0}}.{self.prop.value}(){index}"
