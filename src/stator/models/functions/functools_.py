"""The C half of functools: `partial` and `reduce`."""

from __future__ import annotations

import functools

from stator.guards.source import Source
from stator.host.version_facts import TYPES_NAMED_IN_FULL
from stator.models.classes.attr_dict import assign_dict
from stator.models.classes.late_dict import LateDictValue
from stator.models.functions.arguments import keyword_args
from stator.models.iterators.iterator import reduction
from stator.space.attributes import MISSING
from stator.space.deferred import concatenated
from stator.space.facts import attribute
from stator.space.interfaces import Writer
from stator.space.operands import known_host, refuse_use
from stator.space.protocol import NONE, builtin, models
from stator.space.recursion import entered, repr_piece
from stator.space.space import Space
from stator.space.value import Constant, Raised, Value


@models(functools.partial)
class PartialValue(LateDictValue):
    """`functools.partial(function, *args, **keywords)`."""

    __slots__ = ("_args", "_function", "_keywords")
    FIELDS = {
        "func": lambda self, space: self.part(space, "func"),
        "args": lambda self, space: self.part(space, "args"),
        "keywords": lambda self, space: self.part(space, "keywords"),
    }

    def __init__(self, cls: type, function: Value | None, args: Value | None, keywords: Value | None) -> None:
        super().__init__(cls)
        self._function = function
        self._args = args
        self._keywords = keywords

    @classmethod
    def from_host(cls, space: Space, host: functools.partial[object], source: Source) -> PartialValue:
        self = cls(space.guard_type(host, source), None, None, None)
        self.host, self.source = host, source
        return self

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, /, *args: Value, **keywords: Value) -> Value:
        owner = known_host(space, cls, "functools.partial")
        function = function.force()
        if space.host_lookup(function.cls, "__call__") is MISSING:
            raise space.error(TypeError, "the first argument must be callable")
        items, named = list(args), dict(keywords)
        if isinstance(function, PartialValue) and function.is_bare(space):
            items = [*space.unpack(function.part(space, "args")), *items]
            named = {**function.named(space), **named}
            function = function.part(space, "func")
        pairs: list[tuple[Value, Value]] = [(Constant(name), value) for name, value in named.items()]
        return PartialValue(owner, function, space.new_tuple(items), space.new_dict(pairs))

    def part(self, space: Space, name: str) -> Value:
        """`func`, `args` or `keywords`."""
        slot = {"func": "_function", "args": "_args", "keywords": "_keywords"}[name]
        value: Value | None = getattr(self, slot)
        if value is None:
            assert self.source is not None
            value = attribute(space, self, name)
            setattr(self, slot, value)
        return value

    def named(self, space: Space) -> dict[str, Value]:
        """The keywords as they are now."""
        return keyword_args(space, self.part(space, "keywords"), self)

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        overriding = space.host_lookup(self.cls, "__call__")
        if overriding is not functools.partial.__call__:
            return space.call(space.bind(space.lookup(self.cls, "__call__"), self), args, kwargs, in_tail_position)  # type: ignore[arg-type]
        positional = [*space.unpack(self.part(space, "args")), *args]
        return space.call(self.part(space, "func"), positional, {**self.named(space), **kwargs}, in_tail_position)

    def tp_call(self, space: Space, /, *args: Value, **kwargs: Value) -> Value:
        positional = [*space.unpack(self.part(space, "args")), *args]
        return space.call(self.part(space, "func"), positional, {**self.named(space), **kwargs})

    def tp_repr(self, space: Space) -> Value:
        name = space.full_name(self.cls) if TYPES_NAMED_IN_FULL else self.type_name(space)
        with entered(space, self) as again:
            if again:
                return Constant("...")
            parts = [repr_piece(space, self.part(space, "func"))]
            for item in space.unpack(self.part(space, "args")):
                parts += (", ", repr_piece(space, item))
            for key, value in self.part(space, "keywords").force().pairs(space):  # type: ignore[attr-defined]
                parts += (f", {space.str_(space.str(key))}=", repr_piece(space, value))
        return concatenated(f"{name}(", *parts, ")")

    def tp_reduce(self, space: Space) -> Value:
        attrs = NONE if self.is_bare(space) else space.getattr(self, "__dict__")
        parts = [self.part(space, name) for name in ("func", "args", "keywords")]
        return reduction(space, self.cls, [parts[0]], space.new_tuple([*parts, attrs]))

    def tp_setstate(self, space: Space, state: Value, /) -> Value:
        state = state.force()
        parts = [part.force() for part in space.unpack(state)] if state.isa(tuple) else []
        if self.source is not None:
            raise refuse_use("functools.partial.__setstate__", "of an object that was made outside")
        function, args, keywords, attrs = parts if len(parts) == 4 else (NONE, NONE, NONE, NONE)
        callable_ = space.host_lookup(function.cls, "__call__") is not MISSING
        if not callable_ or not args.isa(tuple) or not keywords.isa((dict, type(None))):
            raise space.error(TypeError, "invalid partial state")
        space.mark_mutated(self)
        self._function = function
        self._args = args if args.cls is tuple else space.new_tuple(space.unpack(args))
        named = space.new_dict([]) if keywords.is_none() else keywords
        self._keywords = named if named.cls is dict else space.call(space.existing(dict), [named], {})
        if self._attrs is not None:
            self._attrs.dict_owner = None
            self._attrs = None
        if not attrs.is_none() and not assign_dict(space, self, attrs):
            raise refuse_use("functools.partial.__setstate__", "with a dict of another kind")
        return NONE

    def describe(self) -> str:
        return "a functools.partial object"

    def rebuilt(self, writer: Writer) -> str:
        assert self._function is not None and self._args is not None and self._keywords is not None
        # The constructor would see through a function that is itself a partial; and the parts may refer to the object.
        name: str = writer.assign("partial", f"{writer.const(self.cls)}({writer.const(callable)})")
        writer.name_value(self, name)
        parts = [writer.expr(part) for part in (self._function, self._args, self._keywords)]
        writer.line(f"{name}.__setstate__(({', '.join(parts)}, None))")
        if self._attrs is not None:
            self._attrs.write(writer, name)
        return name


@builtin(functools.reduce)
def reduce_(space: Space, function: Value, iterable: Value, initial: Value | None = None, /) -> Value:
    try:
        iterator = space.iter(iterable)
    except Raised as e:
        if not e.matches(TypeError):
            raise
        raise space.error(TypeError, "reduce() arg 2 must support iteration") from None
    result = initial
    for item in space.iterate(iterator):
        result = item if result is None else space.call(function, [result, item], {})
    if result is None:
        raise space.error(TypeError, "reduce() of empty iterable with no initial value")
    return result
