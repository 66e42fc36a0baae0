"""Classes made by the traced program: `class` statements, `type(name, bases, namespace)`, `type_new`."""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import builtins

from stator import errors
from stator.guards.raw import is_subtype
from stator.host.version_facts import SET_NAME_ADDS_A_NOTE
from stator.models.classes.fresh_class import FreshClass
from stator.models.classes.method_wrappers import is_abstract
from stator.models.classes.type_ import ClassValue
from stator.models.exceptions import exception
from stator.models.functions.cell import CellValue
from stator.models.functions.function import FunctionValue
from stator.space.deferred import concatenated
from stator.space.operands import check_kind, host_errors
from stator.space.protocol import NONE, builtin
from stator.space.recursion import repr_piece
from stator.space.space import Space
from stator.space.value import Constant, Raised, Unsupported, Value

_CONFLICT = (
    "metaclass conflict: the metaclass of a derived class must be a (non-strict) subclass of the metaclasses "
    "of all its bases"
)


# -- the class statement ----------------------------------------------------------------------------------------------


@builtin(builtins.__build_class__)
def build_class(space: Space, function: Value, name: Value, /, *bases: Value, **kwargs: Value) -> Value:
    function = function.force()
    if not isinstance(function, FunctionValue):
        raise space.error(TypeError, "__build_class__: func must be a function")
    check_kind(space, name, str, "__build_class__: name is not a string")
    given = [base.force() for base in bases]
    resolved = _resolve_bases(space, given)
    meta = kwargs.pop("metaclass", None)
    meta = _default_metaclass(space, resolved) if meta is None else meta.force()
    if meta.isa(type):
        meta = _winner(space, meta, resolved)
    bases_value = space.new_tuple(resolved)
    namespace = _prepare(space, meta, name, bases_value, kwargs)
    cell = space.trace.calls.inline_class_body(function, namespace)
    if len(given) != len(resolved) or any(a is not b for a, b in zip(given, resolved, strict=True)):
        space.setitem(namespace, Constant("__orig_bases__"), space.new_tuple(given))
    made = space.call(meta, [name, bases_value, namespace], kwargs).force()
    _check_cell(space, cell, made)
    return made


def _resolve_bases(space: Space, bases: list[Value]) -> list[Value]:
    """`update_bases`: what `__mro_entries__` puts in place of bases that are no classes."""
    resolved: list[Value] = []
    for base in bases:
        entries = None if base.isa(type) else space.getattr_or_none(base, "__mro_entries__")
        if entries is None:
            resolved.append(base)
            continue
        found = space.call(entries, [space.new_tuple(bases)], {}).force()
        check_kind(space, found, tuple, "__mro_entries__ must return a tuple")
        resolved += [item.force() for item in space.unpack(found)]
    return resolved


def _default_metaclass(space: Space, bases: list[Value]) -> Value:
    return space.class_value(bases[0].cls if bases else type)


def _winner(space: Space, meta: Value, bases: list[Value]) -> Value:
    """`_PyType_CalculateMetaclass`."""
    winner: type = meta.as_host(space)
    for base in bases:
        if is_subtype(winner, base.cls):
            continue
        if not is_subtype(base.cls, winner):
            raise space.error(TypeError, _CONFLICT)
        winner = base.cls
    return space.class_value(winner)


def _prepare(space: Space, meta: Value, name: Value, bases: Value, kwargs: dict[str, Value]) -> Value:
    prepare = space.getattr_or_none(meta, "__prepare__")
    if prepare is None:
        return space.new_dict([])
    namespace = space.call(prepare, [name, bases], dict(kwargs)).force()
    if space.special(namespace, "__getitem__") is None:
        shown = space.class_name(meta.host) if isinstance(meta, ClassValue) else "<metaclass>"
        raise space.error(TypeError, f"{shown}.__prepare__() must return a mapping, not {namespace.type_name(space)}")
    return namespace


def _check_cell(space: Space, cell: Value, made: Value) -> None:
    """The `__class__` cell of the body must have been filled by `type.__new__`."""
    cell = cell.force()
    if not isinstance(cell, CellValue) or not isinstance(made, ClassValue):
        return
    if cell.contents is None:
        text = f"__class__ not set defining {space.class_name(made.host)!r} as {_shown(space, made)}. "
        raise space.error(RuntimeError, f"{text}Was __classcell__ propagated to type.__new__?")
    if cell.contents.force() is not made:
        named = f"{space.class_name(made.host)!r} as {_shown(space, made)}"
        raise space.error(TypeError, f"__class__ set to {_shown(space, cell.contents)} defining {named}")


