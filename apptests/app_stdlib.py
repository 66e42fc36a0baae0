"""itertools, functools, collections, operator, copy, contextvars, weakref, inspect."""

import collections
import contextvars
import copy
import functools
import inspect
import itertools
import operator
import types
import weakref

from apptests.marks import expected_break


def app_itertools():
    assert list(itertools.chain([1], "a", (2,))) == [1, "a", 2] and list(itertools.chain.from_iterable(["ab"])) == [
        "a",
        "b",
    ]
    assert list(itertools.islice(itertools.count(5, 2), 3)) == [5, 7, 9]
    assert list(itertools.accumulate([1, 2, 3], operator.mul, initial=1)) == [1, 1, 2, 6]
    assert list(itertools.product("ab", repeat=2))[1] == ("a", "b") and len(list(itertools.permutations(range(3)))) == 6
    assert list(itertools.combinations("abc", 2)) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert list(itertools.zip_longest([1], [2, 3], fillvalue=0)) == [(1, 2), (0, 3)]
    assert list(itertools.takewhile(lambda x: x < 2, range(5))) == [0, 1]
    assert list(itertools.dropwhile(lambda x: x < 3, range(5))) == [3, 4] and list(itertools.repeat(1, 2)) == [1, 1]
    assert [(k, list(g)) for k, g in itertools.groupby("aab")] == [("a", ["a", "a"]), ("b", ["b"])]
    assert list(itertools.pairwise([1, 2, 3])) == [(1, 2), (2, 3)] and list(itertools.starmap(pow, [(2, 3)])) == [8]
    first, second = itertools.tee(iter([1, 2]))
    assert list(first) == list(second) == [1, 2] and list(itertools.compress("abc", [1, 0, 1])) == ["a", "c"]


def app_cycle():
    colours = itertools.cycle("rg")
    assert [next(colours) for _ in range(3)] == ["r", "g", "r"]


def app_partial():
    add = functools.partial(lambda a, b, *, c=0: (a, b, c), 1, c=3)
    assert add(2) == (1, 2, 3) and add(2, c=9) == (1, 2, 9) and add.args == (1,) and add.keywords == {"c": 3}
    nested = functools.partial(add, c=4)
    assert nested(5) == (1, 5, 4) and nested.func is add.func

    class Scaler:
        def scale(self, factor, x):
            return factor * x

        double = functools.partialmethod(scale, 2)

    assert Scaler().double(4) == 8


def app_reduce_and_cmp_to_key():
    assert functools.reduce(lambda a, b: a * 10 + b, [1, 2, 3]) == 123 and functools.reduce(operator.add, [], 7) == 7
    order = functools.cmp_to_key(lambda a, b: len(a) - len(b) or (a > b) - (a < b))
    assert sorted(["bb", "c", "aa"], key=order) == ["c", "aa", "bb"]


def app_caches():
    calls = []

    @functools.lru_cache(maxsize=None)
    def fib(n):
        calls.append(n)
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    assert fib(10) == 55 and len(calls) == 11 and fib.cache_info().hits == 8

    class Lazy:
        @functools.cached_property
        def value(self):
            calls.append("computed")
            return 42

    lazy = Lazy()
    assert lazy.value == lazy.value == 42 and calls.count("computed") == 1 and lazy.__dict__ == {"value": 42}


def app_wraps_and_singledispatch():
    def decorate(f):
        @functools.wraps(f)
        def wrapper(*args):
            return f(*args)

        return wrapper

    @decorate
    def documented(x):
        """Text."""
        return x

    assert documented.__name__ == "documented" and documented.__doc__ == "Text." and documented.__wrapped__(1) == 1

    @functools.singledispatch
    def show(x):
        return "object"

    @show.register
    def _(x: int):
        return "int"

    @show.register(list)
    def _(x):
        return "list"

    assert [show(v) for v in (1, True, [], "s")] == ["int", "int", "list", "object"]


def app_total_ordering():
    @functools.total_ordering
    class Version:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return self.n == other.n

        def __lt__(self, other):
            return self.n < other.n

    assert Version(1) <= Version(1) < Version(2) and Version(3) >= Version(2) and max(Version(1), Version(5)).n == 5


def app_operator():
    assert operator.itemgetter(1, 0)("ab") == ("b", "a") and operator.attrgetter("real")(3) == 3
    assert (
        operator.methodcaller("upper")("a") == "A"
        and operator.attrgetter("a.b")(types.SimpleNamespace(a=types.SimpleNamespace(b=5))) == 5
    )
    assert sorted([{"n": 2}, {"n": 1}], key=operator.itemgetter("n"))[0] == {"n": 1}
    assert operator.index(True) == 1 and operator.contains([1], 1) and operator.floordiv(7, 2) == 3


def app_counter_and_defaultdict():
    counter = collections.Counter("abracadabra")
    assert counter.most_common(2) == [("a", 5), ("b", 2)] and counter["z"] == 0 and counter.total() == 11
    counter.subtract("aab")
    assert counter["a"] == 3 and (collections.Counter(a=1) + collections.Counter(a=2, b=1)) == {"a": 3, "b": 1}
    groups = collections.defaultdict(list)
    for word in ("ab", "c", "ad"):
        groups[word[0]].append(word)
    assert groups == {"a": ["ab", "ad"], "c": ["c"]} and "z" not in groups and groups["z"] == [] and "z" in groups


