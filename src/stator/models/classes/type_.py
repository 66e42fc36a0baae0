"""Classes: calling one, its attributes, `type` of `Objects/typeobject.c`."""

from __future__ import annotations

import gc
import types
from typing import Any

from stator import errors
from stator.guards.guard import Predicate
from stator.guards.raw import base_of, is_mutable_type, type_flags, type_lookup, type_name
from stator.guards.source import CallSource, ConstSource, GetAttrSource, Source
from stator.models.containers.mappingproxy import MappingProxyValue
from stator.models.functions.method import DISALLOW_INSTANTIATION
from stator.space.attributes import MISSING, attribute_name
from stator.space.interfaces import Writer
from stator.space.operands import host_errors
from stator.space.protocol import (
    IMMUTABLE,
    LAST_RESORTS,
    NONE,
    PURE,
    ask_hooks,
    builtin,
    handler_of,
    models,
)
from stator.space.signals import DoFirst
from stator.space.skeleton import SKELETONS
from stator.space.space import Space
from stator.space.value import Constant, Known, NotKnown, Unsupported, Value
from stator.space.wrapping import plain_name

#: types of what a class has as `__del__` where no code of the program's is run
_C_FINALISERS = (type(MISSING), types.WrapperDescriptorType, types.MethodDescriptorType)
#: what a class's dict has where its annotations, or the function that gives them, have been asked for or set
_KEPT_AS = {
    "__annotations__": frozenset({"__annotations__", "__annotations_cache__"}),
    "__annotate__": frozenset({"__annotate__", "__annotate_func__"}),
}
_PLAIN_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})


