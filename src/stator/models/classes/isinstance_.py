"""`isinstance` and `issubclass`: `Objects/abstract.c`, and the C half of `abc`."""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import _collections_abc
import abc
import contextlib
import os
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from stator.guards.guard import Equals, Predicate
from stator.guards.raw import is_mutable_type, is_subtype, type_lookup
from stator.guards.source import CallSource, ConstSource
from stator.models.classes import abc_cache
from stator.space.attributes import MISSING, is_generic
from stator.space.host_types import Host
from stator.space.interfaces import Trace
from stator.space.operands import bool_value, check_kind, host_errors, known_host
from stator.space.protocol import IMMUTABLE, builtin, pure
from stator.space.recursion import nested
from stator.space.space import Space
from stator.space.value import Constant, Value

IMMUTABLE.add(types.UnionType)
pure(type.__or__, type.__ror__)

_ABC_SUBCLASSCHECK = abc.ABCMeta.__dict__["__subclasscheck__"]
_SUBCLASSES = type.__dict__["__subclasses__"]
#: what a class inherits that has no hook of its own
_NO_HOOK = object.__dict__["__subclasshook__"]
#: the globals of hooks that only look for methods
_PURE_HOOKS = frozenset(id(vars(module)) for module in (_collections_abc, contextlib, os))
_CLASS = object.__dict__["__class__"]
#: classes whose attribute access is C code of their own that leaves `__class__` alone
_PLAIN_ACCESS = (type, types.ModuleType, types.MethodType)
#: `Py_TPFLAGS_SEQUENCE` and `Py_TPFLAGS_MAPPING`
_COLLECTION = 1 << 5 | 1 << 6
_GENERIC = "argument 2 cannot be a parameterized generic"

#: `answer(space, value or class, classes)`
Answer = Callable[[Space, Value, Value], bool]


class _Question(NamedTuple):
    """`isinstance` or `issubclass`: the metaclass's method; the answers of `type`, `abc`, and what acts as a class."""

    function: str
    hook: str
    real: Answer
    abstract: Answer
    by_bases: Answer


@builtin(isinstance)
def isinstance_(space: Space, value: Value, classes: Value, /) -> Value:
    return bool_value(_ask(space, _INSTANCE, value.force(), classes))


@builtin(issubclass)
def issubclass_(space: Space, cls: Value, classes: Value, /) -> Value:
    return bool_value(_is_subclass(space, cls, classes))


def _is_subclass(space: Space, cls: Value, classes: Value) -> bool:
    return _ask(space, _SUBCLASS, cls.force(), classes)


def _ask(space: Space, question: _Question, subject: Value, classes: Value) -> bool:
    """`object_isinstance` and `object_issubclass`."""
    classes = classes.force()
    kind = classes.cls
    if issubclass(kind, type):
        cls = known_host(space, classes, question.function)
        if question is _INSTANCE and subject.cls is cls:
            return True
        check = space.host_lookup(kind, question.hook)
        if check is vars(type)[question.hook]:
            return question.real(space, subject, classes)
        if check is vars(abc.ABCMeta)[question.hook] and not _asks_program(cls):
            return question.abstract(space, subject, classes)
    elif issubclass(kind, tuple):
        with nested(space, f" in {question.hook}"):
            return _ask_each(space, question, subject, space.unpack(classes))
    elif kind is types.UnionType:
        return _ask_each(space, question, subject, _union_args(space, classes, question.function))
    elif kind is types.GenericAlias:
        raise space.error(TypeError, f"{question.function}() {_GENERIC}")
    slot = space.special(classes, question.hook)
    if slot is None:
        return question.by_bases(space, subject, classes)
    return space.truth(space.call(slot, [classes, subject], {}))


def _ask_each(space: Space, question: _Question, subject: Value, classes: list[Value]) -> bool:
    return any(_ask(space, question, subject, each) for each in classes)


