"""The frame that is being traced: what the trace was called with, and how it can be gone on with."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Iterable
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING

from stator import errors
from stator._core import UNBOUND, runs_its_code
from stator.bytecode import argument_count
from stator.guards.guard import CodeIs
from stator.guards.naming import PLAIN, names_of
from stator.guards.source import (
    CallInputs,
    CellSource,
    ConstSource,
    FunctionSource,
    GetAttrSource,
    ItemSource,
    LocalSource,
    asked,
)
from stator.interp.frame import Frame, hosts_behind
from stator.models.functions.function import FunctionValue
from stator.space.host_types import Host
from stator.space.protocol import is_immutable
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from stator.errors import Break
    from stator.space import interfaces
    from stator.space.space import Space
    from stator.space.value import Value

#: the exception that the callers of the frame being traced are handling
_HANDLED = asked(sys.exception, "sys.exception")


class RootFrame:
    """What is known about the frame being traced, apart from its execution."""

    code: CodeType

    def __init__(self, space: Space) -> None:
        self.space = space
        self.args: list[Host] = []
        self.function: FunctionType | None = None
        #: what the program calls the paths to existing objects
        self.names = PLAIN
        #: whether generated code could call the frame's function again, with the same arguments
        self.repeatable = False
        #: why it must run as ordinary Python from its beginning if there is a break at all
        self.unresumable: Break | None = None
        #: whether the program has let go of an argument before the graph break
        self.drops_arguments = False
        #: of which arguments it has when the trace ends, a bit each as `_core.Entry.released` has them
        self.released = _ALL
        #: what its callers handle, as they do while it is traced
        self.outer_exception = sys.exception()

    def begin(self, trace: interfaces.Trace, function: FunctionType, code: CodeType, args: list[Host]) -> Frame:
        """The frame, its arguments unread."""
        value = _running_function(self.space, function)
        value.code = code
        total = argument_count(code)
        bound = {
            name: self.space.wrap(arg, LocalSource(i, name))
            for i, (name, arg) in enumerate(zip(code.co_varnames[:total], args, strict=False))
            if arg is not UNBOUND
        }
        self.code = code
        self.function = function
        self.args = args
        self.names = names_of(code, CallInputs(function, tuple(args)))
        self.repeatable = len(bound) == total
        trace.calls.codes[id(code)] = code
        return Frame(trace, value, bound, parent=None, in_tail_position=True)

    def reads_names_of(self, globals_: Host) -> None:
        """Names are looked up in these globals. If they are the frame's own, the trace is for functions with the same:
        one code object may belong to others, of other modules.
        """
        function = self.function
        if function is None or globals_ is not function.__globals__:
            return
        if function.__code__ is not self.code or not runs_its_code(function):
            raise Unsupported(errors.UnsupportedObject(f"a frame of {function.__qualname__}, whose code was replaced,"))
        self.space.trace.guard(CodeIs(FunctionSource(), self.code, function.__globals__))

    def handled_by_callers(self) -> Value | None:
        """The exception that its callers are handling."""
        value = self.space.wrap(self.outer_exception, _HANDLED).force()
        return None if value.cls is type(None) else value

    def dropped_by(self, frames: list[interfaces.Frame]) -> bool:
        """Whether an argument is no longer held by the frames, which the real frame keeps."""
        args = [arg for arg in self.args if not is_immutable(type(arg))]
        return not all(any(frame.holds(arg) for frame in frames) for arg in args)

    def released_by(self, frames: list[interfaces.Frame], operands: Iterable[Value] = ()) -> int:
        """The arguments that neither the frames nor the operands of the instruction that breaks are any more."""
        held = {id(host) for frame in frames for host in frame.hosts()}
        stacks = [value for frame in frames for value in frame.stack]
        held |= {id(host) for host in hosts_behind(self.space, [*stacks, *operands])}
        slots = (1 << min(slot, _LAST) for slot, arg in enumerate(self.args) if not _is_held(arg, held))
        return functools.reduce(operator.or_, slots, 1 << _LAST)

    def close(self) -> None:
        """The trace is over: keep nothing of the program's alive."""
        self.args = []
        self.names = PLAIN
        self.function = None
        self.outer_exception = None


#: the bit for the cells of the frame's function, and for all arguments from the 64th on
_LAST = 63
_ALL = (1 << 64) - 1


def _is_held(arg: Host, held: set[int]) -> bool:
    """Whether an argument is among what is held. A frame that is gone on with has its arguments in a tuple."""
    if id(arg) in held:
        return True
    if type(arg) is MethodType:
        return _is_held(arg.__self__, held)
    return type(arg) is tuple and all(_is_held(item, held) for item in arg)


def _running_function(space: Space, function: FunctionType) -> FunctionValue:
    source = FunctionSource()
    value = FunctionValue.from_host(space, function, ConstSource(function, "<running function>"))
    value.source = source
    closure = function.__closure__ or ()
    value._cells = [
        space.existing_cell(
            cell,
            ItemSource(GetAttrSource(source, "__closure__"), i),
            CellSource(i, function.__code__.co_freevars[i]),
        )
        for i, cell in enumerate(closure)
    ]
    space._by_id[id(function)] = value
    return value