def _shown(space: Space, value: Value) -> str:
    return space.str_(concatenated(repr_piece(space, value)))


# -- type.__new__ -----------------------------------------------------------------------------------------------------


@builtin(type.__new__)
def type_new(space: Space, meta: Value, /, *args: Value, **kwargs: Value) -> Value:
    """`type.__new__(meta, name, bases, namespace, **kwargs)`."""
    meta = meta.force()
    if len(args) != 3:
        raise space.error(TypeError, f"type.__new__() takes exactly 3 arguments ({len(args)} given)")
    name, bases, namespace = (a.force() for a in args)
    for index, (value, kind) in enumerate(((name, str), (bases, tuple), (namespace, dict)), 1):
        check_kind(space, value, kind, f"type.__new__() argument {index} must be {kind.__name__}, not %T")
    base_values = _checked_bases(space, bases)
    winner = _winner(space, meta, base_values)
    if winner is not meta:
        new = space.getattr(winner, "__new__")
        if space.identity(new) is not type.__dict__["__new__"]:
            return space.call(new, [winner, *args], kwargs)
        meta = winner
    made = FreshClass(space, meta, space.str_(name), base_values, namespace).value
    _announce(space, made, kwargs)
    return made


def _checked_bases(space: Space, bases: Value) -> list[Value]:
    values = [item.force() for item in space.unpack(bases)]
    for base in values:
        if not base.isa(type):
            if space.getattr_or_none(base, "__mro_entries__") is not None:
                text = "type() doesn't support MRO entry resolution; use types.new_class()"
                raise space.error(TypeError, text)
            if issubclass(type, base.cls):
                raise space.error(TypeError, "bases must be types")
            # `_PyType_CalculateMetaclass` comes before the look at the bases themselves.
            raise space.error(TypeError, _CONFLICT)
    return values or [space.class_value(object)]


def _announce(space: Space, made: ClassValue, kwargs: dict[str, Value]) -> None:
    """`__set_name__` of the attributes, then `__init_subclass__` of the parent."""
    for name, value in list(made.recipe.attributes.items()):
        hook = space.special(value, "__set_name__")
        if hook is None:
            continue
        try:
            space.call(hook, [value, made, Constant(name)], {})
        except Raised as e:
            raise _set_name_failed(space, e, name, value, made) from None
    parent = space.call(space.class_value(super), [made, made], {})
    space.call(space.getattr(parent, "__init_subclass__"), [], kwargs)


def _set_name_failed(space: Space, raised: Raised, name: str, value: Value, made: ClassValue) -> Raised:
    text = (
        f"Error calling __set_name__ on '{value.type_name(space)}' instance {name!r} in {space.class_name(made.host)!r}"
    )
    if SET_NAME_ADDS_A_NOTE:
        space.call_method(raised.value, "add_note", Constant(text))
        return raised
    error: Raised = space.error(RuntimeError, text)
    exception.set_cause(space, error.value, raised.value)
    exception.set_context(space, error.value, raised.value)
    return error


# -- abc --------------------------------------------------------------------------------------------------------------


@builtin(_abc._abc_init)
def abc_init(space: Space, cls: Value, /) -> Value:
    """`compute_abstract_methods`, and the registry."""
    cls = cls.force()
    if not isinstance(cls, ClassValue) or not isinstance(cls.recipe, FreshClass):
        raise Unsupported(errors.UnsupportedCCall("_abc._abc_init"))
    names = [n for n, v in cls.recipe.attributes.items() if is_abstract(space, v)]
    for base in cls.recipe.bases:
        inherited = space.getattr_or_none(base, "__abstractmethods__")
        for item in () if inherited is None else space.unpack(inherited):
            name = space.str_(item)
            value = space.getattr_or_none(cls, name)
            if value is not None and is_abstract(space, value):
                names.append(name)
    with host_errors(space, TypeError):
        _abc._abc_init(cls.recipe.skeleton)
    cls.recipe.set_abstract(space, space.fresh(frozenset(names)))
    cls.recipe.is_abstract_base = True
    return NONE
