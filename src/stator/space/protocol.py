"""The one table of behaviour: host callables (slots, methods, builtins) against their models.

CPython resolves `a + b` to a descriptor in `type(a).__mro__`; so does Stator, and then looks that descriptor up here.
A callable with no model runs for real where it is pure and its operands are known, and is a graph break otherwise.

Models that few programs need are imported when they are first asked for (`rare.py`). So whoever wants to know whether
there is a model asks `handler_of`, `model_for`, `is_immutable` or `is_pure`, and not the tables.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from stator.guards.raw import owner_of
from stator.space.host_types import Host, HostCallable
from stator.space.rare import load
from stator.space.value import Constant, Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.errors import Break
    from stator.guards.source import Source
    from stator.space.interfaces import Trace
    from stator.space.space import Space

#: a model: (space, args, kwargs) → the result, or None where it declines and the next way of doing the call is tried
Handler = Callable[["Space", list[Value], dict[str, Value]], Value | None]


class TailCall(Value):
    """What the model of a Python function may return: its result is that of another call, which replaces this one.

    A graph break inside that call can then be resumed as if the program had made it itself. A model that returns None
    instead has no say in this case: the function's own code is traced.
    """

    __slots__ = ("args", "function", "kwargs")

    def __init__(self, function: Value, args: list[Value], kwargs: dict[str, Value]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs


class Refusal(partial[NoReturn]):
    """`Refusal(refuse, break)`: the model of a function that is kept out of graphs: every call of it is this break."""


def refuse(brk: Break, space: Space, args: list[Value], kwargs: dict[str, Value]) -> NoReturn:
    """What a Refusal calls."""
    raise Unsupported(brk)


V = TypeVar("V", bound=type[Value])
F = TypeVar("F", bound=HostCallable)

#: host type → the Value class that models its instances (looked up along the MRO: CPython's solid base)
MODELS: dict[type, type[Value]] = {}
#: id(host callable) → its model; _KEEP holds the callables so that ids stay theirs
HANDLERS: dict[int, Handler] = {}
#: ids of host callables without side effects, that run for real when their operands are known
PURE: set[int] = set()
#: host type → what a call of it gives where its model breaks the graph and the result goes straight onto the stack
LAST_RESORTS: dict[type, Handler] = {}
#: ids of methods of immutable host types that depend on more than their operands: a break
IMPURE: set[int] = set()
#: ids of host callables whose models answer for objects that existed before the trace only
EXTERNAL_ONLY: set[int] = set()
#: ids of pure host callables against what looks at their operands first: it raises Unsupported where they are not pure
RESTRICTED: dict[int, Callable[[Space, list[Host], dict[str, Host]], None]] = {}
#: host types whose operations depend on more than their operands, against what guards that, or raises Unsupported
AMBIENT: dict[type, Callable[[Space], None]] = {}
#: immutable host types: all their methods are pure, their instances are Constants
IMMUTABLE: set[type] = set()
#: layers above (tensors) may answer for callables nobody modelled: (space, host, args, kwargs) → Value | None
CALL_HOOKS: list[Callable[[Space, Host, list[Value], dict[str, Value]], Value | None]] = []
#: layers above may have models for Python functions, which are traced into otherwise: host function → model, or None
INTERCEPTS: list[Callable[[Host], Handler | None]] = []
#: layers above may answer for host objects met for the first time: host type → (space, host, source) → Value
REALISERS: dict[type, Callable[[Space, Host, Source], Value]] = {}
#: a number or text read from the frame may be taken for one that varies: (trace, host, source) → Value, or None
LITERAL_HOOKS: list[Callable[[Trace, Host, Source], Value | None]] = []
#: layers above may decide a symbolic number or truth value, and guard that: (trace, value) → host value, or None
DECIDERS: list[Callable[[Trace, Value], Host]] = []
#: layers above may know what a pure function will give for a value that nobody knows, and guard or assert that it does:
#: (trace, function, value, more arguments) → its result, or None
OUTCOME_HOOKS: list[Callable[[Trace, HostCallable, Value, tuple[Host, ...]], Host]] = []
#: asked for `max` (">") or `min` ("<") of an item and the best so far; None where these are compared
EXTREME_HOOKS: list[Callable[[Space, str, Value, Value], Value | None]] = []

_KEEP: list[Host] = []

#: C name of each slot against the methods that make it up, in CPython's order: what `stator slots` reports on. The
#: sequence slots share their methods with those of numbers
SLOTS: dict[str, tuple[str, ...]] = {
    "tp_getattro": ("__getattribute__", "__getattr__"),
    "tp_setattro": ("__setattr__", "__delattr__"),
    "tp_repr": ("__repr__",),
    "tp_hash": ("__hash__",),
    "tp_call": ("__call__",),
    "tp_str": ("__str__",),
    "tp_richcompare": ("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"),
    "tp_iter": ("__iter__",),
    "tp_iternext": ("__next__",),
    "tp_descr_get": ("__get__",),
    "tp_descr_set": ("__set__", "__delete__"),
    "tp_init": ("__init__",),
    "tp_new": ("__new__",),
    "tp_finalize": ("__del__",),
    "bf_getbuffer": ("__buffer__",),
    "bf_releasebuffer": ("__release_buffer__",),
    "am_await": ("__await__",),
    "am_aiter": ("__aiter__",),
    "am_anext": ("__anext__",),
    "nb_add": ("__add__", "__radd__"),
    "nb_subtract": ("__sub__", "__rsub__"),
    "nb_multiply": ("__mul__", "__rmul__"),
    "nb_remainder": ("__mod__", "__rmod__"),
    "nb_divmod": ("__divmod__", "__rdivmod__"),
    "nb_power": ("__pow__", "__rpow__"),
    "nb_negative": ("__neg__",),
    "nb_positive": ("__pos__",),
    "nb_absolute": ("__abs__",),
    "nb_bool": ("__bool__",),
    "nb_invert": ("__invert__",),
    "nb_lshift": ("__lshift__", "__rlshift__"),
    "nb_rshift": ("__rshift__", "__rrshift__"),
    "nb_and": ("__and__", "__rand__"),
    "nb_xor": ("__xor__", "__rxor__"),
    "nb_or": ("__or__", "__ror__"),
    "nb_int": ("__int__",),
    "nb_float": ("__float__",),
    "nb_inplace_add": ("__iadd__",),
    "nb_inplace_subtract": ("__isub__",),
    "nb_inplace_multiply": ("__imul__",),
    "nb_inplace_remainder": ("__imod__",),
    "nb_inplace_power": ("__ipow__",),
    "nb_inplace_lshift": ("__ilshift__",),
    "nb_inplace_rshift": ("__irshift__",),
    "nb_inplace_and": ("__iand__",),
    "nb_inplace_xor": ("__ixor__",),
    "nb_inplace_or": ("__ior__",),
    "nb_floor_divide": ("__floordiv__", "__rfloordiv__"),
    "nb_true_divide": ("__truediv__", "__rtruediv__"),
    "nb_inplace_floor_divide": ("__ifloordiv__",),
    "nb_inplace_true_divide": ("__itruediv__",),
    "nb_index": ("__index__",),
    "nb_matrix_multiply": ("__matmul__", "__rmatmul__"),
    "nb_inplace_matrix_multiply": ("__imatmul__",),
    "mp_length": ("__len__",),
    "mp_subscript": ("__getitem__",),
    "mp_ass_subscript": ("__setitem__", "__delitem__"),
    "sq_concat": (),
    "sq_repeat": (),
    "sq_contains": ("__contains__",),
    "sq_inplace_concat": (),
    "sq_inplace_repeat": (),
}

#: the slots of comparisons, each with its operator
COMPARISONS = {"__lt__": "<", "__le__": "<=", "__eq__": "==", "__ne__": "!=", "__gt__": ">", "__ge__": ">="}


def register(host: Host, handler: Handler) -> None:
    """Make `handler` the model of the host callable `host`."""
    HANDLERS[id(host)] = handler
    _KEEP.append(host)


def amend(host: Host, change: Callable[[Handler], Handler]) -> None:
    """Put what `change` makes of the model of a host callable in its place, if one has been registered."""
    handler = HANDLERS.get(id(host))
    if handler is not None:
        HANDLERS[id(host)] = change(handler)


def models(*classes: type) -> Callable[[V], V]:
    """Class decorator: the Value class models instances of these host types.

    Each method of the Value class, inherited ones included, that the host type itself has too becomes the model of the
    host type's descriptor. The model of a special method `__x__` is named `tp_x` (`tp_len`, `tp_add`, `tp_init`), and
    `tp_richcompare` is that of all six comparisons: the special methods of a Value class itself are what Python calls
    on the Value, not on what it stands for.
    """

    def decorate(value_class: V) -> V:
        methods = {name: method for base in _modelling(value_class) for name, method in vars(base).items()}
        if "call" in methods:
            methods.setdefault("tp_call", _explicit_call)
        for cls in classes:
            MODELS[cls] = value_class
            for name, method in methods.items():
                _register_method(cls, value_class, name, method)
        return value_class

    return decorate


def _modelling(value_class: type[Value]) -> list[type]:
    """The classes along the MRO whose methods are models, the last one first."""
    general = (Value.__module__, object.__module__)
    return [base for base in reversed(value_class.__mro__) if base.__module__ not in general]


def _explicit_call(self: Any, space: Space, /, *args: Value, **kwargs: Value) -> Value:
    """`type(x).__call__(x, …)` of a value with a `call`."""
    return self.call(space, list(args), kwargs, False)  # type: ignore[no-any-return]


def _register_method(cls: type, value_class: type[Value], name: str, method: Host) -> None:
    if name == "tp_richcompare":
        for slot, symbol in COMPARISONS.items():
            if slot in vars(cls):
                register(vars(cls)[slot], _comparison_adaptor(vars(cls)[slot], value_class, method, symbol))
        return
    if name.startswith("__") or not isinstance(method, types.FunctionType | staticmethod):
        return
    host_name = f"__{name[3:]}__" if name.startswith("tp_") else name
    host = cls.__dict__.get(host_name)
    if host is None:
        return
    if isinstance(method, staticmethod) or host_name == "__new__":
        function = method.__func__ if isinstance(method, staticmethod) else method
        register(
            host.__func__ if isinstance(host, staticmethod | classmethod) else host, _plain_adaptor(host, function)
        )
    else:
        adaptor = _getter_adaptor if name == "tp_get" else _method_adaptor
        register(host, adaptor(host, value_class, method))


_BY_NAME = inspect.Parameter.POSITIONAL_OR_KEYWORD
#: where the methods that make objects have the type whose signature is theirs
_CONSTRUCTED = {"__new__": "__self__", "__init__": "__objclass__"}


class _Signature:
    """Which calls the model of a host callable can take."""

    def __init__(self, host: Host, function: types.FunctionType, skip: int) -> None:
        self.host = host
        self.name = getattr(host, "__name__", "")
        code = inspect.unwrap(function).__code__
        self.positional = code.co_varnames[skip : code.co_argcount]
        self.most = len(self.positional)
        self.least = self.most - len(function.__defaults__ or ())
        if code.co_flags & 0x04:
            self.most = 1 << 30
        self.any_name = bool(code.co_flags & 0x08)
        named = code.co_varnames[max(skip, code.co_posonlyargcount) : code.co_argcount + code.co_kwonlyargcount]
        self.names = frozenset(named)

    def fits(self, count: int, kwargs: dict[str, Value]) -> bool:
        """Whether so many positional arguments and these keywords fill the parameters."""
        if not kwargs:
            return self.least <= count <= self.most
        if count > self.most or not (self.any_name or kwargs.keys() <= self.names):
            return False
        needed = self.positional[count : self.least]
        if not self.names.isdisjoint(kwargs.keys() & set(self.positional[:count])):
            return False
        return not needed or (kwargs.keys() >= set(needed) and self._takes_by_name(needed))

    def _takes_by_name(self, names: tuple[str, ...]) -> bool:
        """Whether CPython takes these parameters, which it requires, by name too."""
        owner = getattr(self.host, _CONSTRUCTED.get(self.name, ""), None)  # as a constructor says nothing of its own
        try:
            parameters = inspect.signature(owner if isinstance(owner, type) else self.host).parameters
        except (TypeError, ValueError):
            return False
        return all(name in parameters and parameters[name].kind is _BY_NAME for name in names)


def _method_adaptor(host: Host, value_class: type[Value], method: Host) -> Handler:
    signature = _Signature(host, method, 2)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if args:
            self = args[0].force() if args[0].lazy else args[0]
            if isinstance(self, value_class) and signature.fits(len(args) - 1, kwargs):
                return method(self, space, *args[1:], **kwargs)  # type: ignore[no-any-return]
            owner = getattr(host, "__objclass__", None)
            if owner is not None and not isinstance(self, value_class) and self.isa(owner):
                return space.unmodelled(host, args, kwargs)
        return bad_call(space, host, args, kwargs)

    return handler


def _comparison_adaptor(host: Host, value_class: type[Value], method: Host, symbol: str) -> Handler:
    """The model of one of the six comparisons: `tp_richcompare(self, space, symbol, other)`."""

    def compare(self: Value, space: Space, other: Value, /) -> Value:
        return method(self, space, symbol, other.force())  # type: ignore[no-any-return]

    return _method_adaptor(host, value_class, compare)


def _getter_adaptor(host: Host, value_class: type[Value], method: Host) -> Handler:
    """`wrap_descr_get`, before the model of the slot: `tp_get(self, space, instance, owner)`."""

    def get(self: Value, space: Space, instance: Value, owner: Value = NONE, /) -> Value:
        instance = instance.force()
        if instance.is_none() and owner.is_none():
            raise space.error(TypeError, "__get__(None, None) is invalid")
        return method(self, space, instance, owner)  # type: ignore[no-any-return]

    return _method_adaptor(host, value_class, get)


def _plain_adaptor(host: Host, function: Host) -> Handler:
    signature = _Signature(host, function, 1)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if signature.fits(len(args), kwargs):
            return function(space, *args, **kwargs)  # type: ignore[no-any-return]
        return bad_call(space, host, args, kwargs)

    return handler


def builtin(*hosts: Host) -> Callable[[F], F]:
    """Function decorator: `function(space, *args, **kwargs)` models the builtin callable(s)."""

    def decorate(function: F) -> F:
        for host in hosts:
            register(host, _plain_adaptor(host, function))
        return function

    return decorate


def method_of(value_class: type[Value], *hosts: Host) -> Callable[[F], F]:
    """Function decorator: `function(self, space, *args, **kwargs)` models a method for `self` of this model."""

    def decorate(function: F) -> F:
        for host in hosts:
            register(host, _method_adaptor(host, value_class, function))
        return function

    return decorate


def pure(*hosts: Host) -> None:
    """Declare host callables free of side effects and dependent on their operands only."""
    for host in hosts:
        PURE.add(id(host))
        _KEEP.append(host)


def impure(*hosts: Host) -> None:
    """Declare methods of immutable host types that may not run for real after all."""
    for host in hosts:
        IMPURE.add(id(host))
        _KEEP.append(host)


def folds_if(*hosts: Host) -> Callable[[F], F]:
    """Function decorator: `function(space, args, kwargs)` looks at host operands before the callables run for real."""

    def decorate(function: F) -> F:
        for host in hosts:
            RESTRICTED[id(host)] = function
            _KEEP.append(host)
        return function

    return decorate


def of_existing(*hosts: Host) -> None:
    """Declare that the models of host callables answer for objects that existed before the trace only."""
    EXTERNAL_ONLY.update(map(id, hosts))
    _KEEP.extend(hosts)


def bad_call(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A call whose arguments do not fit: CPython itself words the TypeError, on samples, which it rejects unread."""
    samples = [space.sample(a) for a in args]
    try:
        host(*samples, **{k: space.sample(v) for k, v in kwargs.items()})
    except TypeError as e:
        raise Raised(space.exception(e)) from None
    except Exception:
        pass
    return space.unmodelled(host, args, kwargs)


