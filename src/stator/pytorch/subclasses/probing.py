"""Asking torch: which `__torch_function__` would it call for an operation, and with what?

The operation is called on probes, which stand for the traced arguments. The classes of probes derive from each other as
those do that they stand for, and their `__torch_function__` only notes what it is given; so does that of a mode.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.nesting import items_of, value_of
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import NotKnown, Raised, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from stator.pytorch.types import Args, Function, Host
    from stator.space.space import Space

__all__ = ["ModeProbe", "Probing", "probe_classes"]


class Asked(BaseException):
    """The override of a probe's class, or of a mode, was called with these arguments."""

    def __init__(self, given: Args, cls: type | None = None) -> None:
        super().__init__()
        self.given = given
        #: the class that was asked; None for a mode
        self.cls = cls


class ModeProbe(internals.TorchFunctionMode):
    """Stands for the innermost mode."""

    def __torch_function__(self, *given: object) -> Any:
        raise Asked(given)


def _override(cls: Any, *given: object) -> Any:
    if cls.stands_for in cls.refusing:
        return NotImplemented
    raise Asked(given, cls.stands_for)


def probe_classes(classes: Iterable[type]) -> dict[type, Any]:
    """A class of probes for each class."""
    made: dict[type, Any] = {}
    type_of: Any = type
    refusing: set[type] = set()
    for cls in sorted(classes, key=lambda cls: len(cls.__mro__)):
        bases = [made[base] for base in cls.__mro__[1:] if base in made]
        nearest = [base for base in bases if not any(base in other.__mro__[1:] for other in bases)]
        root: Any = torch.Tensor if issubclass(cls, torch.Tensor) else object
        members = {"__torch_function__": classmethod(_override), "stands_for": cls, "refusing": refusing}
        made[cls] = type_of(root)("Probe", tuple(nearest) or (root,), members)
    return made


_NO_MODE = nullcontext()


class Probing:
    """The questions about one operation; `classes` are those of the arguments that override it."""

    def __init__(self, space: Space, classes: dict[type, Any]) -> None:
        self.space = space
        self.classes = classes
        #: id of a probe → the value it stands for
        self.values: dict[int, Value] = {}
        self.kept: list[Any] = []
        for probe in classes.values():
            probe.refusing.clear()

    def ask(
        self,
        host: Function,
        args: list[Value],
        kwargs: dict[str, Value],
        mode: AbstractContextManager[object] = _NO_MODE,
    ) -> tuple[list[Value], type] | None:
        """The arguments for `__torch_function__`, and the class (or the mode) that is asked; None if nobody is."""
        probes = [self.probe(arg) for arg in args]
        named = {name: self.probe(arg) for name, arg in kwargs.items()}
        try:
            with internals.EnableTorchFunction(), torch.no_grad(), mode:
                host(*probes, **named)
        except Asked as asked:
            return [self.value(part) for part in asked.given], asked.cls or ModeProbe
        except Exception as e:
            raise Raised(self.space.exception(e)) from None
        return None

    def refuse(self, cls: type) -> None:
        """The class has given NotImplemented: torch goes on to ask others."""
        self.classes[cls].refusing.add(cls)

    def probe(self, value: Value) -> Any:
        """A host object like the value, of which nobody else knows."""
        value = value.force()
        made = self._make(value)
        self.kept.append(made)
        self.values.setdefault(id(made), value)
        return made

    def _make(self, value: Value) -> Any:
        cls = self.classes.get(value.cls)
        if isinstance(value, TensorValue):
            plain = torch.empty(0, device="meta")
            return plain if cls is None else plain.as_subclass(cls)
        if cls is not None:
            return cls()
        if value.symbolic and value.cls is not bool:
            return value.cls(_MANY + len(self.kept))  # a number that is an object of its own
        items = items_of(self.space, value)
        if items is not None:
            made = [self.probe(item) for item in items]
            return made if value.isa(list) else tuple(made)
        try:
            return value.as_host(self.space)
        except NotKnown:
            name = " and ".join(sorted(cls.__qualname__ for cls in self.classes)) or "Tensor"
            raise Unsupported(errors.UnsupportedTensorSubclass(name, "an argument is not known")) from None

    def value(self, host: Host) -> Value:
        """The value that a part of the answer stands for."""
        return value_of(self.space, host, self.known)

    def known(self, host: Host) -> Value | None:
        """That of what is no structure, and is not made anew."""
        stands_for = next((cls for cls, probe in self.classes.items() if probe is host), None)
        if stands_for is not None:
            return self.space.class_value(stands_for)
        found = self.values.get(id(host))
        return self.space.existing(host) if found is None and callable(host) else found


_MANY = 1 << 40
