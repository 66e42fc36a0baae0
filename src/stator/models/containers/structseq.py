"""Structure sequences (`time.struct_time`, `os.stat_result` …): what they have beyond tuples.

CPython itself makes them, of place holders for the items where those are more than constants: it checks and words all.
"""

from __future__ import annotations

from stator.models.containers.tuple_ import TupleValue
from stator.models.iterators.iterator import reduction
from stator.space.host_types import Host
from stator.space.protocol import pure, register
from stator.space.space import Space
from stator.space.value import Constant, NotKnown, Value


class _Item:
    """Stands for the value of an item."""

    def __init__(self, value: Value) -> None:
        self.value = value


def _stands(space: Space, value: Value) -> Host:
    """The operand of `__new__` or `__replace__` with place holders for what it holds."""
    value = value.force()
    if value.isa(dict):
        names = [space.known(name) for name in space.unpack(value)]
        if not all(type(name) is str for name in names):
            raise NotKnown(value)
        return {name: _Item(space.getitem(value, Constant(name))) for name in names}
    if value.isa((tuple, list)):
        return [_Item(item) for item in space.unpack(value)]
    return value.as_host(space)


def _made(space: Space, host: Host) -> Value:
    """The value of a structure sequence of place holders."""

    def value_of(item: Host) -> Value:
        return item.value if type(item) is _Item else space.fresh(item)

    made = TupleValue([value_of(item) for item in tuple.__iter__(host)], type(host))
    made.hidden = {name: value_of(item) for name, item in host.__reduce__()[1][1].items()}
    return made


def _model_new(cls: type, host: Host) -> None:
    def new(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        try:
            hosts = [cls, *(_stands(space, arg) for arg in args[1:])]
            made = host(*hosts, **{name: _stands(space, arg) for name, arg in kwargs.items()})
        except (NotKnown, TypeError):
            return None  # CPython says what is wrong
        return _made(space, made)

    register(host, new)


def _model_reduce(host: Host) -> None:
    def reduce(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        value = args[0].force() if len(args) == 1 and not kwargs else None
        if not isinstance(value, TupleValue):
            return None
        fields = value.hidden_fields(space).items()
        hidden: list[tuple[Value, Value]] = [(Constant(name), item) for name, item in fields]
        return reduction(space, value.cls, [space.new_tuple(value.items), space.new_dict(hidden)])

    register(host, reduce)


def _model_replace(host: Host) -> None:
    def replace(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        value = args[0].force() if len(args) == 1 else None
        if not isinstance(value, TupleValue):
            return None
        hidden = {name: _Item(item) for name, item in value.hidden_fields(space).items()}
        try:
            copied: Host = value.cls([_Item(item) for item in value.items], hidden)
            made = host(copied, **{name: _Item(item) for name, item in kwargs.items()})
        except TypeError:
            return None  # CPython says what is wrong
        return _made(space, made)

    register(host, replace)


def _model_structures() -> None:
    for cls in type.__subclasses__(tuple):
        own = vars(cls)
        if "n_sequence_fields" not in own:
            continue
        # Where the models decline, they follow from the items, as the text does.
        pure(*[own[name] for name in ("__new__", "__repr__", "__reduce__", "__replace__") if name in own])
        if "__new__" in own:
            _model_new(cls, own["__new__"])
            _model_reduce(own["__reduce__"])
        if "__replace__" in own:
            _model_replace(own["__replace__"])


_model_structures()
