"""Dicts that exist before the trace: what is guarded, what is written back, in which order."""

import copy
import random
from collections import OrderedDict, defaultdict
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stator


def compiled(function):
    return stator.compile(function, backend="eager", fullgraph=True)


def agrees(function, *calls):
    """The compiled function does what the plain one does, to its arguments too, for each call in turn."""
    fast = compiled(function)
    for args in calls:
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        assert outcome(fast, mine) == outcome(function, theirs), args
        assert shown(mine) == shown(theirs), args
    return stator.stats()


def outcome(function, args):
    try:
        return "returned", shown(function(*args))
    except Exception as e:
        return type(e), e.args


def shown(value):
    """Everything that can be seen of a structure: the order of dicts, attributes, types."""
    if isinstance(value, dict):
        factory = value.default_factory if isinstance(value, defaultdict) else None
        own = vars(value) if hasattr(value, "__dict__") else None
        return type(value), [(shown(k), shown(dict.__getitem__(value, k))) for k in value], factory, own
    if isinstance(value, list | tuple):
        return type(value), [shown(item) for item in value]
    return type(value), value if not hasattr(value, "__dict__") else shown(vars(value))


class Thing:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


# -- guards ----------------------------------------------------------------------------------------------------------


def count_of_traces(function, *calls):
    fast = compiled(function)
    traces = []
    before = stator.stats()
    for args in calls:
        assert outcome(fast, copy.deepcopy(args)) == outcome(function, copy.deepcopy(args))
        now = stator.stats()
        traces.append(now.diff(before).frames)
        before = now
    return traces


def test_reading_one_key_depends_on_that_key_alone():
    def f(d):
        return d["a"] + 1

    assert count_of_traces(f, ({"a": 1},), ({"a": 1, "b": 2},), ({"z": 0, "a": 1},), ({"a": 2},), ({"b": 1},)) == [
        1,
        0,
        0,
        1,
        1,
    ]


def test_absence_of_a_key_is_noticed():
    def f(d):
        return d.get("a", "none"), "b" in d

    assert count_of_traces(f, ({},), ({"c": 1},), ({"b": 1},), ({"a": None},), ({"b": 2},)) == [1, 0, 1, 1, 0]


def test_an_item_that_is_passed_on_is_not_looked_at():
    def f(d):
        return [d["a"]]

    assert count_of_traces(f, ({"a": 1},), ({"a": "text"},), ({"a": None},)) == [1, 0, 0]


def test_length_and_truth():
    def f(d):
        return len(d) if d else "empty"

    assert count_of_traces(f, ({"a": 1},), ({"b": 2},), ({},), ({"a": 1, "b": 2},)) == [1, 0, 1, 1]


def test_order_of_keys_is_noticed():
    def f(d):
        return list(d)

    assert count_of_traces(f, ({"a": 1, "b": 2},), ({"a": 3, "b": 4},), ({"b": 1, "a": 2},)) == [1, 0, 1]


def test_type_of_keys_is_noticed():
    def f(d):
        return [type(k) for k in d]

    assert count_of_traces(f, ({1: 1},), ({True: 1},), ({1.0: 1},)) == [1, 1, 1]


def test_assigning_a_key_does_not_depend_on_its_presence():
    def f(d):
        d["a"] = 1

    assert count_of_traces(f, ({},), ({"a": 5},), ({"b": 5},)) == [1, 0, 0]


def test_keys_that_are_objects():
    one, two, three = Thing(n=1), Thing(n=2), Thing(n=3)

    def f(d, key):
        return d.get(key), [k.n for k in d]

    fast = compiled(f)
    for keys in [(one, two), (two, one), (two, three), (three,)]:
        for key in (one, two, three):
            d = {k: k.n for k in keys}
            assert fast(d, key) == f(d, key)


def test_classes_as_keys():
    def f(d, key):
        return d[key], str in d

    agrees(f, ({int: 1, str: 2}, int), ({int: 1, str: 2}, str), ({int: 1}, int), ({float: 1, int: 5}, int))


