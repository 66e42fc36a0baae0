"""Builtin functions against CPython."""

# ruff: noqa: E501 (tables)

import copy
import sys
import threading

import pytest

import stator
from tests.models.agree import agree, expressions


class Point:
    kind = "point"

    def __init__(self, x=1, y=2):
        self.x, self.y = x, y

    def __repr__(self):
        return f"Point({self.x}, {self.y})"

    def __str__(self):
        return f"<{self.x}; {self.y}>"

    def __format__(self, spec):
        return f"{spec}|{self.x}"

    def __len__(self):
        return self.x

    def __getitem__(self, index):
        return [self.x, self.y][index]

    def __index__(self):
        return self.x

    def __float__(self):
        return self.y + 0.5

    def __abs__(self):
        return Point(abs(self.x), abs(self.y))

    def __round__(self, digits=None):
        return ("round", digits)

    def __divmod__(self, other):
        return ("divmod", other)

    def __rdivmod__(self, other):
        return ("rdivmod", other)

    def __pow__(self, exp, mod=None):
        return ("pow", exp, mod)

    def __add__(self, other):
        return Point(self.x + other, self.y)

    __radd__ = __add__

    def __hash__(self):
        return self.x

    def __eq__(self, other):
        return isinstance(other, Point) and self.x == other.x

    def __lt__(self, other):
        return self.x < other.x

    def __gt__(self, other):
        return self.x > other.x

    def __call__(self):
        self.x += 1
        return self.x

    def __dir__(self):
        return ["b", "a"]

    def __bytes__(self):
        return b"point"

    def __complex__(self):
        return 1j


class Plain:
    pass


class Wrong:
    __repr__ = __str__ = __len__ = __index__ = __float__ = __hash__ = lambda self: ()
    __iter__ = lambda self: 3

    def __format__(self, spec):
        return 1

    __bool__ = lambda self: 1
    __bytes__ = __complex__ = __int__ = lambda self: None


class MyInt(int):
    pass


class MyStr(str):
    def __str__(self):
        return "mine"


class MyFloat(float):
    def __repr__(self):
        return "float"


def fails():
    raise StopIteration


