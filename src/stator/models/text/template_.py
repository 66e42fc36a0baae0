"""Templates, which t-strings make, and their interpolations (`string.templatelib`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stator.host.version_facts import TEMPLATES
from stator.host.words import error_words
from stator.models.iterators.iterator import IteratorValue, advanced, iterator_type
from stator.space.deferred import concatenated
from stator.space.facts import part
from stator.space.protocol import NONE, bad_call, models
from stator.space.recursion import enumeration, repr_piece
from stator.space.value import Constant, ObjectValue, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stator.guards.source import Source
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["InterpolationValue", "TemplateValue"]

_library: Any = import_module("string.templatelib") if TEMPLATES else None
_Template: Any = _library.Template if TEMPLATES else None
_Interpolation: Any = _library.Interpolation if TEMPLATES else None
_TemplateIter: Any = type(iter(_Template())) if TEMPLATES else None


class _Parts(ObjectValue):
    """An object that is known by the values of some attributes, which never change."""

    __slots__ = ("parts",)
    host_type: Any
    names: tuple[str, ...]

    def __init__(self, *parts: Value) -> None:
        super().__init__(self.host_type)
        self.parts = dict(zip(self.names, parts, strict=True))

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> Value:
        space.guard_type(host, source)
        self = cls(*(part(space, host, source, name) for name in cls.names))
        self.source, self.host = source, host
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Any) -> Value:
        return cls(*(space.fresh(getattr(host, name)) for name in cls.names))

    def held(self) -> Iterable[Value]:
        return self.parts.values()

    def tp_repr(self, space: Space) -> Value:
        return enumeration(f"{self.host_type.__name__}(", [repr_piece(space, v) for v in self.parts.values()], ")")


def _part(name: str) -> Callable[[_Parts, Space], Value]:
    return lambda self, space: self.parts[name]


def _values(template: _Parts, space: Space) -> Value:
    found = space.unpack(template.parts["interpolations"])
    return space.new_tuple([space.getattr(interpolation, "value") for interpolation in found])


class InterpolationValue(_Parts):
    """What stands in the braces of a t-string."""

    __slots__ = ()
    host_type = _Interpolation
    names = ("value", "expression", "conversion", "format_spec")
    FIELDS = {name: _part(name) for name in names}

    @staticmethod
    def tp_new(
        space: Space,
        cls: Value,
        value: Value,
        expression: Value = Constant(""),  # noqa: B008
        conversion: Value = NONE,
        format_spec: Value = Constant(""),  # noqa: B008
    ) -> Value:
        # CPython checks them.
        space.run_known(_Interpolation, [NONE, expression.force(), conversion.force(), format_spec.force()])
        return InterpolationValue(value, expression, conversion, format_spec)

    def tp_reduce(self, space: Space) -> Value:
        return space.new_tuple([space.class_value(_Interpolation), space.new_tuple(list(self.parts.values()))])

    def as_host(self, space: Space) -> Any:
        return _Interpolation(*(v.as_host(space) for v in self.parts.values()))

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        parts = ", ".join(writer.expr(v) for v in self.parts.values())
        return writer.assign("interpolation", f"{writer.const(_Interpolation)}({parts})")


class TemplateValue(_Parts):
    """A tuple of strings, and one of the interpolations between them."""

    __slots__ = ()
    host_type = _Template
    names = ("strings", "interpolations")
    FIELDS = {"strings": _part("strings"), "interpolations": _part("interpolations"), "values": _values}

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value) -> Value:
        """Strings that follow each other become one, and between interpolations there is an empty one."""
        strings: list[Value] = []
        interpolations: list[Value] = []
        for arg in args:
            arg = arg.force()
            if arg.isa(str) and len(strings) > len(interpolations):
                strings[-1] = space.binary("+", strings[-1], arg)
            elif arg.isa(str):
                strings.append(arg)
            elif arg.cls is _Interpolation:
                if len(strings) == len(interpolations):
                    strings.append(Constant(""))
                interpolations.append(arg)
            else:
                raise space.error(TypeError, error_words(_Template, space.sample(arg)))
        if len(strings) == len(interpolations):
            strings.append(Constant(""))
        return TemplateValue(space.new_tuple(strings), space.new_tuple(interpolations))

    def items(self, space: Space) -> list[Value]:
        """What it gives one after the other: strings that are not empty, and interpolations."""
        strings, found = space.unpack(self.parts["strings"]), [*space.unpack(self.parts["interpolations"]), None]
        pairs = (item for pair in zip(strings, found, strict=True) for item in pair)
        return [item for item in pairs if item is not None and (item.force().cls is not str or space.truth(item))]

    def tp_iter(self, space: Space) -> Value:
        return TemplateIterator(self)

    def tp_add(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if not isinstance(other, TemplateValue):
            return bad_call(space, _Template.__add__, [self, other], {})
        left, right = (space.unpack(template.parts["strings"]) for template in (self, other))
        strings = [*left[:-1], space.binary("+", left[-1], right[0]), *right[1:]]
        both = [item for template in (self, other) for item in space.unpack(template.parts["interpolations"])]
        return TemplateValue(space.new_tuple(strings), space.new_tuple(both))

    def tp_repr(self, space: Space) -> Value:
        strings, interpolations = (repr_piece(space, value) for value in self.parts.values())
        return concatenated("Template(strings=", strings, ", interpolations=", interpolations, ")")

    def tp_reduce(self, space: Space) -> Value:
        function = space.existing(_library._template_unpickle)
        return space.new_tuple([function, space.new_tuple(list(self.parts.values()))])

    def as_host(self, space: Space) -> Any:
        return _library._template_unpickle(*(v.as_host(space) for v in self.parts.values()))

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        parts = ", ".join(writer.expr(v) for v in self.parts.values())
        return writer.assign("template", f"{writer.const(_library._template_unpickle)}({parts})")


class TemplateIterator(IteratorValue):
    """`iter(template)`."""

    __slots__ = ("index", "template")

    def __init__(self, template: TemplateValue) -> None:
        super().__init__(_TemplateIter)
        self.template = template
        self.index = 0

    def held(self) -> Iterable[Value]:
        return (self.template,)

    def produce(self, space: Space) -> Value | None:
        items = self.template.items(space)
        if self.index == len(items):
            return None
        space.mark_mutated(self)
        self.index += 1
        return items[self.index - 1]

    def rebuilt(self, writer: Writer) -> str:
        return advanced(writer, f"iter({writer.expr(self.template)})", self.index)


if TEMPLATES:
    models(_Interpolation)(InterpolationValue)
    models(_Template)(TemplateValue)
    iterator_type(_TemplateIter)(TemplateIterator)