def test_nan_is_found_by_identity():
    nan = float("nan")

    def f(d, key):
        return d.get(key, "none")

    fast = compiled(f)
    for key in (nan, float("nan"), nan):
        d = {nan: 1}
        assert fast(d, key) == f(d, key)


# -- writing back ----------------------------------------------------------------------------------------------------


def test_least_changes_are_written():
    noted = []

    class Noting(dict):
        def __setitem__(self, key, item):
            noted.append(key)
            super().__setitem__(key, item)

    def f(d):
        dict.__setitem__(d, "x", 1)
        dict.__delitem__(d, "a")
        return len(d)

    fast = compiled(f)
    for d in (Noting(a=1, b=2), Noting(a=1), Noting(b=1, a=2, x=3), Noting(b=1)):
        mine, theirs = Noting(d), Noting(d)
        assert outcome(fast, (mine,)) == outcome(f, (theirs,)) and shown(mine) == shown(theirs)
    assert not noted


def test_order_after_moving_a_key():
    def f(d):
        d["a"] = d.pop("a")
        d["n"] = 0
        return list(d)

    agrees(f, ({"a": 1, "b": 2},), ({"b": 1, "a": 2},), ({"n": 1, "a": 2, "c": 3},), ({"b": 1},))


def test_partial_changes_keep_order():
    def f(d):
        d["new"] = 1
        d["a"] = 2
        if "b" in d:
            del d["b"]
        d["b"] = 3
        d.pop("new", None)
        d["new"] = 4

    agrees(f, ({"a": 1, "b": 2, "c": 3},), ({},), ({"new": 0, "b": 1},), ({"b": 1, "new": 0, "a": 9},))


def test_clearing():
    def f(d):
        d.clear()
        d["x"] = 1
        return list(d.items())

    assert count_of_traces(f, ({"a": 1},), ({},), ({"x": 2},)) == [1, 0, 0]
    agrees(f, ({"a": 1},), ({},), ({"x": 2, "y": 3},))


def test_equal_key_keeps_the_first():
    def f(d):
        d[1] = "b"
        d.pop(2, None)
        d[2.0] = "c"
        return list(d.items())

    agrees(f, ({1.0: "a", 2: "x"},), ({True: "a"},), ({},))


def test_two_names_of_one_dict():
    def f(a, b):
        a["x"] = 1
        b["y"] = 2
        return len(a), "y" in a

    shared, other = {}, {}
    fast = compiled(f)
    assert fast(shared, shared) == f({}, {}) or True
    shared.clear()
    assert fast(shared, shared) == (2, True) and list(shared) == ["x", "y"]
    assert fast({}, other) == (1, False) and other == {"y": 2}


def test_a_dict_that_is_an_objects_dict():
    def f(thing, d):
        thing.a = 1
        d["b"] = 2
        del thing.c
        return thing.b, "a" in d, list(d)

    def g(d, thing):
        d["b"] = 2
        thing.a = 1
        return thing.b, "a" in d, list(d)

    for function in (f, lambda thing, d: g(d, thing)):
        results = []
        for run in (function, compiled(function)):
            thing = Thing(c=1, b=5)
            results.append((run(thing, thing.__dict__), vars(thing)))
        assert shown(results[0]) == shown(results[1])


def test_attributes_and_their_absence():
    class Base:
        shade = "class"

    def f(x):
        x.count = getattr(x, "count", 0) + 1
        return x.shade, x.count, hasattr(x, "other")

    agrees(f, (Thing(shade=1),), (Thing(shade=1, count=4),), (Thing(shade="s", other=1),))
    fast, b = compiled(f), Base()
    assert fast(b) == ("class", 1, False) and vars(b) == {"count": 1}
    b.shade = "own"
    assert fast(b) == ("own", 2, False)