EXPRESSIONS = """
abs(-3), abs(-2.5), abs(True), abs(Point(-1, -2))
abs("a")
all([]), all([1, 2]), all([1, 0]), any([]), any([0, 1]), any(x > 1 for x in [1, 2])
all(1)
callable(len), callable(3), callable(Point), callable(Point()), callable(lambda: 0)
repr(Point()), repr([1, "a", Point()]), repr("a"), repr(1.5), repr(None), repr({1: Point()}), repr((1,))
repr(Wrong())
ascii("ä"), ascii([1, "ß"])
len("abc"), len([1]), len(Point(4)), len({}), len(range(3))
len(3)
len(Wrong())
hash(3), hash("a") == hash("a"), hash((1, 2)), hash(Point(7))
hash([])
hash(Wrong())
format(3, ">5"), format("a"), format(Point(), "spec"), format(Plain.__name__)
format(3, 4)
format(Plain(), "x")
format(Wrong())
bin(5), hex(255), oct(8), bin(Point(3)), hex(True)
bin(1.5)
chr(97), ord("a"), chr(Point(98)), ord(b"a")
chr(-1)
chr("a")
ord("ab")
divmod(7, 2), divmod(-7, 2.0), divmod(Point(), 2), divmod(2, Point())
divmod("a", 1)
divmod(1, 0)
pow(2, 3), pow(2, -1), pow(2, 3, 5), pow(Point(), 2), pow(Point(), 2, 3), 2 ** 0.5
pow("a", 2)
pow("a", 2, 3)
round(2.5), round(2.567, 2), round(2.5, None), round(1234, -2), round(Point()), round(Point(), 3)
round("a")
sum([1, 2, 3]), sum([0.1] * 10), sum([1, 2.5]), sum([], 5), sum([[1], [2]], []), sum([Point(1, 2)]).x, sum([1, Point(5)], 2).x
sum(["a"])
sum(["a"], "")
sum([1, "a"])
max(1, 3, 2), max([4, 9, 1]), max([], default=3), max("b", "a", key=ord), max([-3, 2], key=abs), max(1, 1.0), max([Point(1), Point(3)]).x
min(1, 3, 2), min([4, 9, 1]), min([], default=None), min((Point(2), Point(1))).x, min({3: 1, 2: 2})
max([])
min()
max(1, 2, default=3)
max(1)
max(1, "a")
list(iter([1, 2])), list(iter(Point(), None))[:0] if False else 0, list(iter(Point(1), 4))
iter(3)
iter(3, 4)
next(iter([1])), next(iter([]), 5), next(iter([]), None)
next(iter([]))
next(3)
next(iter(fails, 1), "ended")
sorted([3, 1, 2]), sorted("bca", reverse=True), sorted([-3, 2], key=abs), sorted([Point(2), Point(1)])[0].x, sorted({3: 0, 1: 0})
sorted([1, "a"])
sorted(3)
getattr(Point(), "x"), getattr(Point(), "kind"), getattr(Point(), "none", 3), getattr(3, "real"), getattr("a", "upper")()
getattr(Point(), "none")
getattr(Point(), 3)
hasattr(Point(), "x"), hasattr(Point(), "none"), hasattr([], "append")
(p := Point(), setattr(p, "z", 3), p.z, delattr(p, "z"), hasattr(p, "z"))[1:]
delattr(Point(), "none")
vars(Point()), list(vars(Point(5)).values())
vars(3)
dir(Point())
isinstance(3, int), isinstance(True, int), isinstance(3, (str, int)), isinstance(3, int | None), isinstance(None, int | None), isinstance(Point(), Point), isinstance([], (tuple, (list,)))
isinstance(3, 3)
isinstance(3, list[int])
issubclass(bool, int), issubclass(int, (str, float)), issubclass(int, int | str), issubclass(Point, object)
issubclass(3, int)
issubclass(int, 3)
list(enumerate("ab")), list(enumerate([5], 3)), list(enumerate("ab", start=Point(7)))
enumerate(3)
enumerate([], "a")
list(zip("ab", [1, 2, 3])), list(zip()), list(zip([1])), list(zip([1, 2], [3, 4], strict=True))
list(zip([1], [1, 2], strict=True))
list(zip([1, 2], [1], strict=True))
list(zip([1, 2], [1, 2], [1], strict=True))
list(zip([1], [1], [1, 2], strict=True))
zip(3)
list(map(str, [1, 2])), list(map(lambda a, b: a + b, [1, 2], [3, 4, 5])), list(map(Point, [3]))[0].x
list(map(lambda x: fails() if x > 1 else x, [1, 2, 3]))
map(1, 2)
list(filter(None, [0, 1, "", "a"])), list(filter(lambda x: x > 1, [1, 2, 3])), list(filter(bool, [0, 1]))
list(reversed([1, 2])), list(reversed("ab")), list(reversed((1, 2))), list(reversed(range(3))), list(reversed({1: 2, 3: 4})), list(reversed(Point(2, 5)))
reversed(3)
reversed({1})
int(), int("7"), int(2.9), int(True), int("ff", 16), int(Point(9)), int(b"12"), int(" 3 "), int(MyInt(4))
int("a")
int([])
int(Wrong())
int(float("inf"))
int("1", Plain())
float(), float("1.5"), float(3), float(Point(1, 2)), float("nan") != float("nan"), float(MyFloat(2.5))
float("a")
float([])
float(Wrong())
complex(1, 2), complex("1+2j"), complex(Point()), complex(1.5), complex()
complex([])
bool(), bool([]), bool("a"), bool(Point(0)), bool(Plain()), bool(None)
bool(Wrong())
str(), str(3), str(Point()), str("a"), str(b"ab", "ascii"), str(MyStr("x")), str([Point()]), str(None), str(1.0)
str(Wrong())
bytes(), bytes(3), bytes([1, 2]), bytes("ä", "utf8"), bytes(Point()), bytes(range(3)), bytes(b"a")
bytes("a")
bytes(Wrong())
bytes([256])
bytes(1.5)
MyInt(3) + 1, MyInt("12"), type(MyInt(3) + 1), type(MyInt(3)), MyInt(3) == 3, {3: "a"}[MyInt(3)], -MyInt(3), MyInt(5) > 4, [1, 2, 3][MyInt(1)], hash(MyInt(7))
MyStr("abc").upper(), MyStr("abc") + "d", f"{MyStr('q')}", MyStr("a") == "a", len(MyStr("abc")), "-".join([MyStr("a"), "b"]), repr(MyStr("a"))
MyFloat(1.5) * 2, repr(MyFloat(1.5)), f"{MyFloat(1.5)}", str(MyFloat(2.0)), MyFloat(1.5) < 2
len(object=3)
next([])
isinstance()
sum()
max(key=3)
sorted([], abs)
print(3, bad=1)
id(Point) == id(Point), id(Plain()) == id(3) if False else 0, (lambda x: id(x) in {id(int): 1})([])
(lambda p: (id(p) == id(p), {id(p): 1}[id(p)]))(Point())
__import__("sys").maxsize, __import__("os.path", fromlist=["join"]).sep
globals()["Point"] is Point
"""


