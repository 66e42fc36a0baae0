"""Each kind of guard: what passes, what fails; on the C++ program and on the reference."""

from __future__ import annotations

import copy
import enum
import math
import pickle
from collections import Counter, OrderedDict, defaultdict, deque
from types import ModuleType

import pytest

from stator.guards.base import show
from stator.guards.guard import (
    CodeIs,
    Distinct,
    Equals,
    GlobalState,
    HasKey,
    IdIs,
    KeysAre,
    Length,
    NoAttr,
    NoKey,
    Predicate,
    SameObject,
    TypeAttrIs,
    TypeIs,
)
from stator.guards.raw import ABSENT
from stator.guards.source import AttrSource, ConstSource, ItemSource, LocalSource, TypeSource

X, Y, Z = (LocalSource(i, name) for i, name in enumerate("xyz"))


class Color(enum.Enum):
    RED = 1


class Same:
    """Claims to equal everything."""

    def __eq__(self, other):
        return True

    __hash__ = None


class Raises:
    def __eq__(self, other):
        raise ValueError

    def __hash__(self):
        return 0

    def __len__(self):
        raise ValueError

    def __bool__(self):
        raise ValueError


def test_type_is(check):
    class Child(int):
        pass

    class Liar:
        __class__ = int

    assert check([TypeIs(X, int)], (5,))
    for other in (True, Child(5), 5.0, Liar()):
        assert not check([TypeIs(X, int)], (other,))


def test_id_is(check):
    first, second = [], []
    assert check([IdIs(X, first)], (first,))
    assert not check([IdIs(X, first)], (second,))
    assert check([IdIs(X, Color.RED)], (Color.RED,))
    assert check([IdIs(X, None)], (None,))


ALIKE = [
    (1, 1),
    (10**30, 10**30),
    ("text", "te" + "xt"),
    (b"b", bytes([98])),
    (True, True),
    (None, None),
    (..., ...),
    (1.5, 1.5),
    (math.nan, math.nan),
    (-0.0, -0.0),
    (1j, 1j),
    (complex(math.nan, -0.0), complex(math.nan, -0.0)),
    ((1, (2.0, "x")), (1, (2.0, "x"))),
    (frozenset([1, (2, 3)]), frozenset([(2, 3), 1])),
    (slice(1, 2), slice(1, 2)),
    (range(3), range(0, 3)),
    ((), ()),
    ([1, [2.0]], [1, [2.0]]),
    ({"a": [1]}, {"a": [1]}),
]
UNLIKE = [
    (1, 2),
    (1, True),
    (True, 1),
    (1, 1.0),
    (0.0, -0.0),
    (0j, complex(-0.0, 0.0)),
    (1.0, math.nan),
    (math.nan, -math.nan),
    ("a", "b"),
    ("a", b"a"),
    ((1,), (True,)),
    ((1,), (1, 1)),
    ((0.0,), (-0.0,)),
    (frozenset([1]), frozenset([True])),
    (frozenset([1]), frozenset([1, 2])),
    (slice(1), slice(True)),
    (slice(1), slice(2)),
    (range(0), range(2, 1)),
    (1, Same()),
    ("a", Raises()),
    (None, 0),
    ([1], [True]),
    ([1], (1,)),
    ({1: 1}, {True: 1}),
    ({1: 1}, {1: True}),
    ({1: 1, 2: 2}, {2: 2, 1: 1}),
]


@pytest.mark.parametrize(("expected", "actual"), ALIKE, ids=repr)
def test_equals(check, expected, actual):
    assert check([Equals(X, expected)], (actual,))
    if not isinstance(expected, (list, dict)):  # these are told apart by identity
        assert Equals(X, expected) == Equals(X, actual)


@pytest.mark.parametrize(("expected", "actual"), UNLIKE, ids=lambda v: type(v).__name__)
def test_not_equals(check, expected, actual):
    assert not check([Equals(X, expected)], (actual,))
    assert Equals(X, expected) != Equals(X, actual)


def test_equals_of_other_types_compares_within_the_type(check):
    class Point:
        def __init__(self, x):
            self.x = x

        def __eq__(self, other):
            return isinstance(other, Point) and self.x == other.x

        __hash__ = None

    assert check([Equals(X, Point(1))], (Point(1),))
    assert not check([Equals(X, Point(1))], (Point(2),))
    assert not check([Equals(X, Raises())], (Raises(),))


class OddList(list):
    def __len__(self):
        return 99


