"""Types of what is not a traced value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

__all__ = ["Host", "HostCallable"]

#: an object of the traced process, of any type: what is done with it is the business of the type's model
Host: TypeAlias = Any
#: a function, class or other callable of the traced process, of any signature
HostCallable: TypeAlias = Callable[..., Any]