@pytest.mark.parametrize("expression", expressions(globals(), EXPRESSIONS), ids=lambda e: e.__name__)
def test_agrees(expression):
    agree(expression)


def test_an_id_leaves_the_graph():
    box = Plain()
    compiled = stator.compile(lambda p: (id(p), hex(id(p)), id(p) in {1: 2}), backend="eager", fullgraph=True)
    assert compiled(box) == (id(box), hex(id(box)), False)
    other = Plain()
    assert compiled(other) == (id(other), hex(id(other)), False)


def test_an_id_finds_its_entry_in_an_existing_dict():
    seen, boxes = {}, [Plain(), Plain()]
    seen[id(boxes[1])] = "second"
    compiled = stator.compile(lambda p: (id(p) in seen, seen.get(id(p))), backend="eager", fullgraph=True)
    assert compiled(boxes[0]) == (False, None)
    assert compiled(boxes[1]) == (True, "second")
    assert compiled(boxes[0]) == (False, None)


def test_copies_do_not_bind_the_trace_to_an_object():
    compiled = stator.compile(lambda p: copy.deepcopy(p).x, backend="eager", fullgraph=True)
    first = compiled(Point([1], {2: [3]}))
    before = stator.stats().recompiles
    assert compiled(Point([1], {2: [3]})) == first == [1]
    assert stator.stats().recompiles == before


def test_the_current_thread():
    compiled = stator.compile(lambda: threading.current_thread(), backend="eager", fullgraph=True)
    assert compiled() is threading.current_thread()
    found = []
    thread = threading.Thread(target=lambda: found.append(compiled()))
    thread.start()
    thread.join()
    assert found == [thread]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="long numbers are converted by a module from 3.12 on")
def test_the_module_that_converts_long_numbers_is_replaced(monkeypatch):
    """What a call of `str` does is then the program's own, and the tracer calls it too: nothing is traced."""
    import _pylong

    calls = []

    def converted(number):
        calls.append(number)
        return "converted"

    def program(number):
        return str(number), str(number)

    number, limit = 10**20000, sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(_pylong, "int_to_decimal_string", converted)
            before = stator.stats().frames
            assert stator.compile(program, backend="eager")(number) == ("converted", "converted")
            assert (len(calls), stator.stats().frames) == (2, before)
    finally:
        sys.set_int_max_str_digits(limit)