@pytest.mark.parametrize(
    "container",
    [[1, 2], (1, 2), {1: 1, 2: 2}, {1, 2}, frozenset([1, 2]), deque([1, 2]), OrderedDict(a=1, b=2), OddList([1, 2]),
     "ab", range(2), Counter("ab"), defaultdict(int, a=1, b=1), {1: 1, 2: 2}.keys()],
    ids=lambda c: type(c).__name__,
)  # fmt: skip
def test_length(check, container):
    assert check([Length(X, 2)], (container,))
    assert not check([Length(X, 3)], (container,))
    assert not check([Length(X, 99)], (container,))


def test_length_of_what_has_none(check):
    for obj in (5, Raises(), None):
        assert not check([Length(X, 0)], (obj,))


def test_keys_are(check):
    key = Color.RED
    guard = KeysAre(X, ("a", 1, key))
    assert check([guard], ({"a": 0, 1: 0, key: 0},))
    assert not check([guard], ({1: 0, "a": 0, key: 0},))
    assert not check([guard], ({"a": 0, True: 0, key: 0},))
    assert not check([guard], ({"a": 0, 1: 0},))
    assert not check([guard], ({"a": 0, 1: 0, key: 0, "b": 0},))
    assert not check([guard], (["a", 1, key],))
    assert check([KeysAre(X, ())], ({},))


def test_keys_of_an_ordered_dict_are_in_its_own_order(check):
    ordered = OrderedDict(a=1, b=2)
    ordered.move_to_end("a")
    assert check([KeysAre(X, ("b", "a"))], (ordered,))
    assert not check([KeysAre(X, ("a", "b"))], (ordered,))


def test_has_and_lacks_key(check):
    class Odd(dict):
        def __contains__(self, key):
            return True

    for mapping in ({"a": None}, Odd(a=1)):
        assert check([HasKey(X, "a")], (mapping,))
        assert not check([HasKey(X, "b")], (mapping,))
        assert check([NoKey(X, "b")], (mapping,))
        assert not check([NoKey(X, "a")], (mapping,))
    for other in (["a"], None):
        assert not check([HasKey(X, "a")], (other,))
        assert not check([NoKey(X, "b")], (other,))


def test_a_key_that_cannot_be_compared_is_neither_there_nor_absent(check):
    class Bad(Raises):
        def __hash__(self):
            return hash("a")

    mapping = {Bad(): 1}
    assert not check([HasKey(X, "a")], (mapping,))
    assert not check([NoKey(X, "a")], (mapping,))


def test_no_attr(check):
    class Thing:
        method = 1

    class Slotted:
        __slots__ = ("method",)

    thing, slotted = Thing(), Slotted()
    slotted.method = 1
    guard = NoAttr(X, "method")
    assert check([guard], (thing,))
    assert check([guard], (slotted,))
    assert check([guard], (5,))
    assert not check([guard], (Thing,))
    thing.method = 2
    assert not check([guard], (thing,))
    del thing.method
    assert check([guard], (thing,))


def make_hierarchy():
    class Base:
        def method(self):
            return 1

    class Child(Base):
        pass

    return Base, Child


def test_type_attr_is(check):
    base, child = make_hierarchy()
    guard = TypeAttrIs(child, "method", base.__dict__["method"])
    for _ in range(3):
        assert check([guard], ())
    child.method = lambda self: 2
    assert not check([guard], ())
    del child.method
    assert check([guard], ())
    base.other = 1
    assert check([guard], ())
    base.method = lambda self: 3
    assert not check([guard], ())


def test_type_attr_absent(check):
    base, child = make_hierarchy()
    guard = TypeAttrIs(child, "extra", ABSENT)
    assert check([guard], ())
    base.extra = None
    assert not check([guard], ())
    assert not check([TypeAttrIs(child, "extra", ABSENT)], ())
    assert check([TypeAttrIs(child, "extra", None)], ())


def test_type_attr_notices_a_change_of_bases():
    from stator.guards.program import compile_guards

    base, child = make_hierarchy()

    class Other:
        def method(self):
            return 2

    program = compile_guards([TypeAttrIs(child, "method", base.__dict__["method"])])
    assert program.check(None, ())
    child.__bases__ = (Other,)
    assert not program.check(None, ())
    child.__bases__ = (base,)
    assert program.check(None, ())


