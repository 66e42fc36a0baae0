"""Classes that the traced program has made, and what it has changed of others."""

from __future__ import annotations

from stator.space.skeleton import detach
from stator.space.value import Value


class ClassChanges:
    """What one trace knows of classes that is not so outside of it."""

    def __init__(self) -> None:
        #: skeletons of the classes that the program has made, with their values
        self.fresh: dict[type, Value] = {}
        #: attributes that the program has set, of fresh classes and of others
        self.overlays: dict[type, dict[str, Value]] = {}
        #: abstract base classes with the classes that the program has registered with them
        self.registered: list[tuple[type, type]] = []
        #: classes that count as sequences or mappings in patterns since they have been registered: `Py_TPFLAGS_…`
        self.patterns: dict[type, int] = {}

    def is_fresh(self, cls: type) -> bool:
        """Whether the trace has made the class."""
        return cls in self.fresh

    def matches(self, cls: type, flag: int) -> bool:
        """Whether the class counts as a sequence or mapping in patterns (`Py_TPFLAGS_SEQUENCE`, `_MAPPING`)."""
        flags = next((self.patterns[base] for base in cls.__mro__ if base in self.patterns), cls.__flags__)
        return bool(flags & flag)

    def close(self) -> None:
        """The trace is over: the classes made are forgotten by those that they derive from."""
        for cls in self.fresh:
            detach(cls)
        self.fresh.clear()
        self.overlays.clear()
