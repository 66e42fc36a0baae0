"""Exceptions of the traced program: `Objects/exceptions.c`.

A fresh exception is a real one (`real`), made by the builtin class's own C code, so that argument parsing, errno
mapping and texts are CPython's. Where it would hold a traced value it holds a `Hole` instead.
"""

from __future__ import annotations

import types
import weakref
from typing import Any

from stator import errors
from stator.guards.raw import instance_dict, type_lookup
from stator.guards.source import GetAttrSource, Source
from stator.models.classes.late_dict import LateDictValue
from stator.models.exceptions import exception_code
from stator.models.exceptions.exception_parts import Hole, native_base, value_of
from stator.models.exceptions.traceback_ import Passed, TracebackValue
from stator.models.text.repr_ import repr_of, str_of
from stator.space.attributes import MISSING, attribute_name
from stator.space.interfaces import Trace, Writer
from stator.space.operands import check_kind, host_errors
from stator.space.protocol import FALSE, NONE, TRUE, bad_call, models
from stator.space.recursion import enumeration, list_pieces, repr_piece
from stator.space.space import Space
from stator.space.value import Constant, Raised, Unsupported, Value

_PACKAGE = __name__.split(".")[0]
_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None)})
#: instructions that send an exception on as it is
_SENDING_ON = frozenset({"RERAISE", "END_ASYNC_FOR", "CLEANUP_THROW"})
#: attributes that refer to other exceptions or frames: always kept as values
_LINKS = ("__cause__", "__context__", "__suppress_context__", "__traceback__")


def _args(real: BaseException) -> tuple[object, ...]:
    return BaseException.args.__get__(real)  # type: ignore[attr-defined, no-any-return]