def test_code_is(check):
    def make():
        return lambda: 1

    first, second = make(), make()
    guard = CodeIs(X, first.__code__)
    assert check([guard], (second,))
    assert check([CodeIs(ConstSource(first, "first"), first.__code__)], ())
    second.__code__ = (lambda: 2).__code__
    assert not check([guard], (second,))
    for other in (len, first.__code__, type("C", (), {"__code__": first.__code__})()):
        assert not check([guard], (other,))


def test_same_and_distinct(check):
    a, b, c = [], [], []
    assert check([SameObject(X, Y)], (a, a))
    assert not check([SameObject(X, Y)], (a, b))
    assert check([Distinct(X, (Y, Z))], (a, b, c))
    assert not check([Distinct(X, (Y, Z))], (a, b, a))
    assert check([Distinct(X, ())], (a,))


def test_predicate(check):
    guard = Predicate((X, Y), lambda x, y: x < y, "x < y")
    assert check([guard], (1, 2))
    assert not check([guard], (2, 1))
    assert not check([guard], (1, "a"))
    assert not check([Predicate((X,), lambda x: Raises(), "odd")], (1,))
    many = tuple(LocalSource(i, f"a{i}") for i in range(12))
    assert check([Predicate(many, lambda *args: sum(args) == 66, "sum")], tuple(range(12)))


def test_global_state(check):
    state = [True]
    guard = GlobalState(lambda: state[0], "the state")
    assert check([guard], ())
    state[0] = False
    assert not check([guard], ())
    assert not check([GlobalState(lambda: 1 / 0, "broken")], ())


def test_a_missing_path_is_a_failure(check):
    assert not check([TypeIs(ItemSource(X, 3), int)], ([1],))
    assert not check([NoAttr(AttrSource(X, "a"), "b")], (5,))
    assert not check([Distinct(X, (ItemSource(Y, 0),))], (1, []))


EACH = [
    TypeIs(X, int),
    IdIs(X, math),
    Equals(X, 5),
    Length(X, 2),
    KeysAre(X, ("a", "b")),
    HasKey(X, "a"),
    NoKey(X, "a"),
    NoAttr(X, "a"),
    TypeAttrIs(Color, "RED", Color.__dict__["RED"]),
    TypeAttrIs(Color, "BLUE", ABSENT),
    CodeIs(X, make_hierarchy.__code__),
    SameObject(X, Y),
    Distinct(X, (Y, Z)),
    Predicate((X, Y), max, "max(x, y)"),
    GlobalState(math.isnan, "no NaN"),
    Equals(TypeSource(X), int),
]


@pytest.mark.parametrize("guard", EACH, ids=lambda g: type(g).__name__)
def test_copies_are_equal(guard):
    again = copy.copy(guard)
    assert again is not guard and again == guard and hash(again) == hash(guard)
    assert str(again) == str(guard)


@pytest.mark.parametrize("guard", EACH, ids=lambda g: type(g).__name__)
def test_where_is_shown_and_does_not_tell_guards_apart(guard):
    noted = type(guard)(*guard.fields(), where=(make_hierarchy.__code__, 12))
    assert noted == guard
    assert noted.at() == f"  # {__file__}:12"


@pytest.mark.parametrize("guard", [Equals(X, (1, 2.0)), Length(AttrSource(X, "a"), 2), Distinct(X, (Y, Z))], ids=repr)
def test_guards_are_pickled(guard):
    assert pickle.loads(pickle.dumps(guard)) == guard


def test_no_two_kinds_are_equal():
    assert len(set(EACH)) == len(EACH)
    assert IdIs(X, int) != TypeIs(X, int)
    assert Equals(X, 1) != Equals(X, True)
    assert KeysAre(X, (1,)) != KeysAre(X, (True,))


def test_the_text_for_an_object_runs_none_of_the_programs_code():
    class Asked:
        __class__ = property(lambda self: pytest.fail("was asked"))
        __repr__ = lambda self: pytest.fail("was asked")  # noqa: E731

    module = ModuleType("part")
    module.__spec__ = Asked()
    texts = [show(thing) for thing in (Asked(), Asked, module, slice(Asked()), (Asked(), 1), memoryview(b""))]
    assert texts == ["an Asked", "Asked", "the module part", "a slice", "(an Asked, 1)", "a memoryview"]


def test_there_is_a_text_for_numbers_that_have_none():
    assert [show(10**5000), show(range(10**5000)), show((10**5000, 1))] == ["an int", "a range", "(an int, 1)"]
