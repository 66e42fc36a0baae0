"""property: `property` of `Objects/descrobject.c`."""

from __future__ import annotations

from stator import errors
from stator.guards.source import Source
from stator.host.version_facts import PROPERTIES_ARE_NAMED_BY_GETTERS, PROPERTY_DOC_MUST_FIT
from stator.models.classes.method_wrappers import is_abstract, overridden_get
from stator.space.facts import answer, attribute, part
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import bool_value
from stator.space.protocol import NONE, models
from stator.space.space import Space
from stator.space.value import Constant, ExtensibleValue, Raised, Unsupported, Value

#: the functions of a property, each with the method that calls it
_METHODS = {"fget": "__get__", "fset": "__set__", "fdel": "__delete__"}


@models(property)
class PropertyValue(ExtensibleValue):
    """A property, or an instance of a subclass."""

    __slots__ = ("_doc", "getter_doc", "name", "parts", "slots")
    ALWAYS_EXISTING = True
    FIELDS = {
        "fget": lambda self, space: self.parts["fget"],
        "fset": lambda self, space: self.parts["fset"],
        "fdel": lambda self, space: self.parts["fdel"],
        "__doc__": lambda self, space: self._doc_value(space),
        "__isabstractmethod__": lambda self, space: bool_value(
            any(is_abstract(space, part) for part in self.parts.values())
        ),
        "__name__": lambda self, space: None if self.source is not None or self.name is None else Constant(self.name),
    }

    def __init__(self, cls: type = property) -> None:
        super().__init__(cls)
        self.parts: dict[str, Value] = dict.fromkeys(_METHODS, NONE)
        self._doc: Value = NONE
        self.getter_doc = False
        #: what `__set_name__` was told, for error messages
        self.name: str | None = None
        self.slots: dict[Host, Value | None] = {}

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> PropertyValue:
        self = cls(space.guard_type(host, source))
        self.host, self.source = host, source
        self.parts = {name: part(space, host, source, name) for name in _METHODS}
        return self

    # -- making -----------------------------------------------------------------------------------------------------

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        return PropertyValue(cls.force().as_host(space))

    def tp_init(
        self, space: Space, fget: Value = NONE, fset: Value = NONE, fdel: Value = NONE, doc: Value = NONE
    ) -> Value:
        if self.source is not None:
            raise Unsupported(errors.UnsupportedMethod(self.cls.__name__, "__init__"))
        space.mark_mutated(self)
        self.parts = {"fget": fget.force(), "fset": fset.force(), "fdel": fdel.force()}
        self._doc = doc.force()
        self.getter_doc = False
        if self._doc.is_none() and not fget.is_none():
            found = space.getattr_or_none(fget, "__doc__")
            if found is not None and not found.is_none():
                self._doc = found
                self.getter_doc = True
        if self.cls is not property:
            self._keep_doc(space)
        return NONE

    def _keep_doc(self, space: Space) -> None:
        """An instance of a subclass has its documentation as an ordinary attribute, where there is room for it."""
        if not PROPERTY_DOC_MUST_FIT and not self.getter_doc:
            return
        try:
            space.setattr(self, "__doc__", self._doc)
        except Raised as e:
            if self.getter_doc or not e.matches(AttributeError):
                raise

    def getter(self, space: Space, function: Value, /) -> Value:
        return self._copy(space, fget=function)

    def setter(self, space: Space, function: Value, /) -> Value:
        return self._copy(space, fset=function)

    def deleter(self, space: Space, function: Value, /) -> Value:
        return self._copy(space, fdel=function)

    def _copy(self, space: Space, **changed: Value) -> Value:
        parts = {k: v if changed.get(k, NONE).is_none() else changed[k] for k, v in self.parts.items()}
        doc = NONE if self._has_getter_doc(space) and not parts["fget"].is_none() else self._doc_value(space)
        made = space.call(space.class_value(self.cls), [*parts.values(), doc], {}).force()
        if isinstance(made, PropertyValue) and made.source is None:
            made.name = self.name if self.host is None else _host_name(self.host)
        return made

    def _has_getter_doc(self, space: Space) -> bool:
        return self.getter_doc if self.host is None else bool(answer(space, self, _getter_doc, "getter_doc"))

    def _doc_value(self, space: Space) -> Value:
        if self.source is None:
            return self._doc
        return attribute(space, self, "__doc__")

    def tp_set_name(self, space: Space, owner: Value, name: Value, /) -> Value:
        if self.source is not None:
            raise Unsupported(errors.UnsupportedMethod("property", "__set_name__"))
        space.mark_mutated(self)
        self.name = str(space.known(name))
        return NONE

    # -- the descriptor protocol --------------------------------------------------------------------------------------

    def descr_get(self, space: Space, instance: Value | None, owner: type, in_tail_position: bool) -> Value:
        if space.host_lookup(self.cls, "__get__") is not property.__get__:
            return overridden_get(space, self, instance, owner)
        return self if instance is None else self._apply(space, "fget", instance, in_tail_position=in_tail_position)

    def _apply(self, space: Space, part: str, instance: Value, *value: Value, in_tail_position: bool = False) -> Value:
        """Call one of the three functions for the instance."""
        function = self.parts[part].force()
        if function.is_none():
            raise self._refuse(space, instance, _METHODS[part])
        return space.call(function, [instance, *value], {}, in_tail_position)

    def tp_get(self, space: Space, instance: Value, owner: Value, /) -> Value:
        return self if instance.is_none() else self._apply(space, "fget", instance)

    def tp_set(self, space: Space, instance: Value, value: Value, /) -> Value:
        self._apply(space, "fset", instance, value)
        return NONE

    def tp_delete(self, space: Space, instance: Value, /) -> Value:
        self._apply(space, "fdel", instance)
        return NONE

    def _shown_name(self, space: Space) -> str | None:
        """`property_name`: the name given to it, else that of its getter."""
        name = self.name if self.host is None else _host_name(self.host)
        if name is not None or self.host is not None:
            return name
        if not PROPERTIES_ARE_NAMED_BY_GETTERS or self.parts["fget"].is_none():
            return None
        found = space.getattr_or_none(self.parts["fget"], "__name__")
        return space.str_(found) if found is not None and found.isa(str) else None

    def _refuse(self, space: Space, instance: Value, method: str) -> Raised:
        """CPython words the AttributeError: a property as empty as this one, used on an object of a class so named."""
        name = self._shown_name(space)
        probe = property()
        if name is not None:
            probe.__set_name__(object, name)  # type: ignore[attr-defined]
        cls = type("Probe", (), {"__qualname__": instance.force().cls.__qualname__})
        try:
            getattr(probe, method)(*[cls(), None][: 2 if method == "__set__" else 1])
        except AttributeError as e:
            return Raised(space.exception(e))
        raise AssertionError("an empty property has no accessors")

    # -- attributes, reconstruction -----------------------------------------------------------------------------------

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        if name != "__doc__" or self.source is not None:
            return False
        space.mark_mutated(self)
        self._doc = NONE if value is None else value
        return True

    def shell(self, writer: Writer) -> str:
        return f"{writer.const(property)}.__new__({writer.const(self.cls)})"

    def rebuilt(self, writer: Writer) -> str:
        name: str = writer.early(self)
        parts = [writer.expr(part) for part in self.parts.values()]
        doc = "None" if self.getter_doc else writer.expr(self._doc)
        writer.line(f"{writer.const(property)}.__init__({name}, {', '.join(parts)}, {doc})")
        if self.name is not None:
            writer.line(f"{name}.__set_name__(None, {self.name!r})")
        if self._attrs is not None:
            self._attrs.write(writer, name)
        return name


def _host_name(host: property) -> str | None:
    """The name an existing property gives in its error messages."""
    if PROPERTIES_ARE_NAMED_BY_GETTERS:
        name = getattr(host, "__name__", None)
        return name if isinstance(name, str) else None
    return _named(host)


def _named(host: property) -> str | None:
    # 3.11 and 3.12 show the name only in a message; an accessor that exists would run, so ask for one that is missing.
    for method, accessor in (("__get__", host.fget), ("__set__", host.fset), ("__delete__", host.fdel)):
        if accessor is None:
            try:
                getattr(property, method)(host, *[_NoClass(), None][: 2 if method == "__set__" else 1])
            except AttributeError as e:
                words = str(e).split(" of ")[0].split("'")
                return words[1] if len(words) > 2 else None
    return None


class _NoClass:
    """An object to try a property on."""


def _documented(instance: object) -> None:
    """Something that nothing else says of itself."""


def _getter_doc(host: property) -> bool:
    """Whether the documentation was taken from the function that reads it, which may have another by now."""
    if type(host) is property:  # a flag that only the copying shows
        return property.getter(host, _documented).__doc__ is _documented.__doc__
    return host.__doc__ is not None and host.__doc__ is getattr(host.fget, "__doc__", None)