@models(BaseException)
class ExceptionValue(LateDictValue):
    """An exception: existing (`source` set), or made by the traced program around `real`."""

    __slots__ = (
        "args",
        "fields",
        "is_context",
        "names_class",
        "real",
        "slots",
        "space",
        "takes_context",
        "tb_entries",
        "tb_values",
    )

    def __init__(self, space: Space, real: BaseException, source: Source | None = None) -> None:
        super().__init__(type(real))
        self.space = space
        self.source = source
        self.real = self.host = real
        #: the arguments as values, where they are not (only) those of `real`
        self.args: list[Value] | None = None
        #: the class whose name is in the words: it is guarded when they are read, which `hasattr` never does
        self.names_class: type | None = None
        #: links to other exceptions, and what was assigned to an existing exception
        self.fields: dict[str, Value] = {}
        #: slots of the program's own classes, by descriptor
        self.slots: dict[object, Value | None] = {}
        #: raised while nothing of the trace was being handled: what the traced frame's callers handle is its context
        self.takes_context = False
        #: whether it may be the context of another
        self.is_context = source is not None
        #: the frames the exception has left, innermost first
        self.tb_entries: list[Passed] = []
        #: what `__traceback__` gives when the exception has left so many frames
        self.tb_values: dict[int, Value] = {}

    @classmethod
    def from_host(cls, space: Space, host: BaseException, source: Source) -> ExceptionValue:
        space.guard_type(host, source)
        return cls(space, host, source)

    @classmethod
    def from_fresh(cls, space: Space, host: BaseException) -> ExceptionValue:
        return made_of(space, host)

    @classmethod
    def raised_by(cls, space: Space, host: BaseException) -> ExceptionValue:
        """An exception that a function run for real has just raised, with those that it was handling."""
        new = _known(space, host) is None
        self = made_of(space, host)
        if new and host.__cause__ is not None:
            self.set_field(space, "__cause__", cls.raised_by(space, host.__cause__))
        elif new and host.__suppress_context__:
            self.set_field(space, "__cause__", NONE)
        context = host.__context__
        if new and context is not None and not _is_outside(space, context):
            self.set_field(space, "__context__", cls.raised_by(space, context))
        else:
            frame = space.trace.frame
            set_context(space, self, None if frame is None else frame.handling.current)
        return self

    # -- parts ------------------------------------------------------------------------------------------------------

    def arg_values(self, space: Space) -> list[Value]:
        """The items of `args`."""
        if self.args is not None:
            return self.args
        if self.names_class is not None:
            space.type_name(self.names_class)
        if self.source is None:
            return [value_of(space, item) for item in _args(self.real)]
        return space.unpack(space.wrap(_args(self.real), GetAttrSource(self.source, "args")))

    def set_args(self, space: Space, values: list[Value]) -> None:
        """Run the builtin class's `__init__` with these arguments."""
        native_base(self.cls).__init__(self.real, *[host_of(space, v) for v in values])

    def fill_field(self, name: str, value: Value) -> None:
        """Fill a C-level attribute of a fresh exception."""
        self._descriptor(name).__set__(self.real, Hole(value) if not value.constant else value.host)

    def _descriptor(self, name: str) -> Any:
        return type_lookup(native_base(self.cls), name)

    def name_attribute(self, space: Space, obj: Value, name: str) -> None:
        """Tell an AttributeError of the program's own what was looked for, as `PyObject_GetAttr` does."""
        if self.source is None and all(self._descriptor(n).__get__(self.real) is None for n in ("name", "obj")):
            self.fill_field("name", Constant(name))
            self.fill_field("obj", obj)

    @classmethod
    def answers(cls, host: type, name: str) -> bool:
        return name != "__weakref__"

    def get_field(self, space: Space, name: str) -> Value | None:
        """A C-level attribute."""
        if name == "__traceback__":
            return self.traceback_after(space, len(self.tb_entries))
        if name in self.fields:
            return self.fields[name]
        if name == "args" and (self.source is None or self.args is not None):
            return space.new_tuple(self.arg_values(space))
        if self.source is not None:
            return self._existing_field(space, name)
        if name == "__suppress_context__":
            return FALSE
        if name == "__context__" and self.takes_context:
            return space.trace.root.handled_by_callers() or NONE
        if name in _LINKS:
            return NONE
        descriptor = self._descriptor(name)
        return None if descriptor is MISSING else value_of(space, descriptor.__get__(self.real))

    def _existing_field(self, space: Space, name: str) -> Value | None:
        assert self.source is not None
        if self._descriptor(name) is MISSING:
            return None
        try:
            found = self._descriptor(name).__get__(self.real)
        except AttributeError:  # `OSError.characters_written` until it is set
            raise Unsupported(errors.UnsupportedAttribute(self.cls.__name__, name)) from None
        return space.wrap(found, GetAttrSource(self.source, name))

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        """`exception.name = value` (or `del`, for None) for a C-level attribute."""
        value = None if value is None else value.force()
        if name in _LINKS:
            _check_assignable(space, name, value)
            return self._assign_link(space, name, value)  # type: ignore[arg-type]
        if name == "args":
            return self._assign_args(space, value)
        if self.source is not None:
            if value is None:
                return False
            space.mark_mutated(self)
            self.fields[name] = value
            return True
        return self._assign_real(space, name, value)

    def _assign_real(self, space: Space, name: str, value: Value | None) -> bool:
        descriptor = self._descriptor(name)
        space.mark_mutated(self)
        try:
            if value is None:
                descriptor.__delete__(self.real)
            else:
                descriptor.__set__(self.real, host_of(space, value))
        except (TypeError, AttributeError) as e:
            if value is not None and not value.force().constant:
                return False
            raise Raised(space.exception(e)) from None
        return True

    def _assign_args(self, space: Space, value: Value | None) -> bool:
        if value is None:
            _check_assignable(space, "args", None)
        items = space.unpack(value)  # type: ignore[arg-type]
        space.mark_mutated(self)
        if self.source is not None or self.args is not None:
            self.args = items
        else:
            BaseException.args.__set__(self.real, tuple(host_of(space, item) for item in items))  # type: ignore[attr-defined]
        return True

    def _assign_link(self, space: Space, name: str, value: Value) -> bool:
        if name == "__traceback__":
            return self._assign_traceback(space, value)
        space.mark_mutated(self)
        self.fields[name] = value
        if name == "__cause__":
            self.fields["__suppress_context__"] = TRUE
        elif value.isa(BaseException):
            value.is_context = True  # type: ignore[attr-defined]
        return True

    def _assign_traceback(self, space: Space, value: Value) -> bool:
        existing = value.source is not None and not value.is_none()
        if existing and self.source is None:
            return False
        space.mark_mutated(self)
        self.fields["__traceback__"] = value if existing else NONE
        self.tb_entries = [] if value.is_none() else list(value.entries)  # type: ignore[attr-defined]
        self.tb_values = {len(self.tb_entries): value}
        return True

    def traceback_after(self, space: Space, count: int) -> Value:
        """The traceback of the first `count` frames the exception has left: always the same object."""
        value = self.tb_values.get(count)
        if value is None:
            if count:
                value = TracebackValue(self.tb_entries[:count], self)
            else:
                value = (None if self.source is None else self._existing_field(space, "__traceback__")) or NONE
            self.tb_values[count] = value
        return value

    def add_traceback(self, frame: Any, instr: Any) -> None:
        """The exception passes through a frame: an entry, unless the instruction sends on what has been caught."""
        if instr.op in _SENDING_ON:
            return
        if instr.op == "RAISE_VARARGS" and not instr.arg and frame.being_handled() is self:
            return
        if self.source is not None:
            frame.space.mark_mutated(self)
        self.tb_entries.append(Passed(frame, instr))

    # -- BaseException ----------------------------------------------------------------------------------------------

    def tp_str(self, space: Space) -> Value:
        args = self.arg_values(space)
        if not args:
            return Constant("")
        return str_of(space, args[0]) if len(args) == 1 else repr_of(space, space.new_tuple(args))

    def tp_repr(self, space: Space) -> Value:
        args = self.arg_values(space)
        pieces = [repr_piece(space, args[0])] if len(args) == 1 else list_pieces(space, args)
        return enumeration(f"{space.class_name(self.cls)}(", pieces, ")")

    def with_traceback(self, space: Space, traceback: Value, /) -> Value:
        traceback = traceback.force()
        _check_assignable(space, "__traceback__", traceback)
        if not self._assign_traceback(space, traceback):
            raise Unsupported(errors.UnsupportedAttribute(self.cls.__name__, "__traceback__"))
        return self

    def add_note(self, space: Space, note: Value, /) -> Value:
        note = note.force()
        if not note.isa(str):
            return bad_call(space, BaseException.add_note, [Constant(Exception()), note], {})
        notes = space.getattr_or_none(self, "__notes__")
        if notes is None:
            notes = space.new_list([])
            space.setattr(self, "__notes__", notes)
        elif not notes.isa(list):
            raise space.error(TypeError, "Cannot add note: __notes__ is not a list")
        space.call_builtin(list.append, [notes, note], {})
        return NONE

    def tp_reduce(self, space: Space) -> Value:
        state = self.reduced_attrs(space)
        parts = [space.class_value(self.cls), space.new_tuple(self.arg_values(space))]
        return space.new_tuple(parts if state is None else [*parts, state])

    def reduced_attrs(self, space: Space) -> Value | None:
        """The instance dict, as `__reduce__` gives it; to look for one that does not exist yet would make it."""
        if self.source is None:
            attrs: Value = self.attr_dict(space)
            return attrs if space.truth(space.len(attrs)) else None
        return None if self.is_bare(space) else self.attr_dict(space)

    def tp_setstate(self, space: Space, state: Value, /) -> Value:
        state = state.force()
        if not state.is_none():
            check_kind(space, state, dict, "state is not a dictionary")
            for key, value in state.pairs(space):  # type: ignore[attr-defined]
                space.setattr(self, attribute_name(space, key), value)
        return NONE

    # -- the value protocol -----------------------------------------------------------------------------------------

    def held(self) -> list[Value]:
        slots = (item for item in self.slots.values() if item is not None)
        return [*super().held(), *slots, *self.fields.values(), *(self.args or ())]

    def describe(self) -> str:
        return f"a {self.cls.__name__} exception"

    def shell(self, writer: Writer) -> str:
        native = native_base(self.cls)
        if issubclass(native, BaseExceptionGroup):
            raise Unsupported(errors.NotReconstructible("an exception group that contains itself"))
        return f"{writer.const(native)}.__new__({writer.const(self.cls)})"

    def rebuilt(self, writer: Writer) -> str:
        return exception_code.rebuilt(self, writer)

    def effects(self, writer: Writer) -> list[str]:
        return exception_code.effects(self, writer)


