"""Builtin functions over lists, generators and instances: order of calls, laziness, errors."""

import functools
import io
import math
import operator
import re
import sys

from apptests.marks import expected_break

LOG = []


class Noisy:
    """Says in LOG what is done with it."""

    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        LOG.append(("lt", self.n, other.n))
        return self.n < other.n

    def __gt__(self, other):
        LOG.append(("gt", self.n, other.n))
        return self.n > other.n

    def __eq__(self, other):
        LOG.append(("eq", self.n, getattr(other, "n", other)))
        return isinstance(other, Noisy) and self.n == other.n

    def __hash__(self):
        LOG.append(("hash", self.n))
        return self.n

    def __bool__(self):
        LOG.append(("bool", self.n))
        return self.n > 0

    def __add__(self, other):
        return Noisy(self.n + getattr(other, "n", other))

    __radd__ = __add__

    def __repr__(self):
        return f"N{self.n}"


class Fake:
    __class__ = property(lambda self: int)


def logged(function, *args):
    """What a call returns, and what it does on the way."""
    LOG.clear()
    result = function(*args)
    return result, list(LOG)


def source(*items):
    for item in items:
        LOG.append(("next", item))
        yield item
    LOG.append("end")


def test_all_and_any_stop_early():
    assert logged(all, source(1, 0, 2)) == (False, [("next", 1), ("next", 0)])
    assert logged(any, source(0, 3, 2)) == (True, [("next", 0), ("next", 3)])
    assert logged(all, source(1)) == (True, [("next", 1), "end"])


def test_min_and_max_compare_in_order():
    items = [Noisy(2), Noisy(1), Noisy(3)]
    best, log = logged(max, items)
    assert best is items[2] and log == [("gt", 1, 2), ("gt", 3, 2)]
    best, log = logged(min, *items)
    assert best is items[1] and log == [("lt", 1, 2), ("lt", 3, 1)]
    assert max(items, key=lambda item: -item.n) is items[1]


def test_sum_of_numbers_and_objects():
    assert sum([0.1] * 10) == sum(0.1 for _ in range(10)) and sum(range(5), 10) == 20
    assert sum([Noisy(1), 2, Noisy(3)]).n == 6 and sum([[1], [2]], []) == [1, 2]
    assert sum([True, 2, 1.5]) == 4.5


def test_zip_takes_no_more_than_it_must():
    first, second = source(1, 2, 3), source("a")
    assert logged(lambda: list(zip(first, second))) == ([(1, "a")], [("next", 1), ("next", "a"), ("next", 2), "end"])
    assert next(first) == 3


def test_map_and_filter_are_lazy():
    LOG.clear()
    doubled = map(lambda x: LOG.append(("f", x)) or x * 2, source(1, 2, 3))
    even = filter(lambda x: x > 2, doubled)
    assert LOG == [] and next(even) == 4
    assert LOG == [("next", 1), ("f", 1), ("next", 2), ("f", 2)]
    assert list(even) == [6]


def test_iterators_leave_and_come_back():
    def halves(values):
        numbered = enumerate(values, 10)
        next(numbered)
        return numbered, zip(values, reversed(values)), iter(values.pop, 1)

    numbered, pairs, popping = halves([1, 2, 3])
    assert list(numbered) == [(11, 2), (12, 3)] and next(pairs) == (1, 3)
    assert list(popping) == [3, 2]


def test_callable_iterator_stops_at_its_sentinel():
    values = [1, 2, 3, 2]
    assert list(iter(lambda: values.pop(0), 3)) == [1, 2] and values == [2]

    def fails():
        raise StopIteration

    assert list(iter(fails, None)) == []


def test_isinstance_asks_the_metaclass():
    class Meta(type):
        def __instancecheck__(cls, instance):
            LOG.append(("check", instance))
            return instance == 3

        def __subclasscheck__(cls, subclass):
            return subclass is str

    class Odd(metaclass=Meta):
        pass

    assert logged(isinstance, 3, Odd) == (True, [("check", 3)])
    assert logged(isinstance, 4, (int, Odd)) == (True, [])
    assert logged(isinstance, Odd(), Odd) == (True, [])
    assert issubclass(str, Odd) and not issubclass(int, Odd)