def _real_instance(space: Space, value: Value, classes: Value) -> bool:
    """`type.__instancecheck__`: by the real type, then by what `__class__` says."""
    cls = known_host(space, classes, "isinstance")
    if space.derives(value.cls, cls):
        return True
    claimed = _claimed_class(space, value)
    return claimed is not None and space.derives(claimed, cls)


def _claimed_class(space: Space, value: Value) -> type | None:
    """The class an object claims by a `__class__` of its own, where that is another than its real one."""
    generic = is_generic(space.host_lookup(value.cls, "__getattribute__")) or value.cls in _PLAIN_ACCESS
    if generic and space.host_lookup(value.cls, "__class__") is _CLASS:
        return None
    claimed = space.getattr_or_none(value, "__class__")
    if claimed is None or not claimed.isa(type):
        return None
    host: type = known_host(space, claimed, "isinstance")
    return None if host is value.cls else host


def _real_subclass(space: Space, cls: Value, classes: Value) -> bool:
    """`type.__subclasscheck__`."""
    if not cls.isa(type):
        return _subclass_by_bases(space, cls, classes)
    return space.derives(known_host(space, cls, "issubclass"), known_host(space, classes, "issubclass"))


# -- objects that act as classes by having `__bases__` ----------------------------------------------------------------


def _bases(space: Space, cls: Value) -> list[Value] | None:
    """`abstract_get_bases`: the `__bases__` of anything, if they are a tuple."""
    found = space.getattr_or_none(cls, "__bases__")
    if found is None or not found.isa(tuple):
        return None
    return [base.force() for base in space.unpack(found)]


def _leads_by_bases(space: Space, derived: Value, cls: Value) -> bool:
    while not space.is_(derived, cls):
        bases = _bases(space, derived)
        if not bases:
            return False
        if len(bases) > 1:
            return any(_leads_by_bases(space, base, cls) for base in bases)
        derived = bases[0]
    return True


def _check_class(space: Space, cls: Value, words: str) -> None:
    if _bases(space, cls) is None:
        raise space.error(TypeError, words)


def _instance_by_bases(space: Space, value: Value, classes: Value) -> bool:
    _check_class(space, classes, "isinstance() arg 2 must be a type, a tuple of types, or a union")
    claimed = space.getattr_or_none(value, "__class__")
    return claimed is not None and _leads_by_bases(space, claimed.force(), classes)


def _subclass_by_bases(space: Space, cls: Value, classes: Value) -> bool:
    _check_class(space, cls, "issubclass() arg 1 must be a class")
    _check_class(space, classes, "issubclass() arg 2 must be a class, a tuple of classes, or a union")
    return _leads_by_bases(space, cls, classes)


def _union_args(space: Space, union: Value, function: str) -> list[Value]:
    """The classes of `A | B`; None stands for its type."""
    parts: tuple[Host, ...] = known_host(space, union, f"{function}()").__args__
    if any(isinstance(part, types.GenericAlias) for part in parts):
        raise space.error(TypeError, f"{function}() {_GENERIC}")
    return [space.existing(part) for part in parts]


# -- what metaclasses call ------------------------------------------------------------------------------------------


@builtin(type.__dict__["__instancecheck__"])
def type_instancecheck(space: Space, cls: Value, value: Value, /) -> Value:
    return bool_value(_real_instance(space, value.force(), cls.force()))


@builtin(type.__dict__["__subclasscheck__"])
def type_subclasscheck(space: Space, classes: Value, cls: Value, /) -> Value:
    return bool_value(_real_subclass(space, cls.force(), classes.force()))


@builtin(_abc._abc_instancecheck)
def abc_instancecheck(space: Space, cls: Value, value: Value, /) -> Value:
    return bool_value(_abc_instance(space, value.force(), cls.force()))


@builtin(_abc._abc_subclasscheck)
def abc_subclasscheck(space: Space, classes: Value, cls: Value, /) -> Value:
    return bool_value(_abc_real_subclass(space, cls.force(), classes.force()))


