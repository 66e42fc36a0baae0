"""What helps where a tensor's value would have to be known: told by who knows what it is needed for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stator import errors
from stator.space.value import Unsupported

__all__ = ["FOR_ITEMS", "FOR_ORDER", "FOR_STOPS", "advising"]

#: where a number in a tensor selects an object, and where objects are put in order
FOR_ITEMS = "index a tensor with it (torch.tensor(values)[i]), or look the object up outside of the compiled function"
FOR_ORDER = "order tensors by torch.topk or torch.sort, which give indices, or do it outside of the compiled function"

#: where a loop ends early
FOR_STOPS = "leave it if it saves rounds; or test only every few, or run all and mask what has ended (torch.where)"


@contextmanager
def advising(hint: str) -> Iterator[None]:
    """What helps if what is done depends on the value of a tensor, unless more is known of it."""
    try:
        yield
    except Unsupported as e:
        kind = errors.DataDependentBranch
        if not isinstance(e.brk, kind) or e.brk.hint != kind.hint:
            raise
        raise Unsupported(e.brk.advising(hint)) from None
