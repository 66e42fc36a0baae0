"""object: the methods that every class inherits, `Objects/typeobject.c`."""

from __future__ import annotations

import copyreg
import struct
import types
from typing import Any

from stator import errors
from stator.guards.raw import is_heap_type
from stator.host.version_facts import SUBCLASS_HOOK_COUNTS_ARGUMENTS
from stator.models.classes.instance import new_instance
from stator.models.classes.type_ import class_names
from stator.models.text.repr_ import str_of
from stator.space.attributes import attribute_name
from stator.space.operands import check_kind, host_errors
from stator.space.protocol import FALSE, NONE, NOT_IMPLEMENTED, TRUE, bad_call, builtin, register
from stator.space.space import Space
from stator.space.value import Constant, Unsupported, Value

_ABSTRACT = 1 << 20
_MANAGED_DICT = 1 << 4
_POINTER = struct.calcsize("P")
_NEW = object.__dict__["__new__"]


# -- making -----------------------------------------------------------------------------------------------------------


def _object_new(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if not args:
        raise space.error(TypeError, "object.__new__(): not enough arguments")
    cls_value = args[0].force()
    check_kind(space, cls_value, type, "object.__new__(X): X is not a type object (%T)")
    cls: type = cls_value.as_host(space)
    if _layout(cls) is not object:
        safe = cls
        while isinstance(space.host_lookup(safe, "__new__"), staticmethod):  # slot_tp_new
            safe = safe.__base__ or object
        text = f"object.__new__({space.type_name(cls)}) is not safe, use {space.type_name(safe)}.__new__()"
        raise space.error(TypeError, text)
    if len(args) > 1 or kwargs:
        _refuse_excess_new(space, cls)
    space.host_lookup(cls, "__abstractmethods__")  # which sets the flag
    if cls.__flags__ & _ABSTRACT:
        _refuse_abstract(space, cls)
    if cls is object or _is_program_class(cls):
        return new_instance(space, cls)
    raise Unsupported(errors.UnsupportedCCall(f"{cls.__qualname__}.__new__"))


register(_NEW, _object_new)


def _layout(cls: type) -> type:
    """The class whose C-level `__new__` allocates instances of `cls`."""
    step: type | None = cls
    while step is not None:
        made: Any = vars(step).get("__new__")
        if made is not None and getattr(made, "__self__", None) is step:
            break
        step = step.__base__
    return step or object


def _is_program_class(cls: type) -> bool:
    return all(base is object or is_heap_type(base) for base in cls.__mro__)


def _refuse_excess_new(space: Space, cls: type) -> None:
    if space.host_lookup(cls, "__new__") is not _NEW:
        raise space.error(TypeError, "object.__new__() takes exactly one argument (the type to instantiate)")
    if space.host_lookup(cls, "__init__") is object.__init__:
        raise space.error(TypeError, f"{space.type_name(cls)}() takes no arguments")


def _refuse_abstract(space: Space, cls: type) -> None:
    with host_errors(space, TypeError):
        object.__new__(cls)


def _object_init(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if not args:
        raise space.error(TypeError, "descriptor '__init__' of 'object' object needs an argument")
    self = args[0].force()
    if len(args) > 1 or kwargs:
        if space.host_lookup(self.cls, "__init__") is not object.__init__:
            text = "object.__init__() takes exactly one argument (the instance to initialize)"
            raise space.error(TypeError, text)
        if space.host_lookup(self.cls, "__new__") is _NEW:
            text = f"{self.type_name(space)}.__init__() takes exactly one argument (the instance to initialize)"
            raise space.error(TypeError, text)
    return NONE


register(object.__init__, _object_init)


@builtin(object.__dict__["__init_subclass__"])
def object_init_subclass(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
    if args or kwargs:
        text = f"{space.class_name(cls.force().as_host(space))}.__init_subclass__() takes no keyword arguments"
        if args:
            text = f"object.__init_subclass__() takes no arguments ({len(args)} given)"
        raise space.error(TypeError, text)
    return NONE


@builtin(object.__dict__["__subclasshook__"])
def object_subclasshook(space: Space, cls: Value, /, *args: Value) -> Value:
    if len(args) != 1 and SUBCLASS_HOOK_COUNTS_ARGUMENTS:
        return bad_call(space, object.__dict__["__subclasshook__"], [cls, *args], {})
    return NOT_IMPLEMENTED


# -- attributes -------------------------------------------------------------------------------------------------------


@builtin(object.__getattribute__)
def object_getattribute(space: Space, self: Value, name: Value, /) -> Value:
    return space.generic_getattr(self.force(), attribute_name(space, name))


@builtin(object.__setattr__)
def object_setattr(space: Space, self: Value, name: Value, value: Value, /) -> Value:
    return _assign(space, "__setattr__", self.force(), name, value)


@builtin(object.__delattr__)
def object_delattr(space: Space, self: Value, name: Value, /) -> Value:
    return _assign(space, "__delattr__", self.force(), name, None)


def _assign(space: Space, slot: str, self: Value, name: Value, value: Value | None) -> Value:
    if self.isa(type):
        raise space.error(TypeError, f"can't apply this {slot} to {self.type_name(space)} object")
    space.generic_setattr(self, attribute_name(space, name), value)
    return NONE


@builtin(object.__dict__["__class__"])
def object_class(space: Space, self: Value, /) -> Value:
    return space.class_value(self.force().cls)


@builtin(object.__dir__)
def object_dir(space: Space, self: Value, /) -> Value:
    """The names in the instance dict and in the classes of the MRO."""
    self = self.force()
    names: dict[str, None] = {}
    attrs = space.getattr_or_none(self, "__dict__")
    if attrs is not None and attrs.isa(dict):
        names.update(dict.fromkeys(space.str_(name) for name in space.unpack(attrs)))
    cls = space.getattr_or_none(self, "__class__")
    if cls is not None:
        names |= class_names(space, cls.force())
    return space.new_list([Constant(name) for name in names])


# -- comparison, text -------------------------------------------------------------------------------------------------


@builtin(object.__eq__)
def object_eq(space: Space, self: Value, other: Value, /) -> Value:
    return TRUE if space.is_(self, other) else NOT_IMPLEMENTED


@builtin(object.__ne__)
def object_ne(space: Space, self: Value, other: Value, /) -> Value:
    """The opposite of what `__eq__` says."""
    self = self.force()
    equal = space.special(self, "__eq__")
    if equal is None:
        return NOT_IMPLEMENTED
    result = space.call(equal, [self, other], {}).force()
    if space.is_not_implemented(result):
        return NOT_IMPLEMENTED
    return FALSE if space.truth(result) else TRUE


#: types that compare for equality alone
_UNORDERED = (object, types.BuiltinFunctionType, types.MethodWrapperType)


@builtin(*[vars(cls)[name] for cls in _UNORDERED for name in ("__lt__", "__le__", "__gt__", "__ge__")])
def object_order(space: Space, self: Value, other: Value, /) -> Value:
    return NOT_IMPLEMENTED


@builtin(object.__format__)
def object_format(space: Space, self: Value, spec: Value, /) -> Value:
    self, spec = self.force(), spec.force()
    check_kind(space, spec, str, "__format__() argument must be str, not %T")
    if space.truth(spec):
        raise space.error(TypeError, f"unsupported format string passed to {self.type_name(space)}.__format__")
    return str_of(space, self)


# -- copying: __reduce_ex__ -------------------------------------------------------------------------------------------


@builtin(object.__reduce__)
def object_reduce(space: Space, self: Value, /) -> Value:
    return _reduce(space, self.force(), 0)


@builtin(object.__reduce_ex__)
def object_reduce_ex(space: Space, self: Value, protocol: Value, /) -> Value:
    self = self.force()
    if space.host_lookup(self.cls, "__reduce__") is not object.__reduce__:
        return space.call_method(self, "__reduce__")
    return _reduce(space, self, space.int_(protocol))


def _reduce(space: Space, self: Value, protocol: int) -> Value:
    if protocol < 2:
        function = space.existing(copyreg._reduce_ex)  # type: ignore[attr-defined]
        return space.call(function, [self, Constant(protocol)], {})
    cls = space.class_value(self.cls)
    args, kwargs = _new_arguments(space, self)
    items: list[Value] = []
    if kwargs is not None and space.truth(space.len(kwargs)):
        if args is None:
            raise Unsupported(errors.UnsupportedMethod(self.cls.__name__, "__reduce_ex__"))
        made = [space.existing(copyreg.__newobj_ex__), space.new_tuple([cls, args, kwargs])]  # type: ignore[attr-defined]
    else:
        items = [] if args is None else space.unpack(args)
        made = [space.existing(copyreg.__newobj__), space.new_tuple([cls, *items])]  # type: ignore[attr-defined]
    has_args = args is not None
    required = not has_args and not self.isa((list, dict))
    state = _state(space, self, required)
    return space.new_tuple([*made, state, _iterator(space, self, list), _iterator(space, self, dict)])


def _new_arguments(space: Space, self: Value) -> tuple[Value | None, Value | None]:
    """`_PyObject_GetNewArguments`: the arguments that `__new__` should be given again."""
    getter = space.special(self, "__getnewargs_ex__")
    name = self.cls.__name__
    if getter is not None:
        pair = space.call(getter, [self], {}).force()
        check_kind(space, pair, tuple, "__getnewargs_ex__ should return a tuple, not '%T'")
        items = space.unpack(pair)
        if len(items) != 2:
            raise space.error(ValueError, f"__getnewargs_ex__ should return a tuple of length 2, not {len(items)}")
        if not items[0].isa(tuple) or not items[1].isa(dict):
            raise Unsupported(errors.UnsupportedMethod(name, "__getnewargs_ex__"))
        return items[0], items[1]
    getter = space.special(self, "__getnewargs__")
    if getter is None:
        return None, None
    args = space.call(getter, [self], {}).force()
    check_kind(space, args, tuple, "__getnewargs__ should return a tuple, not '%T'")
    return args, None


def _state(space: Space, self: Value, required: bool) -> Value:
    getter = space.getattr_or_none(self, "__getstate__")
    if getter is None:
        raise Unsupported(errors.UnsupportedMethod(self.cls.__name__, "__getstate__"))
    if required and space.host_lookup(self.cls, "__getstate__") is object.__getstate__ and _holds_more(space, self.cls):
        raise space.error(TypeError, f"cannot pickle {self.type_name(space)!r} object")
    return space.call(getter, [], {})


def _holds_more(space: Space, cls: type) -> bool:
    """`object_getstate_default`: whether there are C fields besides the dict, the weak references and `__slots__`."""
    if cls.__itemsize__:
        return True
    own_dict = cls.__dictoffset__ != 0 and not cls.__flags__ & _MANAGED_DICT
    pointers = own_dict + (cls.__weakrefoffset__ > 0) + len(_slot_names(space, cls))
    return cls.__basicsize__ > object.__basicsize__ + pointers * _POINTER


@builtin(object.__getstate__)
def object_getstate(space: Space, self: Value, /) -> Value:
    """The instance dict, with the `__slots__` beside it where there are any."""
    self = self.force()
    attrs = self.attr_dict(space)
    empty = attrs is None or not space.truth(space.len(attrs.value(space)))
    state = NONE if empty else attrs.value(space)
    slots = _slot_values(space, self)
    if not slots:
        return state
    return space.new_tuple([state, space.new_dict([(Constant(n), v) for n, v in slots])])


def _slot_values(space: Space, self: Value) -> list[tuple[str, Value]]:
    found = []
    for name in _slot_names(space, self.cls):
        value = space.getattr_or_none(self, name)
        if value is not None:
            found.append((name, value))
    return found


def _slot_names(space: Space, cls: type) -> list[str]:
    """`_PyType_GetSlotNames`."""
    names: Any = copyreg._slotnames  # type: ignore[attr-defined]
    if not space.trace.classes.is_fresh(cls):
        return list(names(cls))
    return [space.str_(name) for name in space.unpack(space.call(space.existing(names), [space.class_value(cls)], {}))]


def _iterator(space: Space, self: Value, kind: type) -> Value:
    if not self.isa(kind):
        return NONE
    if kind is dict:
        return space.iter(space.call_method(self, "items"))
    return space.iter(self)