#: what may be assigned to the attributes of every exception, besides None
_FITTING = {"__cause__": BaseException, "__context__": BaseException, "__traceback__": types.TracebackType}


def _check_assignable(space: Space, name: str, value: Value | None) -> None:
    """CPython says of a blank exception what such an attribute cannot be, and that it cannot be deleted."""
    descriptor = vars(BaseException)[name]
    with host_errors(space, TypeError):
        if value is None:
            descriptor.__delete__(BaseException())
        elif not value.isa(_FITTING.get(name, ())):
            descriptor.__set__(BaseException(), space.sample(value))


# -- between values and what a real exception holds -----------------------------------------------------------------


def host_of(space: Space, value: Value) -> Any:
    """What stands for a value inside a real exception."""
    value = value.force()
    if value.constant and value.cls in _PLAIN:
        return value.host
    if isinstance(value, ExceptionValue):
        return value.real
    return Hole(value)


class MadeExceptions:
    """The exceptions that a trace has made, by the ids of the real ones that stand for them, as long as they live."""

    def __init__(self, trace: Trace) -> None:
        self.by_id: weakref.WeakValueDictionary[int, ExceptionValue] = weakref.WeakValueDictionary()


def _known(space: Space, real: BaseException) -> ExceptionValue | None:
    made = space.trace.extension(MadeExceptions).by_id
    return space._by_id.get(id(real)) or made.get(id(real))


def made_of(space: Space, real: BaseException) -> ExceptionValue:
    """The value of a real exception that stands for one of the traced program."""
    known = _known(space, real)
    if known is None:
        known = space.trace.extension(MadeExceptions).by_id[id(real)] = ExceptionValue(space, real)
        for name, item in (instance_dict(real) or {}).items():
            known.attr_dict(space).set_str(space, name, value_of(space, item))
    return known