def is_pure(host: Host) -> bool:
    """Whether the callable may run for real on known operands."""
    known = _said_pure(host)
    if known is None and load(host):
        known = _said_pure(host)
    if known is not None:
        return known
    owner = owner_of(host)
    if owner is None and not issubclass(type(host), type):
        owner = getattr(host, "__self__", None)
        if owner is None:
            return False
        if not isinstance(owner, type):
            owner = type(owner)
    return owner in IMMUTABLE


def _said_pure(host: Host) -> bool | None:
    """What the tables say."""
    return True if id(host) in PURE else False if id(host) in IMPURE else None


def ask_hooks(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """What the first of `CALL_HOOKS` gives for the call that knows these operands."""
    for hook in CALL_HOOKS:
        result = hook(space, host, args, kwargs)
        if result is not None:
            return result
    return None


def handler_of(host: Host) -> Handler | None:
    """The model of a host callable."""
    handler = HANDLERS.get(id(host))
    if handler is None and load(host):
        handler = HANDLERS.get(id(host))
    return handler


def is_immutable(cls: type) -> bool:
    """Whether instances of the host type are Constants."""
    return cls in IMMUTABLE or (cls not in MODELS and load(cls) and cls in IMMUTABLE)


def model_for(cls: type) -> type[Value]:
    """The model of instances of `cls`: that of the first class along the MRO that has one."""
    for base in cls.__mro__:
        model = MODELS.get(base)
        if model is None and load(base):
            model = MODELS.get(base)
        if model is not None:
            return model
    raise AssertionError("object has a model")


NOT_IMPLEMENTED = Constant(NotImplemented)
NONE = Constant(None)
TRUE = Constant(True)
FALSE = Constant(False)
