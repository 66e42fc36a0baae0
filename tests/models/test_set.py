"""Sets that exist before the trace, sets that leave it, and their order."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stator
from stator._core import set_table


def compiled(function):
    return stator.compile(function, backend="eager", fullgraph=True)


def shown(value):
    """A structure with its sets as lists in their order."""
    if isinstance(value, set | frozenset):
        return type(value), list(value), len(value)
    if isinstance(value, list | tuple):
        return type(value), [shown(item) for item in value]
    if isinstance(value, dict):
        return type(value), [(shown(k), shown(v)) for k, v in value.items()]
    return type(value), value


def outcome(function, args):
    try:
        return "returned", shown(function(*args))
    except Exception as e:
        return type(e), e.args


def agrees(function, *makers):
    """The compiled function does what the plain one does, to its arguments too; each maker makes the arguments anew."""
    fast = compiled(function)
    for make in makers:
        mine, theirs = make(), make()
        assert outcome(fast, mine) == outcome(function, theirs)
        assert shown(mine) == shown(theirs)


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


class Thing:
    def __init__(self, n):
        self.n = n


def test_membership_depends_on_that_element_alone():
    def f(s):
        return "a" in s, 5 in s

    assert count_of_traces(f, ({"a"},), ({"a", "b", 7},), ({5, "b"},), (frozenset("a"),)) == [1, 0, 1, 1]


def test_size_and_order_are_noticed():
    def f(s):
        return len(s)

    def g(s):
        return list(s)

    assert count_of_traces(f, ({1, 2},), ({3, 4},), ({1},)) == [1, 0, 1]
    agrees(g, lambda: ({1, 2},), lambda: ({8, 16},), lambda: ({16, 8},), lambda: (set("hello"),), lambda: (set(),))


def test_sets_of_objects_are_followed_in_their_own_order():
    things = [Thing(n) for n in range(20)]

    def f(s):
        return [thing.n for thing in s]

    fast = compiled(f)
    for some in (things[:4], things[4:8], things[8:12]):
        assert fast(set(some)) == f(set(some))


def test_objects_looked_up_by_identity():
    one, two, three = Thing(1), Thing(2), Thing(3)

    def f(a, b):
        return b in {a}, len({a, b})

    fast = compiled(f)
    for a, b in [(one, two), (two, three), (three, three), (one, one), (one, two)]:
        assert fast(a, b) == f(a, b)


def test_changes_are_written_back():
    def f(s):
        s.add("x")
        s.discard("a")
        s.update({"p": 1}, {"q", "r"}, ["t"])
        s.difference_update({"p"})
        return "x" in s, len(s)

    agrees(f, lambda: ({"a", "b"},), lambda: (set(),), lambda: ({"x", "q"},))


def test_clearing_and_filling():
    def f(s):
        s.clear()
        s.update([64, 0, 8], {16, 24})
        return list(s)

    agrees(f, lambda: ({1, 2, 3},), lambda: (set(),), lambda: (set(range(100)),))


def test_intersection_and_symmetric_difference_in_place():
    def f(s, t):
        s &= t
        t ^= {1, 99}
        return len(s), len(t)

    agrees(f, lambda: ({1, 2, 3}, {2, 3, 4}), lambda: ({1}, {1}), lambda: (set(), {5}))


def test_a_set_and_itself():
    def f(s, t):
        s |= t
        s.symmetric_difference_update(t)
        return len(s)

    def one():
        s = {1, 2}
        return s, s

    agrees(f, lambda: ({1, 2}, {3}), one, lambda: ({1, 2}, {1, 2}))


def test_iterating_over_objects_made_in_the_trace_breaks():
    def f():
        return [thing.n for thing in {Thing(1), Thing(2)}]

    with pytest.raises(stator.GraphBreakError, match="addresses"):
        compiled(f)()
    assert sorted(stator.compile(f, backend="eager")()) == [1, 2]


def test_an_existing_set_that_grew_is_iterated():
    def f(s):
        s.add(1000)
        return list(s), s.pop(), s

    agrees(f, lambda: ({1, 2, 3},), lambda: ({8, 16},), lambda: (set(range(30)),), lambda: (set(),))


def popped(elements, count):
    s = set(elements)
    for _ in range(count):
        s.pop()
    return s


def test_existing_sets_of_the_same_elements_are_told_apart_by_their_tables():
    def f(s):
        s.add(8)
        s.difference_update([1])
        return list(s), s

    crowded = [0, 16, 8, 24, 1]
    agrees(f, lambda: (set(crowded[2:]),), lambda: (popped(range(100), 0) & {8, 24, 1},), lambda: (popped(crowded, 2),))


def test_where_pop_goes_on_is_noticed():
    def f(s):
        s.add(0)
        return s.pop(), s.pop()

    agrees(f, *(lambda count=count: (popped(range(6), count),) for count in range(5)))


def test_pop_after_an_existing_set_was_cleared_and_filled():
    def f(s):
        first = s.pop()
        s.clear()
        s.update([0, 1, 2, 3, 4])
        return first, s.pop(), s

    agrees(f, *(lambda count=count: (popped(range(6), count),) for count in range(5)))


def test_clearing_does_not_look_at_what_was_there():
    def f(s):
        s.clear()
        s.add(8)
        return s

    assert count_of_traces(f, ({1, 2},), ({"a"},), (set(range(50)),)) == [1, 0, 0]


def test_elements_with_their_own_hash_keep_their_places():
    class Key:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return self.n

        def __eq__(self, other):
            return self.n == other.n

    def f(s, key):
        s.add(key)
        s -= {s.pop()}
        return [key.n for key in s]

    for start in ([8, 16, 1], [16, 8, 1], [3]):
        assert compiled(f)({*map(Key, start)}, Key(24)) == f({*map(Key, start)}, Key(24))


def test_methods_of_elements_run_once():
    class Key:
        def __init__(self, n, seen):
            self.n = n
            self.seen = seen

        def __hash__(self):
            return self.n % 8

        def __eq__(self, other):
            self.seen.append((self.n, other.n))
            return self.n == other.n

    def f(s, key, other):
        s.add(key)
        s ^= {key, other}
        s.pop()
        return [key.n for key in s]

    def run(function):
        seen = []
        s = {Key(n, seen) for n in (1, 9, 2, 17)}
        found = function(s, Key(25, seen), Key(9, seen))
        return found, seen, [key.n for key in s], set_table(s)

    assert run(compiled(f)) == run(f)


def test_order_that_addresses_have_left_is_not_guessed():
    def f(thing):
        s = {thing, "a", "b"}
        s.discard(thing)
        return list(s)

    with pytest.raises(stator.GraphBreakError, match="addresses"):
        compiled(f)(Thing(1))


def test_an_existing_set_that_shrank_is_iterated():
    def f(s):
        s.discard(2)
        return list(s)

    agrees(f, lambda: ({1, 2, 3},), lambda: ({5},), lambda: ({2},))


def test_an_iterator_made_before():
    def f(it):
        return next(it), list(it), next(it, "end")

    results = []
    for run in (f, compiled(f)):
        it = iter({3, 1, 2, 7})
        next(it)
        results.append((run(it), list(it)))
    assert results[0] == results[1]


def test_an_iterator_over_a_set_that_changes():
    def f(it, s):
        s.add("new")
        return next(it)

    for run in (f, compiled(f)):
        s = {"a"}
        it = iter(s)
        with pytest.raises(RuntimeError, match="Set changed size"):
            run(it, s)
        with pytest.raises(RuntimeError, match="Set changed size"):
            next(it)


ELEMENTS = st.one_of(st.integers(-40, 80).map(repr), st.sampled_from(["'a'", "'bc'", "None", "1.0", "(1, 8)", "True"]))
LISTS = st.lists(ELEMENTS, max_size=6).map(lambda items: f"[{', '.join(items)}]")
STEPS = st.one_of(
    st.builds("s.add({})".format, ELEMENTS),
    st.builds("s.discard({})".format, ELEMENTS),
    st.builds("s.remove({})".format, ELEMENTS),
    st.builds("out.append({} in s)".format, ELEMENTS),
    st.builds("s.update({})".format, LISTS),
    st.builds("s |= set({})".format, LISTS),
    st.builds("s = s | set({})".format, LISTS),
    st.builds("s = s - set({})".format, LISTS),
    st.builds("s = s & set({})".format, LISTS),
    st.builds("s = s ^ set({})".format, LISTS),
    st.builds("s &= set({})".format, LISTS),
    st.builds("s -= set({})".format, LISTS),
    st.builds("s ^= set({})".format, LISTS),
    st.builds("s = s.union({}, (8, 16))".format, LISTS),
    st.builds("s = s.intersection({})".format, LISTS),
    st.builds("s = s.difference(dict.fromkeys({}))".format, LISTS),
    st.builds("out.append(s >= set({}))".format, LISTS),
    st.builds("out.append(s.isdisjoint({}))".format, LISTS),
    st.sampled_from(
        "s = s.copy();out.append(s);out.append(frozenset(s));s = set(s);out.append(len(s));s.clear()".split(";")
    ),
)
LOOKS = st.sampled_from(["out.append(list(s))", "out.append(s.pop())", "out.append(repr(s))", "out.append([*s])"])


@settings(max_examples=80, deadline=None)
@given(LISTS, st.lists(st.one_of(STEPS, LOOKS), min_size=1, max_size=8))
def test_random_programs_over_a_new_set(start, steps):
    body = "".join(f"    {step}\n" for step in steps)
    namespace = {}
    exec(f"def f():\n    out = []\n    s = set({start})\n{body}    return out, s\n", namespace)
    function = namespace["f"]
    whole = outcome(compiled(function), ())
    assert whole == outcome(function, ()) or (whole[0] is stator.GraphBreakError and "history" in whole[1][1])
    assert outcome(stator.compile(function, backend="eager"), ()) == outcome(function, ())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-40, 80), max_size=6), st.lists(STEPS, min_size=1, max_size=6))
def test_random_programs_over_an_existing_set(start, steps):
    body = "".join(f"    {step}\n" for step in steps)
    namespace = {}
    exec(f"def f(s):\n    out = []\n{body}    return len(out), len(s), sorted(map(str, s))\n", namespace)
    function = namespace["f"]
    mine, theirs = set(start), set(start)
    assert outcome(stator.compile(function, backend="eager"), (mine,)) == outcome(function, (theirs,))
    assert mine == theirs


@settings(max_examples=10, deadline=None)
@given(LISTS, st.lists(st.one_of(STEPS, LOOKS), min_size=1, max_size=6))
def test_random_programs_with_a_break_at_every_instruction(start, steps):
    body = "".join(f"    {step}\n" for step in steps)
    namespace = {"shown": shown}
    exec(f"def f():\n    out = []\n    s = set({start})\n{body}    return shown(out), list(s)\n", namespace)
    assert stator.testing.break_everywhere(namespace["f"], ()) > 0


# -- what is added to existing sets waits until somebody asks ----------------------------------------------------------

few = st.integers(-3, 9)
STEPS = st.one_of(
    st.tuples(st.sampled_from(["add", "discard", "in", "remove", "isdisjoint", "update"]), st.integers(0, 2)),
    st.tuples(st.sampled_from(["add", "in", "discard"]), st.sampled_from(["a", "b", (1, 2), None, 2.0])),
    st.tuples(st.sampled_from(["len", "list", "clear", "pop", "copy", "going over it"]), st.just(0)),
)


def add_and_ask(elements, first, second, third, steps):
    results = []
    for step, what in steps:
        item = [first, second, third][what] if type(what) is int else what
        try:
            match step:
                case "in":
                    result = item in elements
                case "len":
                    result = len(elements)
                case "list":
                    result = list(elements)
                case "going over it":
                    result = [elements.add(first) for _ in elements]
                case "isdisjoint" | "update":
                    result = getattr(elements, step)([item])
                case "clear" | "pop" | "copy":
                    result = getattr(elements, step)()
                case _:
                    result = getattr(elements, step)(item)
        except Exception as e:
            result = (type(e).__name__, str(e))
        results.append(result)
    return results


class Elements(set):
    """A subclass, to be written back by the methods of set itself."""

    def add(self, item):
        super().add(item)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([set, Elements]),
    st.lists(st.tuples(st.lists(few | st.sampled_from("ab"), max_size=5), few, few, few), min_size=2, max_size=4),
    st.lists(STEPS, max_size=5),
)
def test_additions_and_questions(kind, calls, steps):
    fast = compiled(add_and_ask)
    for elements, *numbers in calls:
        mine, theirs = kind(elements), kind(elements)
        assert shown(fast(mine, *numbers, steps)) == shown(add_and_ask(theirs, *numbers, steps))
        assert shown(mine) == shown(theirs)


def test_what_is_only_added_needs_no_guard_on_what_is_there():
    def seen(elements, n):
        elements.add(n)
        elements.add("any")

    assert count_of_traces(seen, *[(set(range(n)), 100) for n in (7, 3, 5, 0, 2, 9)]) == [1, 0, 0, 0, 0, 0]