def _abc_instance(space: Space, value: Value, classes: Value) -> bool:
    """`_abc._abc_instancecheck`: asks `__subclasscheck__` about the claimed and about the real class."""
    claimed = _claimed_class(space, value)
    asked = [value.cls] if claimed is None else [claimed, value.cls]
    return any(_abc_subclass(space, space.class_value(cls), classes) for cls in asked)


def _abc_subclass(space: Space, cls: Value, classes: Value) -> bool:
    """`classes.__subclasscheck__(cls)` for a class whose metaclass is ABCMeta or derives from it."""
    host = known_host(space, classes, "issubclass")
    if space.host_lookup(classes.cls, "__subclasscheck__") is _ABC_SUBCLASSCHECK and not _asks_program(host):
        return _abc_real_subclass(space, cls, classes)
    return space.truth(space.call_method(classes, "__subclasscheck__", cls))


_INSTANCE = _Question("isinstance", "__instancecheck__", _real_instance, _abc_instance, _instance_by_bases)
_SUBCLASS = _Question("issubclass", "__subclasscheck__", _real_subclass, _abc_subclass, _subclass_by_bases)


def _abc_real_subclass(space: Space, cls: Value, classes: Value) -> bool:
    check_kind(space, cls, type, "issubclass() arg 1 must be a class")
    host, subject = known_host(space, classes, "issubclass"), known_host(space, cls, "issubclass")
    made = any(is_subtype(each, host) and _asks_program(each) for each in space.trace.classes.fresh)
    if made or space.trace.classes.is_fresh(host) or _asks_program(host):
        return _traced_abc_subclass(space, classes, cls)
    if host in subject.__mro__ and space.host_lookup(classes.cls, "__subclasscheck__") is _ABC_SUBCLASSCHECK:
        hook = getattr(host.__subclasshook__, "__func__", MISSING)
        if hook is MISSING:
            return True
    with host_errors(space, Exception):
        answer = bool(_ABC_SUBCLASSCHECK(host, subject))  # hooks may look for the frame of abc
    if not answer and _registered(space, host, cls):
        return True
    if not answer and not space.trace.classes.is_fresh(subject):
        # A class may be registered later; it can never be unregistered.
        names = f"not issubclass({subject.__qualname__}, {host.__qualname__})"
        sources = (ConstSource(subject, subject.__qualname__), ConstSource(host, host.__qualname__))
        space.trace.guard(Predicate(sources, _no_subclass, names))
    return answer


def _asks_program(cls: type) -> bool:
    """Whether the class has a `__subclasshook__` that is traced, below the frames of `abc` that lead to it."""
    hook = type_lookup(cls, "__subclasshook__")
    if hook is _NO_HOOK:
        return False
    return type(hook) is not classmethod or id(getattr(hook.__func__, "__globals__", None)) not in _PURE_HOOKS


class _Remembered:
    """The answers about abstract classes with hooks of the program's that the trace has found: they remember them."""

    def __init__(self, trace: Trace) -> None:
        #: with how many registrations the trace had met
        self.answers: dict[tuple[type, type], tuple[bool, int]] = {}


def _traced_abc_subclass(space: Space, classes: Value, cls: Value) -> bool:
    """`_abc._abc_subclasscheck` of an abstract class with a hook of the program's, or which the trace has made."""
    host, subject = known_host(space, classes, "issubclass"), known_host(space, cls, "issubclass")
    answer = _known_abc_answer(space, host, subject)
    if answer is None:
        answer, remembered = _asked_abc_answer(space, classes, cls)
        if not remembered:
            return answer
        made = len(space.trace.classes.registered)
        space.trace.extension(_Remembered).answers[host, subject] = answer, made
        space.trace.defer(abc_cache.remember, [classes, cls, bool_value(answer)])
    return answer