def _is_outside(space: Space, exc: BaseException) -> bool:
    """Whether the function run for real has not caught it: the traced frame's callers have, or the tracer itself."""
    if exc is space.trace.root.outer_exception:
        return True
    passed = exc.__traceback__  # the frame that has caught it begins it
    return passed is not None and str(passed.tb_frame.f_globals.get("__name__")).split(".")[0] == _PACKAGE


# -- what the interpreter asks ----------------------------------------------------------------------------------------


def normalize(space: Space, value: Value) -> Value:
    """The exception that `raise value` raises."""
    value = value.force()
    if value.isa(BaseException):
        return value
    if is_exception_class(value):
        made = space.call(value, [], {}).force()
        if not made.isa(BaseException):
            called, given = (space.str_(space.repr(cls)) for cls in (value, space.class_value(made.cls)))
            shown = f"calling {called} should have returned an instance of BaseException, not {given}"
            raise space.error(TypeError, shown)
        return made
    raise space.error(TypeError, "exceptions must derive from BaseException")


def set_cause(space: Space, value: Value, cause: Value) -> None:
    """`raise value from cause`."""
    cause = cause.force()
    if not cause.is_none():
        try:
            cause = normalize(space, cause)
        except Raised as e:
            if str(space.known(e.value.tp_str(space))) != "exceptions must derive from BaseException":  # type: ignore[attr-defined]
                raise
            raise space.error(TypeError, "exception causes must derive from BaseException") from None
    value.set_field(space, "__cause__", cause)


def set_context(space: Space, value: Any, handled: Value | None) -> None:
    """The exception is raised while `handled` is being handled."""
    handled = None if handled is None else handled.force()
    if handled is None or handled is value or handled.is_none():
        value.takes_context |= handled is None
        return
    step: Value | None = handled if value.is_context else None
    seen: set[int] = set()  # the program may have tied the chain into a ring
    while step is not None and not step.is_none() and id(step) not in seen:
        seen.add(id(step))
        following = step.get_field(space, "__context__")
        following = following.force() if following is not None else None
        if following is value:
            step.set_field(space, "__context__", NONE)
            break
        step = following
    value.set_field(space, "__context__", handled)


def matches(space: Space, exc: Value, pattern: Value) -> bool:
    """`except pattern:`"""
    patterns = [item.force() for item in alternatives(space, pattern)]
    if not all(map(is_exception_class, patterns)):
        raise space.error(TypeError, "catching classes that do not inherit from BaseException is not allowed")
    return any(space.derives(exc.cls, item.host) for item in patterns)


def alternatives(space: Space, pattern: Value) -> list[Value]:
    """The classes of `except pattern:`."""
    return space.unpack(pattern) if pattern.isa(tuple) else [pattern]


def exc_info(space: Space, value: Value) -> list[Value]:
    """The three arguments of `__exit__`."""
    value = value.force()  # a continuation's, perhaps
    return [space.class_value(value.cls), value, value.get_field(space, "__traceback__") or NONE]


def stop_iteration_error(space: Space, value: Value, code: types.CodeType) -> Value:
    """What leaves a generator's body in place of a StopIteration."""
    import inspect

    kinds = {inspect.CO_ASYNC_GENERATOR: "async generator", inspect.CO_COROUTINE: "coroutine"}
    kind = next((text for flag, text in kinds.items() if code.co_flags & flag), "generator")
    stop = "StopIteration"
    if not value.isa(StopIteration):
        if kind != "async generator" or not value.isa(StopAsyncIteration):
            return value
        stop = "StopAsyncIteration"
    return from_cause(space, space.error(RuntimeError, f"{kind} raised {stop}").value, value)


def from_cause(space: Space, error: Value, cause: Value) -> Value:
    """`_PyErr_FormatFromCause`: the new exception is raised because of the other."""
    set_cause(space, error, cause)
    set_context(space, error, cause)
    return error


def is_exception_class(value: Value, kind: type[BaseException] = BaseException) -> bool:
    """`PyExceptionClass_Check`, or whether it is a class derived from `kind`."""
    return value.isa(type) and issubclass(value.host, kind)


def from_throw(space: Space, kind: Value, value: Value | None) -> Value:
    """The exception of `generator.throw(kind, value)`."""
    kind = kind.force()
    given = None if value is None or value.is_none() else value.force()
    if is_exception_class(kind):
        if given is None:
            return normalize(space, kind)
        if space.derives(given.cls, kind.host):
            return given
        args = space.unpack(given) if given.isa(tuple) else [given]
        return normalize(space, space.call(kind, args, {}))
    if kind.isa(BaseException):
        if given is not None:
            raise space.error(TypeError, "instance exception may not have a separate value")
        return kind
    text = f"exceptions must be classes or instances deriving from BaseException, not {kind.type_name(space)}"
    raise space.error(TypeError, text)
