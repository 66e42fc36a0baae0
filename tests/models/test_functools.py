"""Modules functools and operator against CPython."""

# ruff: noqa: E501 (tables)

import abc
import functools
import operator
import typing

import pytest

import stator
from tests.models.agree import agree, expressions


class Box:
    def __init__(self, value, other=0):
        self.value, self.other = value, other
        self.inner = self

    def add(self, a, b=0):
        return self.value + a + b

    def __getitem__(self, key):
        return (self.value, key)

    bound = functools.partialmethod(add, b=100)

    @functools.cached_property
    def cached(self):
        return self.value * 2

    @functools.singledispatchmethod
    def kind(self, value):
        return "any"

    @kind.register
    def _(self, value: int):
        return "int"


@functools.total_ordering
class Ordered:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __lt__(self, other):
        return self.n < other.n


def show(*args, **kwargs):
    return args, kwargs


def decorate(function):
    @functools.wraps(function)
    def wrapper(*args):
        return ("wrapped", function(*args))

    return wrapper


@decorate
def wrapped(a):
    """Documented."""
    return a


@functools.singledispatch
def dispatched(value):
    return "object"


@dispatched.register
def _(value: int):
    return "int"


@dispatched.register(list)
def _(value):
    return "list"


@functools.lru_cache
def square(n):
    return n * n


@functools.cache
def pair(a, b=2):
    return (a, b)


existing = functools.partial(show, 1, k=2)
nested = functools.partial(existing, 3, j=4)
first = operator.itemgetter(0)
both = operator.itemgetter(0, "k")
dotted = operator.attrgetter("inner.value", "other")
calling = operator.methodcaller("add", 5)
box = Box(3)

EXPRESSIONS = """
functools.partial(show, 1, a=2)(3, b=4), functools.partial(functools.partial(show, 1), 2)(), functools.partial(show).func is show, functools.partial(show, 1, 2).args, functools.partial(show, a=1).keywords
functools.partial(show, a=1)(a=2), existing(5), existing(k=3), nested(6), existing.args, existing.keywords, existing.func is show, nested.func is show
functools.partial(3)
functools.partial()
functools.partial(nested, 7)(8), functools.partial(nested, 7).args
(lambda p: (setattr(p, "x", 3), p.x, functools.partial(p, 1).func is p))(functools.partial(show))
box.bound(1), Box(5).bound(2)
functools.reduce(lambda a, b: a - b, [10, 2, 3]), functools.reduce(lambda a, b: a + b, [], 5), functools.reduce(operator.mul, range(1, 6)), functools.reduce(max, [3, 9, 2], 1)
functools.reduce(max, [])
functools.reduce(max, 3)
sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a)), functools.cmp_to_key(lambda a, b: a - b)(1) < functools.cmp_to_key(lambda a, b: a - b)(2)
functools.cmp_to_key(lambda a, b: 0)(1) < 3
Ordered(1) <= Ordered(2), Ordered(1) >= Ordered(2), Ordered(3) > Ordered(2), max(Ordered(1), Ordered(4)).n
wrapped(3), wrapped.__name__, wrapped.__doc__, wrapped.__wrapped__(4)
decorate(show)(1), decorate(show).__name__
square(4), square(4), pair(1), pair(1, b=3), pair(1) is pair(1), square.__name__, square.__wrapped__(3)
operator.add(1, 2), operator.sub(5, 2), operator.mul("a", 2), operator.neg(3), operator.not_([]), operator.truth([1]), operator.is_(None, None), operator.is_not(1, None), operator.index(3), operator.contains([1], 1), operator.getitem([1, 2], 1), operator.concat([1], [2]), operator.countOf([1, 2, 1], 1), operator.indexOf([1, 2], 2), operator.iadd(1, 2), operator.lt(1, 2), operator.eq([1], [1]), operator.pow(2, 3), operator.abs(-3), operator.invert(5), operator.xor(5, 1), operator.length_hint([1, 2]), operator.length_hint(3, 9)
(lambda x: (operator.iadd(x, [3]), x, operator.setitem(x, 0, 9), operator.delitem(x, 1), operator.iconcat(x, [5]), x))([1, 2])
operator.indexOf([1], 3)
operator.concat(1, 2)
operator.add(1, "a")
operator.call(show, 1, a=2)
operator.itemgetter(1)([1, 2]), operator.itemgetter(0, 1)("ab"), operator.itemgetter("a")({"a": 3}), first([7]), both(Box(1)), list(map(operator.itemgetter(1), [(1, 2), (3, 4)])), sorted([(1, 2), (0, 3)], key=first)
operator.attrgetter("value")(box), operator.attrgetter("inner.inner.value")(box), dotted(box), operator.attrgetter("value", "other")(box)
operator.methodcaller("add", 1, b=2)(box), calling(box), operator.methodcaller("upper")("a")
operator.attrgetter(3)
operator.itemgetter()
operator.itemgetter(1)([])
operator.attrgetter("nothing")(box)
operator.methodcaller(1)
first(1, 2)
first(a=1)
"""


@pytest.mark.parametrize("expression", expressions(globals(), EXPRESSIONS), ids=lambda e: e.__name__)
def test_agrees(expression):
    agree(expression)


def test_partial_leaves_the_graph_whole():
    def make(n):
        made = functools.partial(show, n, k=[n])
        made.note = "x"
        return made

    made = stator.compile(make, backend="eager", fullgraph=True)(4)
    assert type(made) is functools.partial
    assert (made.func, made.args, made.keywords, made.note) == (show, (4,), {"k": [4]}, "x")