def _asked_abc_answer(space: Space, classes: Value, cls: Value) -> tuple[bool, bool]:
    """The answer that the class gives when it is asked for the first time, and whether it remembers it."""
    answer = space.call(space.getattr(classes, "__subclasshook__"), [cls], {}).force()
    if not space.is_not_implemented(answer):
        if answer.cls is not bool:
            raise space.error(AssertionError)
        return space.truth(answer), True
    host, subject = known_host(space, classes, "issubclass"), known_host(space, cls, "issubclass")
    if space.derives(subject, host):
        return True, True
    refs: Any = () if space.trace.classes.is_fresh(host) else _abc._get_dump(host)[0]
    registered = [ref() for ref in refs]
    if subject in registered or (host, subject) in space.trace.classes.registered:
        return True, False
    existing = (space.existing(each) for each in registered if each is not None)
    if _registered(space, host, cls) or any(_is_subclass(space, cls, each) for each in existing):
        return True, True
    return any(_is_subclass(space, cls, each) for each in _derived(space, classes, host)), True


def _derived(space: Space, classes: Value, host: type) -> list[Value]:
    """`classes.__subclasses__()`"""
    own = space.host_lookup(classes.cls, "__subclasses__") is not _SUBCLASSES
    if not space.trace.classes.is_fresh(host) or own or space.host_lookup(host, "__subclasses__") is not MISSING:
        return space.unpack(space.call_method(classes, "__subclasses__"))
    derived: list[type] = type.__subclasses__(host)
    return [space.class_value(each) for each in derived if space.trace.classes.is_fresh(each)]


def _known_abc_answer(space: Space, host: type, subject: type) -> bool | None:
    """What an abstract class remembers of a class; each registration ends the memory of classes that are none."""
    trace = space.trace
    made = len(trace.classes.registered)
    answer, since = trace.extension(_Remembered).answers.get((host, subject), (None, made))
    if answer is None and not trace.classes.is_fresh(host) and not trace.classes.is_fresh(subject):
        answer, since = abc_cache.known(host, subject), 0
        words = {True: "", False: "not ", None: "not yet asked for: "}[answer]
        text = f"{words}issubclass({subject.__qualname__}, {host.__qualname__})"
        sources = (ConstSource(host, host.__qualname__), ConstSource(subject, subject.__qualname__))
        trace.guard(Predicate(sources, abc_cache.remembers(answer), text))
        if answer is None:
            abc_cache_token(space)  # the registrations so far are going to be looked at
    return answer if answer or since == made else None


def _registered(space: Space, host: type, cls: Value) -> bool:
    """Whether the traced program has registered the class, or a base of it, with `host` or what is below it."""
    for base, subclass in space.trace.classes.registered:
        below = is_subtype(base, host)
        if not below and not any(map(space.trace.classes.is_fresh, (base, host))):
            below = bool(_ABC_SUBCLASSCHECK(host, base))
        if below and _is_subclass(space, cls, space.class_value(subclass)):
            return True
    return False


@builtin(_abc._abc_register)
def abc_register(space: Space, classes: Value, cls: Value, /) -> Value:
    """Registered when the graph has run; until then the trace knows of it."""
    classes, cls = classes.force(), cls.force()
    check_kind(space, cls, type, "Can only register classes")
    if _is_subclass(space, cls, classes):
        return cls
    if _is_subclass(space, classes, cls):
        raise space.error(RuntimeError, "Refusing to create an inheritance cycle")
    host, subject = known_host(space, classes, "register"), known_host(space, cls, "register")
    pattern = host.__flags__ & _COLLECTION
    if pattern and is_mutable_type(subject):
        space.trace.classes.patterns[subject] = pattern
    space.trace.classes.registered.append((host, subject))
    space.trace.defer(abc.ABCMeta.register, [classes, cls])
    return cls


def _no_subclass(cls: type, classes: type) -> bool:
    return not issubclass(cls, classes)


@builtin(_abc.get_cache_token)
def abc_cache_token(space: Space) -> Value:
    """The number of registrations so far: known as long as there is no other."""
    token = _token(_abc)
    made = len(space.trace.classes.registered)
    space.trace.guard(Equals(CallSource(_token, ConstSource(_abc, "_abc"), "get_cache_token"), token))
    return Constant(token + made)


def _token(module: Host) -> int:
    return int(module.get_cache_token())
