"""list, tuple, dict, set, range, slice: methods, order, mutation while iterating, aliasing."""


def app_list_methods():
    values = [3, 1, 2]
    values.append(5)
    values.extend(x for x in (4,))
    values.insert(1, 9)
    assert values == [3, 9, 1, 2, 5, 4]
    assert values.pop() == 4 and values.pop(0) == 3
    values.remove(9)
    values.reverse()
    assert values == [5, 2, 1] and values.index(2) == 1 and values.count(7) == 0
    copy = values.copy()
    values.clear()
    assert values == [] and copy == [5, 2, 1] and copy + [0] == [5, 2, 1, 0] and copy * 2 == [5, 2, 1] * 2


def app_list_slices():
    values = list(range(6))
    values[1:3] = ["a", "b", "c"]
    assert values == [0, "a", "b", "c", 3, 4, 5]
    del values[::2]
    assert values == ["a", "c", 4]
    values[::2] = [1, 2]
    assert values == [1, "c", 2] and values[-1:] == [2] and values[5:] == []
    values[:0] = [0]
    assert values[0] == 0
    try:
        values[::2] = [1]
    except ValueError as error:
        assert "attempt to assign sequence of size 1 to extended slice of size 2" == str(error)
    else:
        raise AssertionError("no ValueError")


def app_aliasing():
    a = [1]
    b = a
    b += [2]
    assert a == [1, 2] and a is b
    b = b + [3]
    assert a == [1, 2] and b == [1, 2, 3]
    rows = [[]] * 2
    rows[0].append(1)
    assert rows == [[1], [1]]


def app_augmented_item_assignment():
    t = ([],)
    try:
        t[0] += [1]
    except TypeError as error:
        assert "does not support item assignment" in str(error)
    assert t == ([1],)
    d = {"a": 1}
    d["a"] += 2
    d["b"] = d.setdefault("c", 5) + 1
    assert d == {"a": 3, "c": 5, "b": 6}


def app_sort():
    words = ["pear", "fig", "apple", "kiwi"]
    assert sorted(words, key=len) == ["fig", "pear", "kiwi", "apple"]
    words.sort(key=lambda w: (-len(w), w))
    assert words == ["apple", "kiwi", "pear", "fig"]
    words.sort(reverse=True)
    assert words == ["pear", "kiwi", "fig", "apple"]
    assert sorted([(1, "b"), (0, "z"), (1, "a")]) == [(0, "z"), (1, "a"), (1, "b")]
    try:
        sorted([1, "a"])
    except TypeError as error:
        assert "'<' not supported between instances of 'str' and 'int'" == str(error)
    else:
        raise AssertionError("no TypeError")


def app_sort_is_stable_and_key_runs_once():
    calls = []

    def key(pair):
        calls.append(pair)
        return pair[0]

    pairs = [(1, "a"), (0, "b"), (1, "c"), (0, "d")]
    assert sorted(pairs, key=key) == [(0, "b"), (0, "d"), (1, "a"), (1, "c")]
    assert sorted(pairs, key=key, reverse=True) == [(1, "a"), (1, "c"), (0, "b"), (0, "d")]
    assert calls == pairs * 2


def app_list_changed_while_iterating():
    values, seen = [1, 2, 3, 4], []
    for v in values:
        seen.append(v)
        if v == 2:
            values.remove(1)
        if v == 4 and len(seen) < 5:
            values.append(5)
    assert seen == [1, 2, 4, 5] and values == [2, 3, 4, 5]


def app_dict_methods():
    d = {"a": 1, "b": 2}
    assert d.get("z") is None and d.get("z", 0) == 0 and d.pop("a") == 1 and d.pop("a", "gone") == "gone"
    d.update({"c": 3}, e=5)
    assert list(d.items()) == [("b", 2), ("c", 3), ("e", 5)] and d.popitem() == ("e", 5)
    assert d | {"b": 0, "z": 9} == {"b": 0, "c": 3, "z": 9}
    d |= [("q", 1)]
    assert list(d) == ["b", "c", "q"] and list(reversed(d)) == ["q", "c", "b"]
    assert dict.fromkeys("ab", 0) == {"a": 0, "b": 0} and dict(zip("xy", (1, 2)), z=3) == {"x": 1, "y": 2, "z": 3}
    del d["b"]
    d["b"] = 1
    assert list(d)[-1] == "b" and "b" in d and len(d) == 3


