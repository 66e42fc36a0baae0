"""set and frozenset: every method and operator, their order, and what CPython says of wrong uses."""


def outcome(function, *args, **kwargs):
    """What a call returns or raises, comparable."""
    try:
        return "returned", function(*args, **kwargs)
    except Exception as e:
        return type(e).__name__, str(e), repr(e.args)


class Key:
    def __init__(self, name, hashed):
        self.name = name
        self.hashed = hashed

    def __hash__(self):
        return self.hashed

    def __eq__(self, other):
        return isinstance(other, Key) and self.name == other.name

    def __repr__(self):
        return f"Key({self.name!r})"


class Plain:
    def __init__(self, n):
        self.n = n


class Sub(set):
    def add(self, item):
        super().add(item * 2)


class Frozen(frozenset):
    tag = "frozen"


SEEN = {"a", "b", "c"}
STEADY = {"one", "two", "three", "four"}
ALLOWED = frozenset({"x", "y"})


def numbers(n):
    yield from range(n)


def test_making():
    return [
        {1, 2, 3},
        set(),
        set("hello"),
        set([1, 1.0, True]),
        set(range(20)),
        set({"a": 1, "b": 2}),
        set({"k": 1}.items()),
        {*range(3), 9},
        {x % 3 for x in range(10)},
        set(numbers(5)),
        frozenset(),
        frozenset("abc"),
        frozenset({1, 2}),
        set(frozenset([4, 5])),
        {(1, 2), (3, 4)},
        {None, ..., 1.5, b"x"},
        frozenset(numbers(3)),
        set(dict.fromkeys("qwerty")),
    ]


def test_making_errors():
    return [
        outcome(set, 3),
        outcome(set, [[]]),
        outcome(set, 1, 2),
        outcome(frozenset, 3),
        outcome(frozenset, [{}]),
        outcome(frozenset, 1, 2),
        outcome(lambda: {[]}),
        outcome(lambda: {1: 2, **{}, (): [1]}[[]]),
        outcome(hash, set()),
        outcome(set, a=1),
    ]


def test_changing():
    s = {1, 2, 3}
    s.add(4)
    s.add(1)
    s.discard(2)
    s.discard(99)
    s.remove(3)
    out = [
        sorted(s),
        len(s),
        bool(s),
        4 in s,
        2 in s,
        outcome(s.remove, 99),
        outcome(s.add, []),
        outcome(s.discard, []),
    ]
    s.update([7, 8], (9,), numbers(2), {5: 6}, {10, 11})
    out.append(sorted(s))
    s.difference_update([7], {8})
    s.intersection_update(range(10))
    s.symmetric_difference_update([0, 100])
    out.append(sorted(s))
    t = s.copy()
    s.clear()
    out += [s, t == s, outcome(s.pop), outcome(s.remove, (1, 2))]
    one = {5}
    out += [one.pop(), one]
    return out


def test_popping_known_elements():
    s = set("abcdef")
    out = []
    while s:
        out.append(s.pop())
    return out


def test_operators():
    a, b = {1, 2, 3, 4}, frozenset({3, 4, 5})
    out = [a | b, a & b, a - b, a ^ b, b | a, b & a, b - a, b ^ a, type(a | b).__name__, type(b | a).__name__]
    c = set(a)
    c |= b
    c &= {1, 3, 5}
    c -= {1}
    c ^= {9}
    out += [c, a.union([7], (8,)), a.intersection([1, 2], {2}), a.difference([1], {2: 3}), a.symmetric_difference("ab")]
    d = b
    d |= {6}
    out += [d, b, a.union(), a.intersection(), a.difference()]
    out += [
        outcome(lambda: a | [1]),
        outcome(lambda: [1] | a),
        outcome(lambda: a + a),
        outcome(lambda: a - {}.values()),
    ]
    out += [a & {1: 2}.keys(), {1: 2}.keys() | a, outcome(lambda: a.union(3)), outcome(lambda: a.update(3))]
    return out


def test_comparison():
    a, b = {1, 2}, {1, 2, 3}
    return [
        a < b,
        a <= b,
        a > b,
        a >= b,
        a == b,
        a != b,
        a == {2, 1},
        a == frozenset([1, 2]),
        frozenset([1]) == {1},
        a == [1, 2],
        a.issubset([1, 2, 3]),
        b.issuperset(iter([1])),
        a.isdisjoint([3]),
        a.isdisjoint(b),
        a.isdisjoint(numbers(5)),
        set() < a,
        a < a,
        a <= a,
        outcome(lambda: a < [1]),
        outcome(lambda: a.issubset(3)),
        {1, 2} == {1.0, 2.0},
        sorted([{1, 2, 3}, {1}, {1, 2}], key=len),
    ]