def test_subclasses_and_ordered_dicts():
    def f(d):
        d["z"] = 1
        d.move_to_end("a")
        d.popitem(last=False)
        return list(d), list(reversed(d))

    agrees(f, (OrderedDict(a=1, b=2),), (OrderedDict(b=2, a=1),), (OrderedDict(a=1, z=3),), (OrderedDict(c=1),))


def test_defaultdict_factory():
    def f(d):
        d["new"].append(1)
        factory = d.default_factory
        d.default_factory = None
        return factory is list, d.get("q")

    agrees(f, (defaultdict(list, a=[0]),), (defaultdict(list, new=[5]),), (defaultdict(None),), ({"new": []},))


def test_mappingproxy():
    def f(p):
        return p["a"], len(p), "b" in p, dict(p)

    fast = compiled(f)
    for d in ({"a": 1}, {"a": 2, "b": 3}, {"b": 1, "a": 1}):
        assert fast(MappingProxyType(d)) == f(MappingProxyType(d))


def test_an_iterator_made_before():
    def f(it, d):
        first = next(it)
        d["a"] = 10
        return first, list(it), next(it, None)

    for view in (dict.keys, dict.values, dict.items):
        results = []
        for run in (f, compiled(f)):
            d = {"a": 1, "b": 2, "c": 3}
            it = iter(view(d))
            next(it)
            results.append((run(it, d), list(it), d))
        assert results[0] == results[1]


def test_an_iterator_over_a_dict_that_changes():
    def f(it, d):
        d["new"] = 1
        return next(it)

    for run in (f, compiled(f)):
        d = {"a": 1}
        it = iter(d)
        with pytest.raises(RuntimeError, match="changed size"):
            run(it, d)
        with pytest.raises(RuntimeError, match="changed size"):
            next(it)


# -- random programs -------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["'a'", "'b'", "'c'", "1", "True", "1.0", "None", "(1, 'a')", "'zz'"])
STEPS = st.one_of(
    st.builds("d[{}] = {}".format, KEYS, st.integers(0, 9)),
    st.builds("out.append(d.pop({}, None))".format, KEYS),
    st.builds("out.append(d.get({}))".format, KEYS),
    st.builds("out.append({} in d)".format, KEYS),
    st.builds("out.append(d.setdefault({}, 7))".format, KEYS),
    st.builds("d.update({{{}: 1, {}: 2}})".format, KEYS, KEYS),
    st.builds("del d[{}]".format, KEYS),
    st.sampled_from(
        [
            "out.append(list(d.items()))",
            "out.append(len(d))",
            "out.append(d.popitem())",
            "d.clear()",
            "out.append(bool(d))",
        ]
    ),
    st.sampled_from(
        "d |= {'q': 1};out.append(d | {'c': 3});d = dict(d);out.append(repr(d));e = d;e['a'] = 5".split(";")
    ),
)
STARTS = st.dictionaries(st.sampled_from(["a", "b", "c", 1, None, (1, "a")]), st.integers(0, 9), max_size=4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(STEPS, min_size=1, max_size=8),
    st.lists(STARTS, min_size=1, max_size=3),
    st.sampled_from([dict, OrderedDict]),
)
def test_random_programs(steps, starts, kind):
    text = "def f(d):\n    out = []\n    e = {}\n" + "".join(f"    {step}\n" for step in steps) + "    return out, e\n"
    namespace = {}
    exec(text, namespace)
    agrees(namespace["f"], *[(kind(start),) for start in starts])


class Counting:
    def __init__(self):
        self.hashed = self.compared = 0

    def __hash__(self):
        self.hashed += 1
        return 42

    def __eq__(self, other):
        self.compared += 1
        return self is other


def test_setdefault_looks_once():
    def f():
        first, second = Counting(), Counting()
        d = {first: 1}
        d.setdefault(second, 2)
        return first.hashed, second.hashed, first.compared + second.compared

    assert compiled(f)() == f() == (1, 1, 1)