def app_dict_views():
    d = {"a": 1, "b": 2}
    keys, values, items = d.keys(), d.values(), d.items()
    d["c"] = 3
    assert list(keys) == ["a", "b", "c"] and sum(values) == 6 and ("c", 3) in items
    assert keys & {"a", "z"} == {"a"} and keys - {"a"} == {"b", "c"} and {"x": 1}.keys() | keys == {"x", "a", "b", "c"}
    assert d.keys() == {"a", "b", "c"} and len(items) == 3


def app_dict_changed_while_iterating():
    d = {"a": 1, "b": 2}
    try:
        for key in d:
            d[key + "x"] = 0
    except RuntimeError as error:
        assert str(error) == "dictionary changed size during iteration"
    else:
        raise AssertionError("no RuntimeError")
    for key in list(d):
        d.pop(key)
    assert d == {}


def app_dict_keys_are_equal_not_identical():
    d = {1: "int", "1": "str"}
    d[1.0] = "float"
    d[True] = "bool"
    assert d == {1: "bool", "1": "str"} and list(d) == [1, "1"] and type(next(iter(d))) is int

    class Key:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return self.n % 2

        def __eq__(self, other):
            return self.n == other.n

    k = {Key(1): "a", Key(3): "b"}
    assert k[Key(1)] == "a" and k[Key(3)] == "b" and Key(5) not in k


def app_sets():
    a, b = {1, 2, 3}, {3, 4}
    assert a | b == {1, 2, 3, 4} and a & b == {3} and a - b == {1, 2} and a ^ b == {1, 2, 4}
    assert {1} < a and a >= {2} and a.isdisjoint({9}) and not a <= b
    a.add(9)
    a.discard(100)
    a.update([7], (8,))
    a.intersection_update(range(8))
    assert a == {1, 2, 3, 7} and len(a) == 4
    try:
        a.remove(100)
    except KeyError as error:
        assert error.args == (100,)
    frozen = frozenset("ab")
    assert {frozen: 1}[frozenset("ba")] == 1 and frozen == {"a", "b"} and hash(frozen) == hash(frozenset("ba"))


def app_tuples():
    t = 1, 2, 3
    assert t + (4,) == (1, 2, 3, 4) and t[1:] == (2, 3) and t.index(3) == 2 and (1, 2) < (1, 3) and () == tuple([])
    assert hash((1, "a")) == hash((1, "a")) and (1, [2]) == (1, [2]) and (0,) * 3 == (0, 0, 0)


def app_ranges_and_slices():
    r = range(10, 0, -3)
    assert (
        list(r) == [10, 7, 4, 1] and len(r) == 4 and r[-1] == 1 and 7 in r and 8 not in r and r[1:] == range(7, -2, -3)
    )
    assert range(0) == range(2, 2) and list(reversed(range(3))) == [2, 1, 0] and r.index(4) == 2
    s = slice(1, None, 2)
    assert "abcdef"[s] == "bdf" and s.indices(5) == (1, 5, 2) and (s.start, s.stop, s.step) == (1, None, 2)


def app_nested_structures():
    tree = {"w": [1, {"deep": (2, 3)}], "b": {"x": []}}
    tree["w"][1]["deep"] += (4,)
    tree["b"]["x"].append(tree["w"][0])
    assert tree == {"w": [1, {"deep": (2, 3, 4)}], "b": {"x": [1]}}


def app_identity_is_kept():
    marker = object()
    box = {"a": marker, "b": [marker]}
    box["c"] = box["b"]
    assert box["a"] is marker and box["b"][0] is box["a"] and box["c"] is box["b"]
    assert marker in box["b"] and box["b"].index(marker) == 0
    nan = float("nan")
    assert nan in [nan] and [nan] == [nan] and nan != nan


def app_builtins_over_iterables():
    assert list(zip("ab", [1, 2, 3])) == [("a", 1), ("b", 2)]
    assert list(enumerate("ab", start=1)) == [(1, "a"), (2, "b")]
    assert list(map(lambda a, b: a + b, [1, 2], [10, 20])) == [11, 22] and list(filter(None, [0, 1, "", "x"])) == [
        1,
        "x",
    ]
    assert (
        min([3, 1, 2]) == 1
        and max("a", "b", key=ord) == "b"
        and max([], default=7) == 7
        and sum([[1], [2]], []) == [1, 2]
    )
    assert list(reversed([1, 2])) == [2, 1] and all([]) and not any([])
    try:
        list(zip([1], [1, 2], strict=True))
    except ValueError as error:
        assert "argument 2 is longer" in str(error)
    else:
        raise AssertionError("no ValueError")
    assert list(iter(iter([1, 2, 0, 3]).__next__, 0)) == [1, 2]
