"""Calls of library functions that compute nothing of the graph: what breaks in one is a break at the call.

for batch in tqdm(batches):     # locks, clocks, a terminal: dozens of places that cannot be traced
    ...
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from stator import errors
from stator.interp import policy
from stator.space.identity.reachability import referents
from stator.space.protocol import is_immutable
from stator.space.value import Lazy, Value

if TYPE_CHECKING:
    from stator.errors import Break
    from stator.space.host_types import Host
    from stator.space.interfaces import Frame

#: breaks over how Python is used; the advice on those that are left, over tensors say, is good for a library's code too
_OF_PYTHON = (
    errors.UnsupportedCCall,
    errors.UnsupportedSlot,
    errors.UnsupportedAttribute,
    errors.UnsupportedMethod,
    errors.UnsupportedClassCreation,
    errors.UnsupportedMutation,
    errors.UnsupportedUse,
    errors.UnsupportedObject,
    errors.UnsupportedOpcode,
    errors.OpaqueIterator,
    errors.OpaqueResult,
    errors.UnknownArgument,
    errors.FailingCall,
    errors.LifetimeObserved,
    errors.NewFinalizer,
    errors.MemoryObserved,
    errors.PendingSideEffects,
    errors.RandomStateAccess,
    errors.SuspendedCoroutine,
    errors.ImportWithSideEffects,
    errors.LibraryCall,
    errors.DrawnBranch,
)
#: breaks over the program's numbers (it was given no tensor), which messages tell of: `heapq.heapify(scores)`
_OF_NUMBERS = (errors.DataDependentBranch, errors.DataDependentValue)
#: parts of an argument that are looked at
_MOST_PARTS = 100
#: what calls of an object or a class are in the program
_CALLS = (".__init__", ".__new__", ".__call__")


def whole_call(frame: Frame, brk: Break) -> Break | None:
    """The break at the call of an inlined frame in which something breaks; None where it is gone on with inside."""
    if frame.parent is None or not isinstance(brk, _OF_PYTHON + _OF_NUMBERS) or not is_apart(frame):
        return None
    if not all(policy.is_foreign(code) for code in frame.trace.breaks.codes_within(frame)):
        return None
    if isinstance(brk, errors.RandomStateAccess):
        return errors.RandomStateAccess(f"{frame.globals.get('__name__')}.{frame.code.co_qualname}")
    if isinstance(brk, errors.DrawnBranch):
        return brk
    if isinstance(brk, _OF_NUMBERS):
        return errors.LibraryCall(_called(frame), f", in which {brk.reason}")
    return errors.LibraryCall(_called(frame), brk.why if isinstance(brk, errors.LibraryCall) else "")


def _called(frame: Frame) -> str:
    """What the program calls; by its module what is private, or called by a statement."""
    name = frame.code.co_qualname
    name = next((name.removesuffix(end) for end in _CALLS if name.endswith(end)), name)
    if not any(map(_is_private, name.split("."))):
        return f"call of {name}"
    if policy.is_installed(frame.code.co_filename):
        return f"a function of {str(frame.globals.get('__name__')).partition('.')[0]}"
    return "a function of the standard library"


def _is_private(name: str) -> bool:
    return name.startswith(("_", "<"))


def is_apart(frame: Frame) -> bool:
    """Whether the frame is a library's that computes nothing of the graph."""
    return policy.is_foreign(frame.code) and computes_nothing(frame)


def computes_nothing(frame: Frame) -> bool:
    """Whether the frame has recorded nothing, and has nothing that graphs are made of."""
    recorder = frame.trace.recorder
    if recorder is not None and recorder.recorded_at > frame.begun:
        return False
    return not any(_computes(value) for value in frame.locals.values())


def _computes(value: Value) -> bool:
    """Whether a variable is something that graphs are made of, or holds it."""
    if type(value) is Lazy:
        return any(policy.computes(type(part)) for part in _parts(value.host))
    return policy.computes(value.cls) or any(not part.lazy and policy.computes(part.cls) for part in value.held())


def _parts(container: Host) -> Iterable[Host]:
    """An existing object, and what it holds. (Where a graph is broken needs no guard.)"""
    yield container
    if not is_immutable(type(container)):
        for part in itertools.islice(referents(container), _MOST_PARTS):
            yield part
            if type(part) is dict:  # of its attributes
                yield from itertools.islice(part.values(), _MOST_PARTS)
