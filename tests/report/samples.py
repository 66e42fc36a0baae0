"""One object of each builtin type that can be made in a line, made by the traced program."""

# ruff: noqa: F401 (the lines of the table use them)

import array
import collections
import contextvars
import datetime
import decimal
import functools
import itertools
import operator
import random
import re
import struct
import types
import weakref


class Anything:
    def __hash__(self):
        return 3

    def __repr__(self):
        return "anything"


def function(a, b=2, *, c=3):
    """Doc."""
    return [a, b, c]


def generates():
    yield 1
    yield 2


async def waits():
    return 1


anything = Anything()
VARIABLE = contextvars.ContextVar("VARIABLE", default=1)

SAMPLES = r"""
[3, 1, 2]
(3, 1, 2)
{"a": 1, 2: "b"}
{3, 1, 2}
frozenset({3, 1, 2})
"text 1"
b"text 1"
bytearray(b"text 1")
memoryview(b"text 1")
7
True
1.5
1 + 2j
None
...
NotImplemented
range(1, 9, 2)
slice(1, 5, 2)
object()
type
function
(lambda: 1)
types.MethodType(function, 1)
staticmethod(function)
classmethod(function)
property(function)
super(Anything, anything)
generates()
(i for i in "ab")
waits()
asynchronous()
function.__code__
types.CellType(3)
len
[].append
[].__len__
list.append
list.__len__
dict.__dict__["fromkeys"]
type(function).__dict__["__code__"]
slice.__dict__["start"]
types.MappingProxyType({"a": 1})
types.SimpleNamespace(a=1)
types.ModuleType("made")
list[int]
int | str
iter(list[int])
iter([3, 1, 2])
reversed([3, 1, 2])
iter((3, 1, 2))
iter({3: 1})
iter({3: 1}.values())
iter({3: 1}.items())
reversed({3: 1})
reversed({3: 1}.values())
reversed({3: 1}.items())
{3: 1}.keys()
{3: 1}.values()
{3: 1}.items()
iter({3})
iter("ab")
iter("aé")
iter(b"ab")
iter(bytearray(b"ab"))
iter(memoryview(b"ab"))
iter(range(3))
iter(range(2**70))
iter(function, 1)
iter(Indexed())
reversed((3, 1))
enumerate("ab")
zip("ab", [1, 2])
map(str, [1, 2])
filter(None, [0, 1])
Exception(1)
BaseException(1)
OSError(1, "a")
ImportError("a")
KeyError(1)
StopIteration(1)
SystemExit(1)
SyntaxError("a")
UnicodeDecodeError("utf8", b"a", 0, 1, "why")
UnicodeEncodeError("utf8", "a", 0, 1, "why")
UnicodeTranslateError("a", 0, 1, "why")
NameError("a")
AttributeError("a")
BaseExceptionGroup("a", [BaseException()])
ExceptionGroup("a", [ValueError()])
traceback_of()
collections.deque([3, 1, 2])
iter(collections.deque([3, 1, 2]))
reversed(collections.deque([3, 1, 2]))
collections.OrderedDict(a=1)
iter(collections.OrderedDict(a=1))
collections.OrderedDict(a=1).keys()
collections.OrderedDict(a=1).values()
collections.OrderedDict(a=1).items()
collections.defaultdict(int, a=1)
functools.partial(int, 1)
functools.cmp_to_key(function)
functools.cmp_to_key(function)(1)
functools.lru_cache(function)
itertools.accumulate([1, 2])
itertools.chain("ab", "c")
itertools.combinations("abc", 2)
itertools.combinations_with_replacement("abc", 2)
itertools.compress("abc", [1, 0, 1])
itertools.count(3, 2)
itertools.cycle("ab")
itertools.dropwhile(str.isalpha, "a1")
itertools.filterfalse(str.isalpha, "a1")
itertools.groupby("aab")
next(itertools.groupby("aab"))[1]
itertools.islice("abcdef", 1, 5, 2)
itertools.pairwise("abc")
itertools.permutations("abc", 2)
itertools.product("ab", [1])
itertools.repeat(3, 2)
itertools.starmap(function, [(1, 2)])
itertools.takewhile(str.isalpha, "a1")
itertools.tee("ab")[0]
itertools.zip_longest("ab", "c")
operator.attrgetter("real")
operator.itemgetter(0)
operator.methodcaller("upper")
weakref.ref(anything)


VARIABLE
contextvars.copy_context()
re.compile("(t)e")
re.match("(t)e", "text")
re.compile("t").scanner("text")
random.Random(1)
decimal.Decimal("1.5")
decimal.Context()
datetime.date(2020, 1, 2)
datetime.datetime(2020, 1, 2, 3)
datetime.time(3, 4)
datetime.timedelta(1, 2)
datetime.timezone(datetime.timedelta(0, 60))
datetime.tzinfo()
datetime.date(2020, 1, 2).isocalendar()
struct.Struct("<i")
struct.iter_unpack("<h", b"abcd")
array.array("i", [3, 1])
iter(array.array("i", [3, 1]))
"""


class Indexed:
    def __getitem__(self, index):
        return "ab"[index]


async def asynchronous():
    yield 1


def traceback_of():
    try:
        raise ValueError
    except ValueError as e:
        return e.__traceback__


MAKERS = {line: eval(f"lambda: ({line})", globals()) for line in SAMPLES.strip().splitlines()}