def test_isinstance_believes_dunder_class():
    assert isinstance(Fake(), int) and isinstance(Fake(), Fake) and not isinstance(Fake(), str)


def test_attribute_functions():
    class Thing:
        kept = 1

        def __getattr__(self, name):
            if name == "made":
                return "made"
            raise AttributeError(name)

    thing = Thing()
    setattr(thing, "own", 2)
    assert [getattr(thing, name, None) for name in ("kept", "own", "made", "none")] == [1, 2, "made", None]
    assert hasattr(thing, "made") and not hasattr(thing, "none") and vars(thing) == {"own": 2}
    delattr(thing, "own")
    assert vars(thing) == {}


def test_conversions_call_methods():
    class Number:
        def __int__(self):
            return 7

        def __float__(self):
            return 2.5

        def __complex__(self):
            return 1j

        def __index__(self):
            return 3

        def __round__(self, digits=None):
            return digits

        def __trunc__(self):
            return "trunc"

        def __floor__(self):
            return "floor"

        def __ceil__(self):
            return "ceil"

    n = Number()
    assert (int(n), float(n), complex(n), hex(n), round(n), round(n, 2)) == (7, 2.5, 1j, "0x3", None, 2)
    assert (math.trunc(n), math.floor(n), math.ceil(n)) == ("trunc", "floor", "ceil")
    assert math.sqrt(n) == math.sqrt(2.5) and math.gcd(n, 9) == 3 and [10, 20, 30, 40][n] == 40
    assert math.hypot(n, 2.5) == math.hypot(2.5, 2.5) and math.prod([n.__index__(), 2]) == 6


def test_subclasses_of_immutable_types():
    class Meters(float):
        unit = "m"

        def __add__(self, other):
            return Meters(float(self) + other)

        def __repr__(self):
            return f"{float(self)} {self.unit}"

    class Name(str):
        def __new__(cls, text):
            self = super().__new__(cls, text.upper())
            self.given = text
            return self

    length = Meters(1.5) + 2
    assert type(length) is Meters and repr(length) == "3.5 m" and length * 2 == 7.0 and f"{length:.2f}" == "3.50"
    name = Name("ada")
    assert name == "ADA" and name.given == "ada" and {name: 1}["ADA"] == 1
    assert name + "!" == "ADA!" and type(name + "") is str


def test_caught_errors_have_cpythons_words():
    def words(function, *args):
        try:
            function(*args)
        except Exception as e:
            return f"{type(e).__name__}: {e}"
        return None

    assert words(len, 3) == "TypeError: object of type 'int' has no len()"
    assert words(next, iter([])) == "StopIteration: "
    assert words(int, "x") == "ValueError: invalid literal for int() with base 10: 'x'"
    assert words(lambda: list(zip([1], [], strict=True))) == "ValueError: zip() argument 2 is shorter than argument 1"
    assert words(lambda: "%d" % "a") == "TypeError: %d format: a real number is required, not str"
    assert words(lambda: "{x}".format(*[])) == "KeyError: 'x'"
    assert words(functools.reduce, max, []) == "TypeError: reduce() of empty iterable with no initial value"


def test_text_of_instances():
    class Money:
        def __init__(self, n):
            self.n = n

        def __str__(self):
            return f"${self.n}"

        def __format__(self, spec):
            return f"{self.n:{spec}}" if spec else str(self)

    m = Money(5)
    assert f"{m} {m:03d} {m!s:>4}" == "$5 005   $5" and "{:>3} {}".format(m, m) == "  5 $5"
    assert "%s|%5s" % (m, m) == "$5|   $5" and ", ".join(map(str, [m, Money(2)])) == "$5, $2"
    assert "{0.n} {x[k].n}".format(m, x={"k": m}) == "5 5" and str([Noisy(1), (Noisy(2),)]) == "[N1, (N2,)]"


def test_partial_objects():
    def show(*args, **kwargs):
        return args, kwargs

    p = functools.partial(show, 1, k=2)
    q = functools.partial(p, 3)
    p.keywords["extra"] = 4
    assert p(5, k=6) == ((1, 5), {"k": 6, "extra": 4}) and q.func is show and q() == ((1, 3), {"k": 2})