def app_deque_and_ordered_dict():
    d = collections.deque([1, 2, 3], maxlen=3)
    d.append(4)
    d.appendleft(0)
    assert list(d) == [0, 2, 3] and d.pop() == 3 and d.popleft() == 0 and len(d) == 1
    d.extend([5, 6])
    d.rotate(1)
    assert list(d) == [6, 2, 5] and d[0] == 6 and d.maxlen == 3
    o = collections.OrderedDict(a=1, b=2, c=3)
    o.move_to_end("a")
    assert list(o) == ["b", "c", "a"] and o.popitem(last=False) == ("b", 2)
    assert collections.OrderedDict(a=1, b=2) != collections.OrderedDict(b=2, a=1)


def app_chain_map_and_user_dict():
    chain = collections.ChainMap({"a": 1}, {"a": 2, "b": 3})
    assert (chain["a"], chain["b"], len(chain)) == (1, 3, 2)
    chain["c"] = 4
    assert chain.maps[0] == {"a": 1, "c": 4}


def app_copy():
    shared = [1]
    original = {"a": shared, "b": shared, "t": (shared, 2)}
    shallow, deep = copy.copy(original), copy.deepcopy(original)
    shared.append(2)
    assert shallow["a"] is shared and deep["a"] == [1]
    assert deep["a"] is deep["b"] is deep["t"][0] and deep["a"] is not shared


def app_copy_of_instances():
    class Node:
        def __init__(self, value, next_=None):
            self.value, self.next = value, next_

    class Custom:
        def __copy__(self):
            return "copied"

        def __deepcopy__(self, memo):
            return "deep"

    ring = Node([1])
    ring.next = ring
    twin = copy.deepcopy(ring)
    assert twin is not ring and twin.next is twin and twin.value == [1] and twin.value is not ring.value
    assert copy.copy(ring).value is ring.value
    assert copy.copy(Custom()) == "copied" and copy.deepcopy([Custom()]) == ["deep"]


LEVEL = contextvars.ContextVar("level", default=0)


def app_contextvars():
    assert LEVEL.get() == 0
    token = LEVEL.set(3)
    assert LEVEL.get() == 3
    LEVEL.reset(token)
    assert LEVEL.get() == 0 and LEVEL.name == "level"


def app_new_contextvars():
    variable, plain = contextvars.ContextVar("depth", default=(1,)), contextvars.ContextVar("plain")
    assert variable.get() == (1,) and variable.get(2) == 2 and variable.name == "depth"
    outer = variable.set((2,))
    inner = variable.set((3,))
    assert variable.get() == (3,) and inner.var is variable
    variable.reset(inner)
    assert variable.get(5) == (2,)
    variable.reset(outer)
    assert variable.get(5) == 5
    try:
        plain.get()
    except LookupError as e:
        assert e.args == (plain,)
    else:
        raise AssertionError
    try:
        contextvars.ContextVar(b"name")
    except TypeError as e:
        assert str(e) == "context variable name must be a str"
    else:
        raise AssertionError


@expected_break("a callback for the death of an object made in the trace")
def app_weakrefs():
    class Thing:
        pass

    thing = Thing()
    reference = weakref.ref(thing)
    assert reference() is thing
    cache = weakref.WeakKeyDictionary({thing: 1})
    assert cache[thing] == 1 and len(cache) == 1


def app_inspect_signature():
    def f(a, b=2, *args, c, d=4, **kwargs):
        pass

    signature = inspect.signature(f)
    assert str(signature) == "(a, b=2, *args, c, d=4, **kwargs)"
    assert [p.name for p in signature.parameters.values() if p.default is not p.empty] == ["b", "d"]
    bound = signature.bind(1, c=3)
    bound.apply_defaults()
    assert bound.arguments == {"a": 1, "b": 2, "args": (), "c": 3, "d": 4, "kwargs": {}}
    assert inspect.isfunction(f) and not inspect.isclass(f)


def app_simple_namespace():
    n = types.SimpleNamespace(a=1)
    n.b = [n.a]
    assert (
        vars(n) == {"a": 1, "b": [1]} and n == types.SimpleNamespace(a=1, b=[1]) and repr(n) == "namespace(a=1, b=[1])"
    )
    n.__dict__.update(c=3)
    assert n.c == 3


def app_attribute_builtins():
    n = types.SimpleNamespace()
    setattr(n, "x", 1)
    assert getattr(n, "x") == 1 and hasattr(n, "x") and getattr(n, "y", None) is None
    delattr(n, "x")
    assert (
        not hasattr(n, "x")
        and callable(len)
        and not callable(n)
        and isinstance(3, (str, int))
        and isinstance(3, int | str)
    )
    assert type(n) is types.SimpleNamespace and id(n) == id(n) and "append" in dir([])