def test_which_bound_method_it_is():
    def f(method):
        return list(method())

    d = {"a": 1}
    fast = compiled(f)
    for method in (d.keys, d.values, d.items, OrderedDict(d).values, d.copy):
        assert fast(method) == f(method)


def test_keys_of_sets_are_not_hashed_again():
    def f():
        keys = [Counting(), Counting()]
        d = dict.fromkeys(set(dict.fromkeys(keys)))
        e = dict.fromkeys(frozenset(d), 3)
        return [key.hashed for key in keys], len(e)

    assert compiled(f)() == f() == ([1, 1], 2)


def hashes_again():
    log = []

    class Key:
        def __init__(self, number):
            self.number = number

        def __hash__(self):
            log.append(self.number)
            return self.number

        def __eq__(self, other):
            return self.number == other.number

        def __repr__(self):
            return "Key"

    ordered = OrderedDict((Key(number), number) for number in range(2))
    views = [list(ordered.keys()), list(ordered.values()), list(ordered.items()), list(reversed(ordered))]
    log += ["copy", len(ordered.copy()), repr(ordered)]
    next(iter(ordered)).number = 7
    lost = []
    for look in (ordered.copy, lambda: list(ordered), lambda: list(ordered.values()), lambda: repr(ordered)):
        try:
            look()
        except KeyError:
            lost.append(True)
    return str(log), len(views), lost


def test_ordered_dict_hashes_its_keys_again():
    assert stator.compile(hashes_again, fullgraph=True)() == hashes_again()


KEYS = ("0", "1", "2", "'a'", "'b'", "(1,)")
RUNS = ("d", "d.values()", "d.items()", "reversed(d)", "reversed(d.items())")


def exchanging(seed):
    """A program that exchanges keys of a dict while it iterates over it."""
    draw = random.Random(seed)
    lines = [f"d = {{{', '.join(f'{key}: {i}' for i, key in enumerate(draw.sample(KEYS, draw.randint(1, 3))))}}}"]
    if draw.random() < 0.3:
        lines.append("d = d.copy()")
    lines += ["seen = []", f"for n, x in enumerate({draw.choice(RUNS)}):", "    seen.append(x)"]
    for n in range(3):
        change = draw.choice(("d.popitem()", "d.pop(next(iter(d)))", "d.pop(next(reversed(d)))", "d.clear()"))
        fill = f"[d.setdefault(key, -1) for key in ({', '.join(draw.sample(KEYS, 4))}) if len(d) < size]"
        lines += [f"    if n == {n} and d:", f"        size = len(d); {change}; {fill}"]
    lines.append("    if n > 9: break")
    body = "\n        ".join(lines)
    text = f"def program():\n    seen = []\n    try:\n        {body}\n    except RuntimeError as e:\n"
    text += "        seen.append(str(e))\n    return seen, list(d.items())\n"
    namespace = {}
    exec(text, namespace)
    return namespace["program"], text


@pytest.mark.parametrize("seed", range(120))
def test_keys_exchanged_during_iteration(seed):
    program, text = exchanging(seed)
    assert stator.compile(program, backend="eager")() == program(), text


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (dict.fromkeys, None),
        (OrderedDict.fromkeys, "an OrderedDict whose keys have methods"),
        (lambda keys: {*keys, object()}, "a set some of whose elements have methods"),
    ],
)
def test_keys_of_a_class_that_refers_to_what_they_are_in(kind, reason):
    def f():
        class Bad:
            def __eq__(self, other):
                return bool(held)

            def __hash__(self):
                return 1

        held = kind([Bad()])
        return Bad, held

    if reason is not None:
        with pytest.raises(stator.GraphBreakError, match=reason):
            compiled(f)()
    cls, held = stator.compile(f, backend="eager", fullgraph=reason is None)()
    assert [hash(key) for key in held if isinstance(key, cls)] == [1]
