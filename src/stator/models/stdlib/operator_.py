"""Module `operator`: each function is the operation of the space that it names."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

from stator.guards.guard import Length
from stator.guards.source import CallSource, ItemSource, Source
from stator.models.iterators.iterator import reduction
from stator.space.deferred import concatenated
from stator.space.facts import answer
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.length_hint import length_hint
from stator.space.operands import bool_value, check_kind, known_host, refuse_object
from stator.space.operators import BINARY, COMPARE, INPLACE
from stator.space.protocol import NONE, builtin, models
from stator.space.recursion import entered, repr_piece
from stator.space.space import Space
from stator.space.value import Constant, ObjectValue, Value


def _operation(host: Host, asked: str, symbol: str) -> None:
    """A function of two operands is `space.binary` or `space.compare` of its symbol."""
    builtin(host)(lambda space, left, right, /: getattr(space, asked)(symbol, left, right))


for _symbol, _entry in BINARY.items():
    _operation(_entry[0], "binary", _symbol)
for _symbol, _method in INPLACE.items():
    _operation(getattr(operator, _method.strip("_")), "binary", _symbol)
for _symbol, _entry in COMPARE.items():
    _operation(_entry[0], "compare", _symbol)

_FUNCTIONS: dict[Host, Callable[..., Value]] = {
    operator.neg: lambda space, value, /: space.unary("-", value),
    operator.pos: lambda space, value, /: space.unary("+", value),
    operator.inv: lambda space, value, /: space.unary("~", value),
    operator.invert: lambda space, value, /: space.unary("~", value),
    operator.abs: lambda space, value, /: space.unary("abs", value),
    operator.not_: lambda space, value, /: bool_value(not space.truth(value)),
    operator.truth: lambda space, value, /: bool_value(space.truth(value)),
    operator.is_: lambda space, left, right, /: bool_value(space.is_(left, right)),
    operator.is_not: lambda space, left, right, /: bool_value(not space.is_(left, right)),
    operator.contains: lambda space, container, item, /: bool_value(space.truth(space.contains(container, item))),
    operator.getitem: lambda space, container, key, /: space.getitem(container, key),
    operator.call: lambda space, function, /, *args, **kwargs: space.call(function, list(args), kwargs),
}
for _host, _model in _FUNCTIONS.items():
    builtin(_host)(_model)


@builtin(operator.index)
def index(space: Space, value: Value, /) -> Value:
    result = space.index(value).force()
    if result.cls is int:
        return result
    if result.symbolic:
        return Constant(operator.index(space.decide(result)))
    return space.run_known(operator.index, [result])


@builtin(operator.setitem)
def setitem(space: Space, container: Value, key: Value, item: Value, /) -> Value:
    space.setitem(container, key, item)
    return NONE


@builtin(operator.delitem)
def delitem(space: Space, container: Value, key: Value, /) -> Value:
    space.delitem(container, key)
    return NONE


def _concat(host: Host, symbol: str) -> None:
    def model(space: Space, left: Value, right: Value, /) -> Value:
        if space.special(left.force(), "__getitem__") is None:
            raise space.error(TypeError, f"'{left.force().type_name(space)}' object can't be concatenated")
        return space.binary(symbol, left, right)

    builtin(host)(model)


_concat(operator.concat, "+")
_concat(operator.iconcat, "+=")


@builtin(operator.countOf)
def count_of(space: Space, container: Value, item: Value, /) -> Value:
    return Constant(sum(1 for each in space.iterate(container) if space.equal(each, item)))


@builtin(operator.indexOf)
def index_of(space: Space, container: Value, item: Value, /) -> Value:
    for position, each in enumerate(space.iterate(container)):
        if space.equal(each, item):
            return Constant(position)
    raise space.error(ValueError, "sequence.index(x): x not in sequence")


@builtin(operator.length_hint)
def operator_length_hint(space: Space, value: Value, default: Value = Constant(0), /) -> Value:  # noqa: B008 (immutable)
    check_kind(space, default, int, "'%T' object cannot be interpreted as an integer")
    return length_hint(space, value.force(), default.force())


# -- getters --------------------------------------------------------------------------------------------------------


class Getter(ObjectValue):
    """A callable object of module `operator`; its parts are known."""

    __slots__ = ("args", "kwargs")
    #: the host type
    kind: type

    def __init__(self, args: list[Value], kwargs: dict[str, Value] | None = None, cls: type | None = None) -> None:
        super().__init__(cls or self.kind)
        self.args = args
        self.kwargs = kwargs or {}

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Getter:
        """The parts of an existing getter, found as `copy` finds them: by `__reduce__`."""
        own = space.guard_type(host, source)
        parts = _parts(host)
        base = CallSource(_parts, source, "parts")
        self = cls([space.wrap(part, ItemSource(base, i)) for i, part in enumerate(parts)], cls=own)
        space.trace.guard(Length(base, len(parts)))
        self.host, self.source = host, source
        return self

    def rebuilt(self, writer: Writer) -> str:
        parts = [writer.expr(arg) for arg in self.args]
        parts += [f"{name}={writer.expr(value)}" for name, value in self.kwargs.items()]
        return str(writer.assign(self.kind.__name__, f"{writer.const(self.cls)}({', '.join(parts)})"))

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        if kwargs or len(args) != 1:
            count = f"{self.kind.__name__} expected 1 argument, got {len(args)}"
            named = f"{self.kind.__name__}() takes no keyword arguments"
            raise space.error(TypeError, named if kwargs else count)
        return self.get(space, args[0])

    def tp_reduce(self, space: Space) -> Value:
        return reduction(space, self.cls, self.args)

    def tp_repr(self, space: Space) -> Value:
        with entered(space, self) as again:
            if again:
                return Constant(f"{self.type_name(space)}(...)")
            first, *others = [repr_piece(space, arg) for arg in self.args]
            pieces = [piece for other in others for piece in (", ", other)]
            for name, value in self.kwargs.items():
                pieces += (f", {name}=", repr_piece(space, value))
        return concatenated(f"{self.type_name(space)}(", first, *pieces, ")")

    def get(self, space: Space, value: Value) -> Value:
        """What the getter fetches from the value."""
        raise NotImplementedError


def _parts(host: Host) -> tuple[Host, ...]:
    made = host.__reduce__()
    if len(made) != 2 or made[0] is not type(host):
        raise TypeError("a methodcaller with keywords")
    return tuple(made[1])


def _each(space: Space, parts: list[Value], get: Callable[[Value], Value]) -> Value:
    found = [get(part) for part in parts]
    return found[0] if len(found) == 1 else space.new_tuple(found)


@models(operator.itemgetter)
class ItemGetter(Getter):
    """`operator.itemgetter(*keys)`."""

    __slots__ = ()
    kind = operator.itemgetter

    @staticmethod
    def tp_new(space: Space, cls: Value, item: Value, /, *items: Value) -> Value:
        return ItemGetter([item, *items], cls=known_host(space, cls, "operator.itemgetter"))

    def get(self, space: Space, value: Value) -> Value:
        return _each(space, self.args, lambda key: space.getitem(value, key))


@models(operator.attrgetter)
class AttrGetter(Getter):
    """`operator.attrgetter(*names)`, where a name may be dotted."""

    __slots__ = ()
    kind = operator.attrgetter

    @staticmethod
    def tp_new(space: Space, cls: Value, attr: Value, /, *attrs: Value) -> Value:
        names = [attr.force(), *(a.force() for a in attrs)]
        if not all(name.isa(str) for name in names):
            raise space.error(TypeError, "attribute name must be a string")
        return AttrGetter(names, cls=known_host(space, cls, "operator.attrgetter"))

    def get(self, space: Space, value: Value) -> Value:
        def follow(path: Value) -> Value:
            found = value
            for name in str(known_host(space, path, "operator.attrgetter")).split("."):
                found = space.getattr(found, name)
            return found

        return _each(space, self.args, follow)


def _has_keywords(caller: Host) -> bool:
    return caller.__reduce__()[0] is not type(caller)


@models(operator.methodcaller)
class MethodCaller(Getter):
    """`operator.methodcaller(name, *args, **kwargs)`."""

    __slots__ = ()
    kind = operator.methodcaller

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Getter:
        self = super().from_host(space, host, source)
        if answer(space, self, _has_keywords, "has_keywords"):
            raise refuse_object("an operator.methodcaller with keywords that was made outside the compiled function")
        return self

    @staticmethod
    def tp_new(space: Space, cls: Value, name: Value, /, *args: Value, **kwargs: Value) -> Value:
        check_kind(space, name, str, "method name must be a string")
        return MethodCaller([name, *args], kwargs, cls=known_host(space, cls, "operator.methodcaller"))

    def get(self, space: Space, value: Value) -> Value:
        name, *args = self.args
        method = space.getattr(value, str(known_host(space, name, "operator.methodcaller")))
        return space.call(method, args, self.kwargs)

    def tp_reduce(self, space: Space) -> Value:
        if not self.kwargs:
            return super().tp_reduce(space)
        name, *args = self.args
        # As in C: a partial of the class makes it again, with the name and the keywords.
        maker = space.call(space.existing(functools.partial), [space.class_value(self.cls), name], dict(self.kwargs))
        return space.new_tuple([maker, space.new_tuple(args)])