def test_operator_functions():
    box = [1, 2]
    assert operator.iadd(box, [3]) is box and box == [1, 2, 3]
    assert operator.itemgetter(1, "k")({1: "a", "k": "b"}) == ("a", "b")
    assert operator.attrgetter("real", "imag")(3) == (3, 0) and operator.methodcaller("split", ",")("a,b") == ["a", "b"]
    assert sorted([(2, "a"), (1, "b")], key=operator.itemgetter(0)) == [(1, "b"), (2, "a")]


def test_substitution_calls_the_function():
    found = []

    def replace(match):
        found.append(match.group())
        return f"<{match.group(1)}>"

    assert re.sub(r"(\d)x", replace, "1x2x3") == "<1><2>3" and found == ["1x", "2x"]
    assert re.compile("a+").subn(lambda m: str(len(m[0])), "aaba", count=1) == ("2ba", 1)


def test_print_through_a_class_of_its_own():
    class Tee:
        def __init__(self):
            self.parts = []

        def write(self, text):
            self.parts.append(text)

        def flush(self):
            self.parts.append("flush")

    tee = Tee()
    print("a", Noisy(1), sep="-", file=tee)
    print(end="", file=tee, flush=True)
    assert tee.parts == ["a", "-", "N1", "\n", "", "flush"]


def test_files_in_memory():
    out = io.StringIO()
    for i in range(2):
        print(i, file=out)
    out.write("end")
    out.seek(0)
    assert out.readlines() == ["0\n", "1\n", "end"] and out.getvalue() == "0\n1\nend"


def test_bytearrays():
    data = bytearray(b"abc")
    data += b"d"
    data[0] = 65
    data.extend([101, 102])
    assert bytes(data) == b"Abcdef" and data.find(b"cd") == 2 and list(data[:2]) == [65, 98] and len(data) == 6
    assert data == b"Abcdef" and b"bc" in data and data.pop() == 102 and [b for b in data[:1]] == [65]


def test_ids():
    a, b = [], []
    assert id(a) == id(a) and id(a) != id(b) and {id(a): "a", id(b): "b"}[id(b)] == "b"
    memo = {id(LOG): LOG}
    assert memo[id(LOG)] is LOG and id(a) not in memo


def test_globals_and_modules():
    globals()["ADDED"] = 5
    assert ADDED == 5 and "ADDED" in globals()  # noqa: F821
    del globals()["ADDED"]
    assert __import__("sys") is sys and not hasattr(sys.modules[__name__], "ADDED")


@expected_break("the time of day")
def test_time():
    import time

    assert time.time() > 0


class Sized:
    def __init__(self, hint):
        self.hint = hint
        self.asked = 0
        self.left = 2

    def __iter__(self):
        return self

    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left

    def __length_hint__(self):
        self.asked += 1
        if isinstance(self.hint, type):
            raise self.hint("hint")
        return self.hint


def test_length_hints():
    sized = Sized(5)
    assert list(sized) == [1, 0]
    assert sized.asked == 1
    assert tuple(Sized(TypeError)) == (1, 0)
    assert list(Sized(NotImplemented)) == [1, 0]
    for hint, kind in ((-1, ValueError), ("x", TypeError), (KeyError, KeyError)):
        try:
            list(Sized(hint))
        except kind:
            continue
        raise AssertionError(hint)


def test_hints_of_reversed():
    class Shrinking:
        sizes = [3, 3, 1]

        def __len__(self):
            return self.sizes.pop(0)

        def __getitem__(self, index):
            return index

    backwards = reversed(Shrinking())
    Shrinking.sizes = [3, 1]
    assert backwards.__length_hint__() == 3 and backwards.__length_hint__() == 0


def test_iterator_that_its_own_function_uses_up():
    class Source:
        busy = False
        iterator = None

        def __call__(self):
            if self.busy:
                return "stop"
            self.busy = True
            list(self.iterator)
            return "more"

    source = Source()
    source.iterator = iter(source, "stop")
    assert next(source.iterator, "finished") == "finished"
