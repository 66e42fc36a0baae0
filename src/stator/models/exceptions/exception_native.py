"""`__new__`, `__init__` and `__str__` of the builtin exception classes: their own C code, on what stands for values."""

from __future__ import annotations

import types
from typing import Any

from stator import errors
from stator.guards.guard import Equals
from stator.guards.raw import is_heap_type, type_lookup
from stator.guards.source import CallSource
from stator.models.exceptions.exception import ExceptionValue, host_of, is_exception_class, made_of
from stator.models.exceptions.exception_parts import Hole, HoleSeen, native_base
from stator.models.text.repr_ import repr_of
from stator.space.attributes import MISSING
from stator.space.host_types import Host
from stator.space.operands import host_errors
from stator.space.protocol import NONE, bad_call, builtin, method_of
from stator.space.recursion import enumeration, repr_piece
from stator.space.space import Space
from stator.space.value import Constant, Raised, Unsupported, Value


def _construct(
    space: Space, native: type, name: str, target: Any, args: tuple[Value, ...], kwargs: dict[str, Value]
) -> Any:
    """Call the C constructor of this name, of the builtin class, on what stands for the arguments."""
    function = vars(native)[name]
    hosts = [host_of(space, a) for a in args]
    looked_at = list(hosts)
    if issubclass(native, _UNPACKING) and len(args) == 2:
        sequence = args[1].force()
        if sequence.cls in (list, tuple):
            items = [host_of(space, item) for item in space.unpack(sequence)]
            hosts[1] = items if sequence.cls is list else tuple(items)
            looked_at = [hosts[0], *items]
    named = {k: host_of(space, v) for k, v in kwargs.items()}
    holes = [host.value for host in (*looked_at, *named.values()) if isinstance(host, Hole)]
    parses = issubclass(native, _PARSING)
    if parses and any(value.isa(_PARSED) for value in holes):
        raise Unsupported(errors.UnsupportedUse(function.__qualname__, "with an argument that is not known"))
    try:
        return function(target, *hosts, **named)
    except (TypeError, ValueError) as e:
        if holes and parses:
            raise Unsupported(errors.UnsupportedCCall(function.__qualname__)) from None
        raise Raised(space.exception(e)) from None
    except HoleSeen:
        raise Unsupported(errors.UnsupportedCCall(function.__qualname__)) from None


#: constructors that look at the types of their arguments, and the types they look for
_PARSED = (int, str, bytes)
_UNPACKING = (SyntaxError, BaseExceptionGroup)
_PARSING = (OSError, SyntaxError, UnicodeError, BaseExceptionGroup)


def _new_model(native: type[BaseException]) -> Any:
    def new(space: Space, cls_value: Value, /, *args: Value, **kwargs: Value) -> Value:
        cls = space.known(cls_value)
        if not is_exception_class(cls_value.force(), native):
            with host_errors(space, TypeError):
                native.__new__(cls)
        value = made_of(space, _construct(space, native, "__new__", cls, args, kwargs))
        if issubclass(native, _UNPACKING):
            value.args = list(args)
        return value

    return new


def _init_model(native: type[BaseException]) -> Any:
    def init(self: ExceptionValue, space: Space, /, *args: Value, **kwargs: Value) -> Value:
        if self.source is not None:
            if not _keeps_arguments(native):
                raise Unsupported(errors.UnsupportedMethod(native.__name__, "__init__"))
            _construct(space, native, "__init__", native.__new__(self.cls), args, kwargs)  # raises what it raises
            self.set_field(space, "args", space.new_tuple(list(args)))
            return NONE
        space.mark_mutated(self)
        _construct(space, native, "__init__", self.real, args, kwargs)
        self.args = list(args) if issubclass(native, _UNPACKING) else None
        return NONE

    return init


def _keeps_arguments(native: type[BaseException]) -> bool:
    """Whether the class has `BaseException.__init__`, which sets `args`: it has no fields of its own to be set."""
    own = (base for base in native.__mro__ if base not in (BaseException, object))
    return not any(isinstance(entry, _FIELDS) for base in own for entry in vars(base).values())


_FIELDS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def _str_model(function: Host) -> Any:
    def text(self: ExceptionValue, space: Space, /) -> Value:
        if self.source is not None:
            raise Unsupported(errors.UnsupportedMethod(self.cls.__name__, function.__name__))
        try:
            return Constant(function(self.real))
        except HoleSeen:
            raise Unsupported(errors.UnsupportedMethod(self.cls.__name__, function.__name__)) from None

    return text


