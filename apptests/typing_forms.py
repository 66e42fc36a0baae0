"""Forms of `typing` and generic aliases, compared, subscripted and put into unions."""

import functools
import sys
import types
import typing
from collections.abc import Callable

from apptests.marks import expected_break

ALIAS = typing.List[int]
UNION = typing.Union[int, str]


def test_unions():
    assert int | str == UNION == typing.Union[str, int]
    assert (ALIAS | bytes) == typing.Union[bytes, typing.List[int]]
    assert typing.Optional[ALIAS] == typing.Union[ALIAS, None]
    assert hash(int | str) == hash(str | int)
    assert typing.Union[ALIAS, ALIAS] is ALIAS


def test_parts():
    assert typing.get_origin(ALIAS) is list and typing.get_args(ALIAS) == (int,)
    assert typing.get_args(UNION) == (int, str)
    assert isinstance(int | str, types.UnionType)
    assert repr(ALIAS) == "typing.List[int]"
    assert {ALIAS: 1}[typing.List[int]] == 1
    return ALIAS, typing.Dict[str, ALIAS]


USER = typing.NewType("USER", int)


def test_new_types():
    inner = typing.NewType("inner", str)
    word = inner("a")
    assert USER(3) == 3 and type(USER(3)) is int and word is inner(word)
    assert USER.__name__ == "USER" and USER.__supertype__ is int and repr(inner).endswith("inner")
    return USER(4), inner(word)


class Left:
    def __ror__(self, other):
        return "ror", other


class Other:
    pass


def test_unions_with_what_is_no_type():
    assert (int | Left()) == ("ror", int)
    try:
        int | Other()
    except TypeError as e:
        assert str(e) == "unsupported operand type(s) for |: 'type' and 'Other'"
    else:
        raise AssertionError


# -- aliases of the program's own classes -----------------------------------------------------------------------------


ITEM = typing.TypeVar("ITEM")


class Told(dict, typing.Generic[ITEM]):
    made = 0

    def __init__(self, *args):
        type(self).made += 1
        super().__init__(*args)

    @classmethod
    def count(cls):
        return cls.made


TOLD = types.GenericAlias(Told, int)


def test_calls_of_aliases():
    Told.made = 0
    made = [TOLD(), TOLD({"a": 1}), list[int]("ab")]
    assert Told.made == 2 == TOLD.made == TOLD.count()
    assert made[0].__orig_class__ is TOLD and vars(made[1]) == {"__orig_class__": TOLD}
    Told.made = 5
    return made, TOLD.count(), TOLD.__origin__ is Told, TOLD.__args__, hasattr(TOLD, "missing")


def test_callable_types():
    told, open_ended = Callable[[int, str], float], Callable[..., int]
    assert repr(told) == "collections.abc.Callable[[int, str], float]" and told.__args__ == (int, str, float)
    assert told == Callable[[int, str], float] and told is not Callable[[int, str], float]
    assert hash(told) == hash(Callable[[int, str], float]) and told.__origin__ is Callable
    assert typing.get_args(told) == ([int, str], float) and repr(open_ended) == "collections.abc.Callable[..., int]"
    return told, open_ended


def test_module_of_a_bound_builtin():
    parts = []
    assert parts.append.__module__ is None and functools.wraps(parts.append)(lambda x: x).__name__ == "append"


if sys.version_info >= (3, 12):
    NAMES = {}
    exec("def late(X):\n    X.T = float\n    return X.Alias.__value__", NAMES)

    @expected_break("attribute '__value__' of type 'TypeAliasType'")
    def test_values_of_aliases_are_computed_when_they_are_asked_for():
        exec("class X:\n    T = int\n    type Alias = T", NAMES)
        assert NAMES["late"](NAMES["X"]) is float
