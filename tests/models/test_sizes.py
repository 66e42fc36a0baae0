"""`__sizeof__` and `sys.getsizeof`: eager against traced, of objects of all kinds."""

# ruff: noqa: F401 (the lines of the tables use them)

import array
import collections
import decimal
import enum
import functools
import itertools
import sys
import types

import pytest

import stator
from stator.errors import GraphBreakError
from tests.models.agree import agree, expressions


class Plain:
    pass


class Slotted:
    __slots__ = ("a", "b")


class SlottedWeak:
    __slots__ = ("__weakref__", "a")


class SlottedDict:
    __slots__ = ("__dict__", "a")


class OwnInt(int):
    pass


class OwnTuple(tuple):
    pass


class OwnDict(dict):
    pass


class OwnList(list):
    pass


class OwnCombinations(itertools.combinations):
    pass


class Says:
    def __init__(self, size):
        self.size = size

    def __sizeof__(self):
        return self.size


class SaysNothing:
    __sizeof__ = None


class Colour(enum.Enum):
    RED = 1


Pair = collections.namedtuple("Pair", "a b")


def generates(a, *b, c=1, **d):
    x = 1

    def inner():
        return x, a

    yield [inner for z in b]


async def generates_slowly(a):
    yield a


EXISTING = [
    *([1, 2], {1: 2}, {1}, frozenset([1, 2]), bytearray(b"abc"), collections.deque([1]), array.array("i", [1])),
    *(collections.OrderedDict(a=1), Plain(), Slotted(), SlottedWeak(), SlottedDict(), OwnInt(5), OwnTuple((1, 2))),
    *(OwnDict(a=1), OwnList([1]), Pair(1, 2), Colour.RED, (1, 2), 5, 2**100, 0, -5, True, 1.5, "abc", b"ab", None),
    *(
        1j,
        range(3),
        slice(1),
        len,
        [].append,
        generates,
        generates(1),
        iter([]),
        iter({}),
        {}.keys(),
        zip(),
        map(len, []),
    ),
    *(itertools.combinations([1, 2], 1), OwnCombinations([1, 2, 3], 2), itertools.product([1], [2]), ValueError(1)),
    *(
        itertools.permutations([1, 2]),
        functools.partial(len),
        types.SimpleNamespace(a=1),
        OSError(1, "a"),
        memoryview(b"a"),
    ),
    *(memoryview(b"a"), map(len, [])),
    *(property(len), classmethod(len), staticmethod(len), super(Plain, Plain()), types.CellType(1), generates.__code__),
    *(types.ModuleType("a"), sys, sys._getframe(), enumerate([]), reversed([]), decimal.Decimal(1), NotImplemented),
    *(types.MethodType(len, 1), sys.version_info, sys.flags, Says(5), Says(-1), Says("a"), Says(1 << 70), Says(True)),
    *(SaysNothing(), generates_slowly(1), itertools.count(), collections.ChainMap(), collections.Counter()),
    *(types.MappingProxyType({}), int, Plain, type, object, array.array),
]


@pytest.mark.parametrize("thing", EXISTING, ids=lambda thing: type(thing).__name__)
def test_existing_objects(thing):
    kind = type if isinstance(thing, type) else type(thing)
    agree(lambda: kind.__sizeof__(thing))
    agree(lambda: sys.getsizeof(thing))
    agree(lambda: sys.getsizeof(thing, "default"))
    if kind not in (types.GeneratorType, types.AsyncGeneratorType, types.FrameType):
        agree(lambda: object.__sizeof__(thing))


NEW = """
(1, 2, 3)
Plain()
Slotted()
SlottedWeak()
SlottedDict()
OwnInt(5)
OwnTuple((1, 2))
Pair(1, 2)
generates(1)
(lambda g: (next(g), g)[1])(generates(1, 2))
(x for x in [1])
itertools.combinations([1, 2, 3], 2)
OwnCombinations([1, 2, 3], 2)
itertools.product([1], [2], repeat=3)
itertools.permutations([1, 2, 3], 2)
itertools.permutations([1, 2, 3])
itertools.combinations_with_replacement([1, 2], 4)
lambda: 1
types.SimpleNamespace(a=1)
ValueError(1)
iter([1])
iter({1: 1})
{}.keys()
zip([1])
map(len, [1])
functools.partial(len, 1)
property(len)
types.CellType(1)
types.MethodType(len, 1)
Plain().__init__
[].append
slice(1, 2)
range(4)
super(Plain, Plain())
enumerate([1])
reversed([1])
sys._getframe()
(lambda a, *b, c=1: sys._getframe())(1)
generates(1).gi_frame
Says(3)
Says(-3)
Says("a")
Says(1.5)
"abc" * 3
2**70
(5).__add__
decimal.Decimal(4)
1.5 + 1
collections.ChainMap()
itertools.count()
memoryview(b"a")
staticmethod(len)
bytearray(b"abc")
"""
LINES = [line for line in NEW.splitlines() if line]


@pytest.mark.parametrize("line", LINES)
def test_new_objects(line):
    for text in (f"({line}).__sizeof__()", f"sys.getsizeof({line})"):
        for expression in expressions(globals(), text):
            agree(expression)


OTHERS = """
sys.getsizeof()
sys.getsizeof(1, 2, 3)
sys.getsizeof(SaysNothing(), default=4)
list.__sizeof__(3)
list.__sizeof__([], 1)
object.__sizeof__()
object.__sizeof__((1, 2))
object.__sizeof__([1, 2])
int.__sizeof__("a")
EXISTING[4].__alloc__()
bytearray(b"abc").__alloc__()
(lambda b: (b.append(1), b.__alloc__(), b.__sizeof__(), b.extend(b"12345"), b.__alloc__()))(bytearray(b"abc"))
"""


@pytest.mark.parametrize("expression", expressions(globals(), OTHERS), ids=lambda f: f.__name__)
def test_other_calls(expression):
    agree(expression)


@pytest.mark.parametrize("line", ["[]", "{}", "set()", "frozenset([1])", "collections.deque()", "type('A', (), {})"])
def test_what_generated_code_may_make_otherwise_breaks(line):
    for expression in expressions(globals(), f"({line}).__class__.__sizeof__({line})"):
        with pytest.raises(GraphBreakError, match="lies in memory"):
            stator.compile(expression, backend="eager", fullgraph=True)()


def test_what_the_trace_has_changed_breaks():
    items = [1]

    def f():
        items.append(2)
        return items.__sizeof__()

    with pytest.raises(GraphBreakError, match="lies in memory"):
        stator.compile(f, backend="eager", fullgraph=True)()
    assert items == [1]


def test_the_size_is_guarded():
    items = [1]
    compiled = stator.compile(lambda: items.__sizeof__(), backend="eager", fullgraph=True)
    assert compiled() == items.__sizeof__()
    items.append(2)
    items.pop()
    assert compiled() == items.__sizeof__() != [1].__sizeof__()