@method_of(ExceptionValue, KeyError.__str__)
def key_error_str(self: ExceptionValue, space: Space, /) -> Value:
    args = self.arg_values(space)
    if len(args) != 1:
        return self.tp_str(space)
    return repr_of(space, args[0])


@builtin(BaseExceptionGroup.__str__)
def group_str(space: Space, self: Value, /) -> Value:
    """`BaseExceptionGroup_str`: how many exceptions there are, nested groups counted once."""
    count = space.int_(space.len(space.getattr(self, "exceptions")))
    message = space.str_(space.str(space.getattr(self, "message")))
    return Constant(f"{message} ({count} sub-exception{'s' if count > 1 else ''})")


def group_repr(self: ExceptionValue, space: Space, /) -> Value:
    """`BaseExceptionGroup_repr`: the exceptions that it has, shown as the sequence it was made of."""
    given = self.arg_values(space)[1].force()
    if given.cls not in (list, tuple):
        raise Unsupported(errors.UnsupportedMethod("BaseExceptionGroup", "__repr__"))
    exceptions = space.getattr(self, "exceptions")
    shown = exceptions if given.cls is tuple else space.new_list(space.unpack(exceptions))
    parts = [repr_piece(space, space.getattr(self, "message")), repr_piece(space, shown)]
    return enumeration(f"{space.class_name(self.cls)}(", parts, ")")


if "__repr__" in vars(BaseExceptionGroup):
    method_of(ExceptionValue, BaseExceptionGroup.__repr__)(group_repr)


def _layout(real: Host) -> tuple[int, tuple[str, ...]]:
    """How many arguments `__reduce__` gives, and which C-level attributes are in the state."""
    native: Host = native_base(type(real))
    _, args, *state = native.__reduce__(real)
    names = [name for name in (state and state[0]) or () if type_lookup(native, name) is not MISSING]
    return len(args), tuple(names)


def _reduce_model(native: type[BaseException]) -> Any:
    """Of exceptions with C-level attributes: some are added to the arguments, or to the state."""

    def reduce(self: ExceptionValue, space: Space, /) -> Value:
        if not self.isa(native):
            return bad_call(space, native.__reduce__, [self], {})
        if self.source is not None and space.trace.effects.is_mutated(self):
            raise Unsupported(errors.UnsupportedMethod(self.cls.__name__, "__reduce__"))
        layout = count, names = _layout(self.real)
        if self.source is not None:
            space.trace.guard(Equals(CallSource(_layout, self.source, "layout"), layout))
        args = self.arg_values(space)
        if count > len(args):  # `OSError_reduce`: with the names of files
            args = [*args, *(self.get_field(space, n) or NONE for n in ("filename", "winerror", "filename2"))]
        state = self.reduced_attrs(space)
        if names:
            shown = space.new_dict([])
            if state is not None:
                space.call_method(shown, "update", state)
            for name in names:
                space.setitem(shown, Constant(name), self.get_field(space, name) or NONE)
            state = shown
        made = [space.class_value(self.cls), space.new_tuple(args[:count])]
        return space.new_tuple(made if state is None else [*made, state])

    return reduce


_STR_ELSEWHERE = (BaseException, KeyError, BaseExceptionGroup)


def _builtin_exceptions() -> list[type[BaseException]]:
    found: dict[type[BaseException], None] = {}
    todo: list[type[BaseException]] = [BaseException]
    while todo:
        cls = todo.pop()
        if not is_heap_type(cls):
            found[cls] = None
            todo += cls.__subclasses__()
    return list(found)


def _register_all() -> None:
    for native in _builtin_exceptions():
        names = vars(native)
        if "__new__" in names:
            builtin(names["__new__"])(_new_model(native))
        if "__init__" in names:
            method_of(ExceptionValue, names["__init__"])(_init_model(native))
        if native not in _STR_ELSEWHERE and "__str__" in names:
            method_of(ExceptionValue, names["__str__"])(_str_model(names["__str__"]))
        if native is not BaseException and "__reduce__" in names:
            method_of(ExceptionValue, names["__reduce__"])(_reduce_model(native))


_register_all()