@models(type)
class ClassValue(Known):
    """A class: an existing one, or one that the traced program has made (`host` is then its skeleton)."""

    __slots__ = ("changed", "namespace", "recipe")
    ALWAYS_EXISTING = True
    CACHED_WEAKLY = True

    def __init__(self, host: type, source: Source | None = None) -> None:
        super().__init__(host, source)
        #: attributes that the traced program has set, in order
        self.changed: dict[str, Value] = {}
        #: the dict behind `__dict__`, if the program has asked for it
        self.namespace: Value | None = None
        #: how generated code makes a fresh class
        self.recipe: Any = None

    @classmethod
    def from_host(cls, space: Space, host: type, source: Source) -> ClassValue:
        self = cls(host, source)
        space.guard_identity(self)
        space.guard_type(host, ConstSource(host, plain_name(host)))
        return self

    def as_host(self, space: Space) -> type:
        if self.recipe is not None and space.computing:
            raise NotKnown(self)
        return self.host  # type: ignore[no-any-return]

    def describe(self) -> str:
        return f"class {plain_name(self.host)}"

    def reconstruct(self, writer: Writer) -> str:
        if self.recipe is not None:
            return self.recipe.reconstruct(writer)  # type: ignore[no-any-return]
        return writer.const(self.host)

    def shell(self, writer: Writer) -> str:
        return self.recipe.shell(writer)  # type: ignore[no-any-return]

    def key(self, space: Space) -> object:
        meta = self.cls
        if all(space.host_lookup(meta, name) is type_lookup(type, name) for name in ("__hash__", "__eq__")):
            return self.host
        return super(Known, self).key(space)

    # -- calling ----------------------------------------------------------------------------------------------------

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        if self.cls is not type and space.host_lookup(self.cls, "__call__") is not type.__call__:
            slot = space.special(self, "__call__")
            if slot is None:
                raise space.error(TypeError, f"'{self.type_name(space)}' object is not callable")
            return space.call(slot, [self, *args], kwargs, in_tail_position)
        try:
            return instantiate(space, self, args, kwargs)
        except Unsupported:
            resort = LAST_RESORTS.get(self.host) if in_tail_position else None
            found = None if resort is None else resort(space, args, kwargs)
            if found is None:
                raise
            return found

    def tp_call(self, space: Space, /, *args: Value, **kwargs: Value) -> Value:
        return instantiate(space, self, list(args), kwargs)

    # -- attributes -------------------------------------------------------------------------------------------------

    def getattr(self, space: Space, name: str, in_tail_position: bool = False) -> Value:
        """`type_getattro`: data descriptor of the metaclass, own MRO, the metaclass."""
        meta = space.lookup(self.cls, name)
        get = MISSING if meta is None else space.host_lookup(meta.cls, "__get__")
        if meta is not None and get is not MISSING and space.is_data_descriptor(meta):
            return space.descr_get(meta, self, self.cls, in_tail_position)
        found = space.lookup(self.host, name)
        if found is not None:
            if space.host_lookup(found.cls, "__get__") is not MISSING:
                return space.descr_get(found, None, self.host, in_tail_position)
            return found
        if meta is not None:
            return meta if get is MISSING else space.descr_get(meta, self, self.cls, in_tail_position)
        text = f"type object '{type_name(self.host)}' has no attribute '{name}'"
        raise space.no_attribute(self, name, text, self.host)

    def tp_getattribute(self, space: Space, name: Value, /) -> Value:
        return self.getattr(space, attribute_name(space, name))

    def tp_setattr(self, space: Space, name: Value, value: Value, /) -> Value:
        self._check_changeable(space, name)
        self.assign(space, attribute_name(space, name), value.force())
        return NONE

    def tp_delattr(self, space: Space, name: Value, /) -> Value:
        self._check_changeable(space, name)
        self.assign(space, attribute_name(space, name), None)
        return NONE

    def _check_changeable(self, space: Space, name: Value) -> None:
        if not is_mutable_type(self.host):
            shown = space.str_(space.repr(name))
            text = f"cannot set {shown} attribute of immutable type '{_full_name(self.host)}'"
            raise space.error(TypeError, text)

    def assign(self, space: Space, name: str, value: Value | None) -> None:
        """`type_setattro`; value None deletes."""
        meta = space.lookup(self.cls, name)
        if meta is not None and space._descr_set(meta, self, value):
            return
        if self.recipe is not None:
            self.recipe.assign(space, name, value)
            return
        if value is None or self.namespace is not None or (name.startswith("__") and name.endswith("__")):
            # Special methods are looked up on the real class in many places.
            raise Unsupported(errors.UnsupportedMutation(f"setting '{name}'", self.describe()))
        space.lookup(self.host, name)
        space.mark_mutated(self)
        space.trace.classes.overlays.setdefault(self.host, {})[name] = value
        space.forget_class_attribute(name)
        self.changed[name] = value

    def effects(self, writer: Writer) -> list[str]:
        values = [(name, writer.expr(value)) for name, value in self.changed.items()]
        target = writer.const(self.host)
        setter = writer.const(type)
        return [f"{setter}.__setattr__({target}, {name!r}, {expr})" for name, expr in values]

    # -- C-level attributes -------------------------------------------------------------------------------------------

    @classmethod
    def answers(cls, host: type, name: str) -> bool:
        return True

    def get_field(self, space: Space, name: str) -> Value | None:
        host = self.host
        if self.recipe is not None:
            return self.recipe.get_field(space, name)  # type: ignore[no-any-return]
        if name in ("__mro__", "__bases__"):
            return self._classes(space, name)
        if name == "__dict__":
            return self._namespace(space)
        if name == "__base__":
            space.mro(host)
            return NONE if (base := base_of(host)) is None else space.class_value(base)
        if name in self.changed:
            raise Unsupported(errors.UnsupportedAttribute("type", name))
        if name in ("__annotations__", "__annotate__") and is_mutable_type(host):
            self._made_when_asked(space, name)
        with host_errors(space, AttributeError):
            found = type.__dict__[name].__get__(host)
        if not is_mutable_type(host) or name == "__flags__":  # bits of the flags change all the time
            return space.existing(found) if isinstance(found, type) else space.fresh(found)
        return space.wrap(found, GetAttrSource(ConstSource(host, plain_name(host)), name))

    def _classes(self, space: Space, name: str) -> Value:
        classes = type.__dict__[name].__get__(self.host)
        if is_mutable_type(self.host):
            space.guard_identity_of(GetAttrSource(ConstSource(self.host, plain_name(self.host)), name), classes)
        return space.existing(classes, f"{plain_name(self.host)}.{name}")

    def _namespace(self, space: Space) -> Value:
        if self.host in space.trace.classes.overlays:
            raise Unsupported(errors.UnsupportedAttribute("type", "__dict__"))
        if self.namespace is None:
            source = CallSource(namespace_of, ConstSource(self.host, plain_name(self.host)), "namespace_of")
            self.namespace = space.wrap(namespace_of(self.host), source).force()
        return MappingProxyValue(self.namespace)

    def _made_when_asked(self, space: Space, name: str) -> None:
        """CPython makes the dict of annotations when it is first asked for: that is done before the trace."""
        host = self.host
        if not _KEPT_AS[name].isdisjoint(type.__dict__["__dict__"].__get__(host)):
            return
        what = f"making {name!r} of class {plain_name(host)} {id(host)}"
        if what in space.trace.done_first:  # it has failed
            raise Unsupported(errors.UnsupportedMutation(f"making {name!r}", f"class {plain_name(host)}"))
        raise DoFirst(what, lambda: type.__dict__[name].__get__(host))

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        return self.recipe is not None and bool(self.recipe.set_field(space, name, value))

    # -- methods ----------------------------------------------------------------------------------------------------

    def mro(self, space: Space) -> Value:
        with host_errors(space, TypeError):
            space.mro(self.host)
            classes = type.mro(self.host)
        return space.new_list([space.class_value(cls) for cls in classes])

    def tp_subclasses(self, space: Space) -> Value:
        found = [cls for cls in _subclasses(self.host) if cls not in SKELETONS or space.trace.classes.is_fresh(cls)]
        if any(space.trace.classes.is_fresh(cls) for cls in (self.host, *found)):
            raise Unsupported(errors.LifetimeObserved("__subclasses__ of a new class"))
        source = ConstSource(self.host, plain_name(self.host))
        ids = [id(cls) for cls in found]
        check = _SubclassesAre(ids)
        space.trace.guard(Predicate((source,), check, f"{source.expr()}.__subclasses__() are {len(ids)} known classes"))
        return space.new_list([space.class_value(cls) for cls in found])

    def tp_repr(self, space: Space) -> Value:
        """`type_repr`, which asks the type itself, whatever the metaclass says of these names."""
        if self.recipe is None and not is_mutable_type(self.host):
            return Constant(type.__repr__(self.host))
        getters = (space.existing(vars(type)[name]) for name in ("__qualname__", "__module__"))
        qualname, module = (getter.descr_get(space, self, self.cls, False) for getter in getters)  # type: ignore[attr-defined]
        if not module.isa(str) or space.str_(module) == "builtins":
            return Constant(f"<class '{space.type_name(self.host)}'>")
        return Constant(f"<class '{space.str_(module)}.{space.str_(qualname)}'>")

    def tp_dir(self, space: Space) -> Value:
        return space.new_list([Constant(name) for name in class_names(space, self)])

    def tp_init(self, space: Space, /, *args: Value, **kwargs: Value) -> Value:
        if len(args) not in (1, 3):
            raise space.error(TypeError, "type.__init__() takes 1 or 3 arguments")
        if kwargs and len(args) == 1:
            raise space.error(TypeError, "type.__init__() takes no keyword arguments")
        return NONE

    @staticmethod
    def tp_prepare(space: Space, meta: Value, /, *args: Value, **kwargs: Value) -> Value:
        return space.new_dict([])


