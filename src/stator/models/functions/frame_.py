"""Frames of the traced program as objects: what `sys._getframe()` and tracebacks show of them."""

from __future__ import annotations

import types

from stator import errors
from stator.bytecode.continuation import original_of
from stator.bytecode.decode import decode
from stator.guards.source import Source
from stator.host.version_facts import FRAME_LOCALS_ARE_A_VIEW
from stator.models.classes.instance import InstanceValue
from stator.space.host_types import Host
from stator.space.interfaces import Frame, Trace
from stator.space.protocol import NONE, models
from stator.space.space import Space
from stator.space.value import NULL, Constant, Unsupported, Value


class Frames:
    """The frame objects of a trace, one for each frame."""

    def __init__(self, trace: Trace) -> None:
        self._values: dict[int, FrameValue] = {}

    def value(self, frame: Frame) -> FrameValue:
        """The frame as an object of the traced program."""
        found = self._values.get(id(frame))
        if found is None:
            found = self._values[id(frame)] = FrameValue(frame)
        return found


@models(types.FrameType)
class FrameValue(Value):
    """A frame of the trace."""

    __slots__ = ("frame", "shown")
    FIELDS = {
        "f_back": lambda self, space: self._back(space),
        "f_builtins": lambda self, space: space.trace.namespaces.builtins_of(self.frame.globals).value(space),
        "f_code": lambda self, space: Constant(original_of(self.frame.code, self.frame.last().index)[0]),
        "f_globals": lambda self, space: space.trace.namespaces.globals_of(self.frame.globals).value(space),
        "f_lasti": lambda self, space: Constant(self._last_offset()),
        "f_lineno": lambda self, space: Constant(self.frame.last().line),
        "f_locals": lambda self, space: None if self._has_view() else self.locals(space),
        "f_trace": lambda self, space: NONE,
    }

    def __init__(self, frame: Frame) -> None:
        self.cls = types.FrameType
        self.source: Source | None = None
        self.frame = frame
        #: the dict that shows its variables, once it has been asked for
        self.shown: Value | None = None

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        """An existing frame: something to be passed on."""
        return InstanceValue.from_host(space, host, source)

    def describe(self) -> str:
        return f"the frame of {self.frame.code.co_qualname}"

    def get_field(self, space: Space, name: str) -> Value:
        found = super().get_field(space, name)
        if found is None:
            raise Unsupported(errors.UnsupportedAttribute("frame", name))
        return found

    def _last_offset(self) -> int | None:
        frame = self.frame
        if frame.generator is not None and not frame.generator.started:
            raise Unsupported(errors.UnsupportedAttribute("frame", "f_lasti"))
        code, index = original_of(frame.code, frame.last().index)
        return decode(code).instrs[index].offset

    def _has_view(self) -> bool:
        """Whether `f_locals` is a view of the variables, and no dict."""
        return FRAME_LOCALS_ARE_A_VIEW and (self.frame.namespace is None or bool(comprehended(self.frame)))

    def _back(self, space: Space) -> Value:
        frame = self.frame
        suspended = frame.generator is not None and frame.generator.frame is frame
        if suspended and not is_running(space, frame):
            return NONE  # a finished frame keeps the one that it went back to
        if frame.parent is None:
            raise Unsupported(errors.UnsupportedAttribute("frame", "f_back"))
        return space.trace.extension(Frames).value(frame.parent)

    def locals(self, space: Space) -> Value:
        """The dict of the frame's variables (`PyFrame_FastToLocals`)."""
        frame = self.frame
        if frame.namespace is not None:
            return _namespace(space, frame)
        if self.shown is None or FRAME_LOCALS_ARE_A_VIEW:
            self.shown = space.new_dict([])
        for name, value in variables(frame).items():
            key = Constant(name)
            if value is not None:
                space.setitem(self.shown, key, value)
            elif space.truth(space.contains(self.shown, key)):
                space.delitem(self.shown, key)
        return self.shown

    def clear(self, space: Space) -> Value:
        """A finished frame lets go of its variables."""
        if is_running(space, self.frame):
            raise space.error(RuntimeError, "cannot clear an executing frame")
        generator = self.frame.generator
        if generator is not None and generator.frame is self.frame:
            raise Unsupported(errors.UnsupportedMethod("frame", "clear"))
        self.frame.locals, self.frame.cells = {}, {}
        return NONE


def is_running(space: Space, frame: Frame) -> bool:
    """Whether the frame is on the stack."""
    step = space.trace.frame
    while step is not None:
        if step is frame:
            return True
        step = step.parent
    return False


def variables(frame: Frame) -> dict[str, Value | None]:
    """The variables of a function's frame in the order of CPython, with None for those that have no value.

    With comprehensions inlined (PEP 709) two slots may bear one name: the last one counts, since 3.13 the first that
    has a value.
    """
    cells, free = frame.cells, frame.decoded.freevars
    if not frame.index:  # the body of a generator that has not begun
        cells = dict(zip(free, frame.function.cells(frame.space), strict=True))
    found = _own_variables(frame)
    for slot in free:
        name = slot.rstrip("'")  # see bytecode.versions.common.local_slots
        if not FRAME_LOCALS_ARE_A_VIEW or found.get(name) is None:
            found[name] = _contents(cells[slot].contents) if slot in cells else None
    return found


def _own_variables(frame: Frame) -> dict[str, Value | None]:
    """Those that are not free."""
    code, cells = frame.code, frame.cells
    names = dict.fromkeys((*code.co_varnames, *frame.decoded.varnames, *code.co_cellvars))
    return {name: _contents(cells[name].contents if name in cells else frame.locals.get(name)) for name in names}


def _contents(value: Value | None) -> Value | None:
    return None if value is NULL else value


def _namespace(space: Space, frame: Frame) -> Value:
    """The variables of the body of a class or a module: its dict, or a new one where a comprehension is running."""
    inner = comprehended(frame)
    namespace: Value = frame.namespace
    if not inner:
        return namespace
    shown = space.new_dict([])
    if not FRAME_LOCALS_ARE_A_VIEW:
        space.call_method(shown, "update", namespace)
    for name, value in inner.items():
        space.setitem(shown, Constant(name), value)
    return shown


def comprehended(frame: Frame) -> dict[str, Value]:
    """The variables of comprehensions that are running in the body of a class or a module (PEP 709)."""
    own = _own_variables(frame).items()
    return {name: value for name, value in own if value is not None and name not in ("__class__", "__classdict__")}