def test_order_is_that_of_the_host():
    words = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"]
    s = set(words)
    t = {w.upper() for w in words} | {"extra"}
    u = s - {"fox"}
    v = s & set(words[3:])
    w = s ^ {"fox", "cat"}
    x = set(dict.fromkeys(words + ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"]))
    y = set(x)
    y.update("lmn")
    y.discard("a")
    return [
        list(s),
        list(t),
        list(u),
        list(v),
        list(w),
        list(x),
        list(y),
        list(s.union(words[::-1])),
        repr(s),
        [*map(len, s)],
    ]


def test_order_of_numbers():
    s = {64, 0, 8, 16, 1, 33, -1, -2}
    t = set([8, 0, 16, 24])
    t.discard(0)
    t.add(32)
    t.add(0)
    return list(s), list(t), list(s | t), list({3, 2, 1}), next(iter({9, 17})), list(frozenset([16, 8, 0]))


def test_returned_sets_keep_their_order():
    words = "one two three four five six seven eight nine ten".split()
    s = set(words)
    return s, list(s), s | {"x"}, list(s | {"x"}), set(dict.fromkeys(words)), s - {"one"}, frozenset(words)


def changed():
    s = {1, 2}
    for x in s:
        s.add(x + 10)


def test_iteration():
    s = {3, 1, 2}
    it = iter(s)
    out = [next(it), it.__length_hint__(), list(it), next(it, "end"), outcome(changed), max(s), sum(s), sorted(s), [*s]]
    a, *b = s
    return out, a, b, list(enumerate(s)), list(zip(s, s)), list(map(str, s)), any(s), all(s)


def test_frozenset():
    f = frozenset([1, 2])
    d = {f: "f"}
    out = [
        d[frozenset([2, 1])],
        hash(f) == hash(frozenset((2, 1))),
        f.copy() is f,
        frozenset(f) is f,
        {1, 2} in d if False else 0,
    ]
    out += [f in {frozenset({1, 2}), 3}, {1, 2} in {f}, outcome(lambda: f.add(1))[0], f | {3}, len(f), 1 in f, bool(f)]
    s = {f, frozenset()}
    s.discard({1, 2})
    out += [s, outcome(lambda: s.remove({5})), hash(frozenset()), {f: 1} == {frozenset({2, 1}): 1}]
    return out


def test_repr():
    s = {1}
    return (
        repr(s),
        repr(set()),
        repr(frozenset()),
        repr(frozenset([1])),
        repr(Sub([1])),
        repr(Frozen()),
        f"{s}",
        str({"a"}),
    )


def test_elements_by_identity():
    a, b = Plain(1), Plain(2)
    s = {a, b}
    s.add(a)
    t = s - {a}
    return [
        len(s),
        a in s,
        Plain(1) in s,
        [x.n for x in t],
        len(s | {a}),
        s == {b, a},
        s > {a},
        {a} <= s,
        s.isdisjoint({b}),
    ]


def test_elements_with_traced_hash():
    s = {Key("a", 1), Key("b", 1), Key("a", 1)}
    t = s | {Key("c", 2), 1}
    return len(s), repr(t), Key("b", 1) in s, Key("z", 1) in s, s == {Key("b", 1), Key("a", 1)}, list(s - {Key("a", 1)})


def test_subclasses():
    s = Sub([1, 2])
    s.add(5)
    s.update([7])
    f = Frozen([1, 2])
    s.note = "n"
    out = [
        sorted(s),
        type(s | {1}).__name__,
        type(s.copy()).__name__,
        s.note,
        type(f & {1}).__name__,
        f.tag,
        f == {1, 2},
    ]
    return out, type(s).__name__, isinstance(f, frozenset), hash(f) == hash(frozenset([1, 2]))


def test_existing_sets():
    out = [
        "a" in SEEN,
        "z" in SEEN,
        len(SEEN),
        "x" in ALLOWED,
        ALLOWED | {"z"},
        sorted(SEEN),
        list(STEADY),
        list(ALLOWED),
    ]
    SEEN.add("d")
    SEEN.discard("a")
    out += [len(SEEN), "d" in SEEN, "a" in SEEN]
    SEEN.discard("d")
    SEEN.add("a")
    return out, sorted(SEEN) if False else len(SEEN)


def test_existing_set_updates():
    SEEN.update({"p": 1, "q": 2})
    SEEN.update({"r", "s"}, ["t"])
    SEEN.difference_update({"p", "q", "r", "s", "t"})
    SEEN.symmetric_difference_update({"u"})
    SEEN.intersection_update({"a", "b", "c"})
    return SEEN == {"a", "b", "c"}, len(SEEN)


def test_set_holding_itself_in_an_attribute():
    s = Sub()
    s.me = s
    return s.me is s, len(s)