def class_names(space: Space, cls: Any) -> dict[str, None]:
    """`merge_class_dict`: the names in the dicts of a class, or of what claims to be one, and of its bases."""
    if isinstance(cls, ClassValue) and (not is_mutable_type(cls.host) or space.trace.classes.is_fresh(cls.host)):
        found = vars(cls.host)
        bases = [space.class_value(base) for base in cls.host.__bases__]
    else:
        namespace, parents = (space.getattr_or_none(cls, name) for name in ("__dict__", "__bases__"))
        found = [] if namespace is None else [space.known(key) for key in space.unpack(namespace)]
        bases = [] if parents is None else space.unpack(parents)
    names = dict.fromkeys(name for name in found if isinstance(name, str))
    for base in bases:
        names |= class_names(space, base.force())
    return names


def namespace_of(cls: type) -> Any:
    """The dict behind the `__dict__` of a class."""
    return gc.get_referents(type.__dict__["__dict__"].__get__(cls))[0]


class _SubclassesAre:
    """Check that a class has exactly these subclasses."""

    def __init__(self, ids: list[int]) -> None:
        self.ids = ids

    def __call__(self, cls: type) -> bool:
        return [id(c) for c in _subclasses(cls) if c not in SKELETONS] == self.ids


def _subclasses(cls: type) -> list[type]:
    return type.__subclasses__(cls)