def test_a_partial_passed_in_is_guarded():
    compiled = stator.compile(lambda p: p(1), backend="eager", fullgraph=True)
    assert compiled(functools.partial(show, 2)) == ((2, 1), {})
    assert compiled(functools.partial(show, 3)) == ((3, 1), {})
    assert compiled(functools.partial(show, 2, 4)) == ((2, 4, 1), {})
    assert compiled(functools.partial(show, 2, k=1)) == ((2, 1), {"k": 1})
    assert compiled(functools.partial(lambda *a: a, 2)) == (2, 1)


def test_a_cached_function_is_called_as_often_as_by_the_plain_program():
    calls = []

    @functools.lru_cache
    def once(n):
        calls.append(n)
        return [n]

    compiled = stator.compile(lambda n: once(n), backend="eager", fullgraph=True)
    assert compiled(1) is compiled(1) is once(1)
    assert calls == [1]
    assert once.cache_info().hits == 2 and once.cache_info().misses == 1
    once.cache_clear()
    assert compiled(1) == [1]
    assert calls == [1, 1]


def test_getters_leave_the_graph_whole():
    def make():
        return operator.itemgetter(1), operator.attrgetter("a.b"), operator.methodcaller("join", ["a", "b"])

    item, attribute, method = stator.compile(make, backend="eager", fullgraph=True)()
    assert item([0, 5]) == 5
    assert repr(attribute) == "operator.attrgetter('a.b')"
    assert method("-") == "a-b"


def test_a_cached_function_is_not_called_before_what_the_program_does_first():
    log = []

    @functools.cache
    def once(n):
        log.append(("once", n))

    def program(n):
        log.append(("program", n))
        return once(n)

    traced = stator.compile(program, backend="eager")
    for n in (1, 1, 2):
        traced(n)
    assert log == [("program", 1), ("once", 1), ("program", 1), ("program", 2), ("once", 2)]


def test_caches_of_all_kinds():
    for options in ({"maxsize": 1}, {"maxsize": None}, {"maxsize": 2, "typed": True}, {"maxsize": None, "typed": True}):
        calls = []

        @functools.lru_cache(**options)
        def kept(a, b=1):
            calls.append((a, b))
            return (a, b)

        def program(a):
            return kept(a), kept(a, b=2), kept(float(a)), kept("x")

        eager = [program(n) for n in (1, 1, 2)]
        expected, info = list(calls), kept.cache_info()
        kept.cache_clear()
        calls.clear()
        traced = stator.compile(program, backend="eager")
        assert [traced(n) for n in (1, 1, 2)] == eager
        assert calls == expected
        assert kept.cache_info() == info


@pytest.mark.parametrize("options", [{}, {"maxsize": 2}, {"maxsize": None}, {"typed": True}, {"maxsize": 0}], ids=str)
def test_a_cache_made_inside_leaves_with_its_contents(options):
    def program(calls):
        @functools.lru_cache(**options)
        def fib(n, step=1):
            calls.append(n)
            return n if n < 2 else fib(n - 1) + fib(n - 2)

        fib(5), fib(3, step=2), fib(2.0), fib(3)
        return fib

    expected, actual = [], []
    fib, ours = program(expected), stator.compile(program, backend="eager", fullgraph=True)(actual)
    assert type(ours) is type(fib) and ours.__name__ == "fib" and ours.cache_info() == fib.cache_info()
    for made in (fib, ours):
        made(5), made(1), made(2.0), made(3)
    assert actual == expected and ours.cache_info() == fib.cache_info()


def by_full_cache(wrap, numbers):
    """What functions give, and their cache tells, where each new result replaces one."""
    calls = []

    @functools.lru_cache(maxsize=2)
    def listed(n):
        calls.append(n)
        return [n]

    @wrap
    def summed(a):
        for number in numbers:
            a += listed(number)[0]
        return a

    listed(7), listed(8)
    return [(summed(a), listed.cache_info()) for a in (1, 2, 3)], calls


@pytest.mark.parametrize("numbers", [(1,), (1, 2), (1, 2, 1), (8, 1), (7, 1), (7, 8, 1), (1, 2, 3)])
def test_a_full_cache_lets_go_of_what_it_would(numbers):
    expected = by_full_cache(lambda fn: fn, numbers)
    assert by_full_cache(stator.compile, numbers) == expected


@pytest.mark.parametrize("numbers", [(1,), (1, 2), (8, 1)])
def test_a_full_cache_leaves_the_graph_whole(numbers):
    by_full_cache(functools.partial(stator.compile, fullgraph=True), numbers)


class Asked(abc.ABC):  # noqa: B024
    @classmethod
    def __subclasshook__(cls, other):
        return hasattr(other, "answer")


def test_what_abstract_classes_remember_is_nothing_a_cached_function_could_miss():
    @functools.lru_cache
    def halved(n):
        return n // 2

    @functools.partial(stator.compile, fullgraph=True)
    def asks(n):
        return isinstance(object(), Asked), halved(n)

    assert asks(6) == (False, 3)
    assert halved.cache_info().misses == 1


def test_forms_of_typing_do_not_depend_on_what_its_caches_hold():
    def program(name):
        return typing.Optional[name], typing.Union[int, str] is typing.Union[int, str]

    stator.reset()
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    name = "program_form"
    expected = program(name)  # from 3.14 on, unions are another object each time
    assert compiled(name) == expected
    for number in range(200):  # more than the caches hold
        typing.Optional[typing.Literal[number]]
    assert compiled(name) == expected
    assert not stator.stats().recompile_log
