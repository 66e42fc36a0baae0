"""The methods of random.Random that are written in Python: a draw each, where the generator is in no known state.

What decides more than once which items a method gives (`choice` of functions, `shuffle`) is left to Python at its call.
"""

from __future__ import annotations

import _random
import inspect
import random
from collections.abc import Iterable
from types import FunctionType
from typing import TYPE_CHECKING

from stator import errors
from stator.guards.raw import instance_dict
from stator.models.containers.sequence import Sequence
from stator.models.numbers.random_ import RandomValue
from stator.models.numbers.ways import breaks_at_calls
from stator.space import facts
from stator.space.protocol import register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.space.host_types import Host
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__: list[str] = []


def _is_plain(generator: Host) -> bool:
    """Whether nothing in it stands for one of its methods."""
    return type(generator) is random.Random and set(instance_dict(generator) or ()) <= {"gauss_next"}


def _drawing(method: FunctionType, whole: set[type]) -> Handler:
    """The model of a method, written in Python, that draws one number.

    Args:
        method: the method.
        whole: the types its arguments may have.
    """
    signature = inspect.signature(method)
    names = _used_by(method)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        generator = args[0].force() if args else None
        if (
            not isinstance(generator, RandomValue)
            or not generator.is_open(space)
            or not _draws_itself(space, generator, names)
        ):
            return None
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return None
        if kwargs:
            bound.apply_defaults()
        given = [arg if isinstance(arg, Value) else Constant(arg) for arg in bound.args[1:]]
        return generator.draw(space, method, given) if all(arg.force().cls in whole for arg in given) else None

    return handler


def _chosen(generator: Host, *items: Host) -> Host:
    """`generator.choice(items)`, of numbers."""
    return generator.choice(items)


def _choice(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`generator.choice(seq)`: one of several numbers is a number that is drawn."""
    if len(args) != 2 or kwargs:
        return None
    generator, items = args[0].force(), args[1].force()
    if not isinstance(items, Sequence) or items.cls not in (list, tuple) or items.source is not None:
        return None
    given = [item.force() for item in items.items]
    kinds = {item.cls for item in given if item.constant}
    if kinds not in ({int}, {float}) or not all(item.constant for item in given):
        return None
    if (
        not isinstance(generator, RandomValue)
        or not generator.is_open(space)
        or not _draws_itself(space, generator, _used_by(_METHODS["choice"]))
    ):
        return None
    return generator.draw(space, _chosen, given)


def _deciding(method: FunctionType, first: Handler | None = None) -> Handler:
    """The model of a method that draws which items it gives: left to Python where that decides too much."""
    name = method.__name__

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        generator = args[0].force() if args else None
        if not isinstance(generator, RandomValue) or not generator.is_open(space):
            return None
        found = None if first is None else first(space, args, kwargs)
        if found is None and breaks_at_calls(space.trace):
            raise Unsupported(errors.DrawnBranch(f"what random.{name} gives"))
        return found

    return handler


def _draws_itself(space: Space, generator: RandomValue, names: Iterable[str]) -> bool:
    """Whether the generator draws as Python's own class does, by the methods of these names."""
    if generator.cls is not random.Random:
        return False
    if any(space.host_lookup(generator.cls, name) is not _METHODS[name] for name in names):
        return False
    own = generator.attr_dict(space)
    if space.has_changed(instance_dict(generator.host)) and any(own.get_str(space, name) for name in names):
        return False
    return facts.holds(space, generator, _is_plain, "has no methods of its own")


def _used_by(method: FunctionType, known: frozenset[str] = frozenset()) -> frozenset[str]:
    """The methods that one may call, by their names."""
    names = known | (_METHODS.keys() & method.__code__.co_names)
    for name in names - known:
        used = _METHODS[name]
        if isinstance(used, FunctionType):
            names |= _used_by(used, names)
    return names


#: of Python's own class, and what these are by their names
_METHODS: dict[str, Host] = {
    name: method
    for cls in (_random.Random, random.Random)
    for name, method in vars(cls).items()
    if callable(method) and not name.startswith("__")
}
_WHOLE = ("randrange", "randint", "binomialvariate")
_REAL = (
    *("uniform", "triangular", "gauss", "normalvariate", "lognormvariate", "expovariate", "vonmisesvariate"),
    *("gammavariate", "betavariate", "paretovariate", "weibullvariate"),
)

for _name in ("choices", "sample", "shuffle"):
    register(_METHODS[_name], _deciding(_METHODS[_name]))
register(_METHODS["choice"], _deciding(_METHODS["choice"], _choice))
for _name in (*_WHOLE, "_randbelow", *_REAL):
    if isinstance(_METHODS.get(_name), FunctionType):
        register(_METHODS[_name], _drawing(_METHODS[_name], {int} if _name not in _REAL else {int, float, type(None)}))