def _full_name(cls: type) -> str:
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


# -- tp_call ----------------------------------------------------------------------------------------------------------


def instantiate(space: Space, cls_value: ClassValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`type.__call__(cls, *args, **kwargs)`."""
    host = cls_value.host
    if host is type:
        return _call_type(space, cls_value, args, kwargs)
    handler = handler_of(host)
    if handler is not None:
        result = handler(space, args, kwargs)
        if result is not None:
            return result
    result = ask_hooks(space, host, args, kwargs)
    if result is not None:
        return result
    if host in IMMUTABLE or id(host) in PURE:
        try:
            return _construct_known(space, host, args, kwargs)
        except NotKnown:
            pass
    return construct(space, cls_value, args, kwargs)


def _call_type(space: Space, cls_value: ClassValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) == 1 and not kwargs:
        return space.class_value(args[0].force().cls)
    if len(args) != 3:
        raise space.error(TypeError, "type() takes 1 or 3 arguments")
    return construct(space, cls_value, args, kwargs)


def _construct_known(space: Space, host: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Let CPython make an immutable object of operands that run no code of the program's."""
    if not all(_is_plain(v) for v in (*args, *kwargs.values())):
        raise NotKnown(host)
    return space.run_known(host, args, kwargs)


def _is_plain(value: Value) -> bool:
    value = value.force()
    if value.constant:
        return value.host is not NotImplemented  # its truth value comes with a warning
    return value.cls in _PLAIN_CONTAINERS or value.cls is type


def construct(space: Space, cls_value: ClassValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`__new__`, then `__init__` if an instance came out."""
    host = cls_value.host
    if type_flags(host) & DISALLOW_INSTANTIATION:
        raise space.error(TypeError, f"cannot create '{_full_name(host)}' instances")
    if type(space.host_lookup(host, "__del__")) not in _C_FINALISERS:
        # When an object dies is not traced, so what its finaliser does cannot be either.
        raise Unsupported(errors.NewFinalizer(plain_name(host)))
    new = _unbound(space, cls_value, "__new__")
    made = space.call(new, [cls_value, *args], kwargs).force()
    if not space.derives(made.cls, host):
        return made
    initialise(space, made, args, kwargs)
    return made


def _unbound(space: Space, cls_value: ClassValue, name: str) -> Value:
    """The attribute of the class itself, as `cls.name` without the metaclass."""
    found = space.lookup(cls_value.host, name)
    if found is None:
        raise space.error(TypeError, f"cannot create '{_full_name(cls_value.host)}' instances")
    if space.host_lookup(found.cls, "__get__") is MISSING:
        return found
    return space.descr_get(found, None, cls_value.host)


def initialise(space: Space, made: Value, args: list[Value], kwargs: dict[str, Value]) -> None:
    """`slot_tp_init`."""
    slot = space.special(made, "__init__")
    if slot is None:
        raise space.error(TypeError, "'NoneType' object is not callable")
    result = space.call(slot, [made, *args], kwargs).force()
    if not result.is_none():
        raise space.error(TypeError, f"__init__() should return None, not '{result.type_name(space)}'")


@builtin(type.__dict__["__abstractmethods__"])
def type_abstractmethods(space: Space, cls: Value, /) -> Value:
    cls = cls.force()
    assert isinstance(cls, ClassValue)
    if cls.recipe is not None:
        found: Value | None = cls.recipe.get_field(space, "__abstractmethods__")
        if found is None:
            raise space.error(AttributeError, "__abstractmethods__")
        return found
    space.host_lookup(cls.host, "__abstractmethods__")
    host_found = MISSING if cls.host is type else namespace_of(cls.host).get("__abstractmethods__", MISSING)
    if host_found is MISSING:
        raise space.error(AttributeError, "__abstractmethods__")
    return space.fresh(host_found)
