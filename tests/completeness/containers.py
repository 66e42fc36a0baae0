"""The builtin containers, their views and iterators, and how two of them differ."""

from __future__ import annotations

import collections
import itertools
import sys
import types
from typing import Any

from tests.completeness.runner import Kind
from tests.completeness.same import MODULE

Point = collections.namedtuple("Point", "x y")


def do(text: str) -> Any:
    """A change of `o`, from its text."""
    space: dict[str, Any] = {}
    exec(f"def change(o):\n    {text}\n", {"itertools": itertools, "MODULE": MODULE}, space)
    return space["change"]


def changes(*texts: str) -> dict[str, Any]:
    return {text: do(text) for text in texts}


def variants(space: dict[str, Any] | None = None, /, **makers: str) -> dict[str, Any]:
    names = {"collections": collections, "itertools": itertools, "types": types, **(space or {})}
    return {text: eval(f"lambda: {text}", names) for text in makers.values()}


def of(*texts: str) -> dict[str, Any]:
    """Variants, from the expressions that make them."""
    return variants(None, **{f"v{i}": text for i, text in enumerate(texts)})


def make_list_subclass() -> Any:
    cls = type("Items", (list,), {"__module__": MODULE, "label": "a", "total": lambda self: len(self)})
    return cls([2, 1])


def make_dict_subclass() -> Any:
    cls = type("Table", (dict,), {"__module__": MODULE, "label": "a", "__missing__": lambda self, key: key})
    return cls(k=1)


def swap_class(o: Any, **attributes: Any) -> None:
    """Make it one of another class of the same layout."""
    o.__class__ = type(type(o).__name__, (type(o),), {"__module__": MODULE, **attributes})


CONTAINERS = [
    Kind(
        "list",
        lambda: [1, 2],
        changes(
            "o.append(3)",
            "o.pop()",
            "o[0] = 5",
            "o[0] = True",
            "o[0] = 1.0",
            "o.clear()",
            "o.reverse()",
            "o[:] = [2]",
            "o[1] = [1]",
            "o += o",
        ),
    ),
    Kind(
        "list of a list",
        lambda: [[1], 2],
        changes("o[0].append(2)", "o[0][0] = 3", "o[0] = (1,)", "o[0].clear()"),
        names=False,
        queries=("o[0][0]", "o[0] == [1]", "o == [[1], 2]", "len(o[0])"),
    ),
    Kind(
        "subclass of list",
        make_list_subclass,
        {
            **changes(
                "o.append(3)",
                "o[0] = 5",
                "o.tag = 1",
                "type(o).label = 'b'",
                "type(o).tag = 2",
                "type(o).total = lambda self: -1",
                "type(o).__len__ = lambda self: 7",
                "type(o).__getitem__ = lambda self, i: i",
                "type(o).__iter__ = lambda self: iter('ab')",
                "type(o).__eq__ = lambda self, other: 5",
                "type(o).__repr__ = lambda self: 'r'",
                "type(o).__call__ = lambda self: 1",
                "type(o).__contains__ = lambda self, i: False",
                "type(o).__reversed__ = lambda self: iter([0])",
                "type(o).__doc__ = 'd'",
                "type(o).__module__ = 'other'",
                "type(o).__getattr__ = lambda self, name: name",
                "type(o).__bool__ = lambda self: False",
            ),
            "another class": lambda o: swap_class(o, label="c", __len__=lambda self: 9),
        },
        constant={"the class's own list of weak references": "__weakref__"},
    ),
    Kind(
        "tuple",
        lambda: (1, 2),
        variants=of("()", "(1,)", "(2, 1)", "(1, 2, 3)", "(True, 2)", "(1.0, 2)", "([1], 2)"),
        constant={"an empty tuple's": "__getnewargs__"},
    ),
    Kind(
        "tuple of a list",
        lambda: ([1], 2),
        changes("o[0].append(2)", "o[0][0] = 3"),
        names=False,
        queries=("o[0][0]", "len(o[0])", "o == ([1], 2)"),
    ),
    Kind(
        "namedtuple",
        lambda: Point(1, 2),
        variants={"x": lambda: Point(3, 2), "y": lambda: Point(1, 5)},
        constant={"the class's": "_fields _field_defaults __match_args__ __slots__ _make __len__"},
    ),
    Kind(
        "dict",
        lambda: {"k": 1, 1: 2},
        changes(
            "o['k'] = 2",
            "del o['k']",
            "o['new'] = 1",
            "o.clear()",
            "o['k'] = o.pop('k')",
            "o['k'] = True",
            "o['k'] = 1.0",
            "o.update({1: 3})",
            "o[1.0] = 4",
            "del o[1]; o[True] = 2",
        ),
    ),
    Kind(
        "dict of a list",
        lambda: {"k": [1]},
        changes("o['k'].append(1)", "o['k'][0] = 2", "o['k'] = (1,)"),
        names=False,
        queries=("o['k'][0]", "len(o['k'])", "o == {'k': [1]}", "o.get('k')", "[v for v in o.values()][0][0]"),
    ),
    Kind(
        "subclass of dict",
        make_dict_subclass,
        {
            **changes(
                "o['k'] = 2",
                "del o['k']",
                "o.tag = 1",
                "type(o).label = 'b'",
                "type(o).tag = 4",
                "type(o).__missing__ = lambda self, key: 0",
                "type(o).__len__ = lambda self: 7",
                "type(o).__getitem__ = lambda self, i: i",
                "type(o).__iter__ = lambda self: iter('ab')",
                "type(o).__eq__ = lambda self, other: 5",
                "type(o).keys = lambda self: ['z']",
                "type(o).__doc__ = 'd'",
                "type(o).__module__ = 'other'",
                "type(o).get = lambda self: 3",
                "type(o).__getattr__ = lambda self, name: name",
            ),
            "another class": lambda o: swap_class(o, label="c", __len__=lambda self: 9),
        },
        constant={"the class's own list of weak references": "__weakref__"},
        queries=("o['no']", "o.get('k')"),
    ),
    Kind("set", lambda: {1, 2}, changes("o.add(3)", "o.discard(1)", "o.clear()", "o.remove(1); o.add(True)")),
    Kind(
        "frozenset",
        lambda: frozenset({1, 2}),
        variants=of("frozenset()", "frozenset({1})", "frozenset({1, 2, 3})", "frozenset({True, 2})"),
    ),
    Kind(
        "deque",
        lambda: collections.deque([1, 2], 5),
        changes("o.append(3)", "o.appendleft(0)", "o.rotate()", "o.clear()", "o[0] = 7", "o[0] = True"),
        of("collections.deque([1, 2], 2)", "collections.deque([1, 2])"),
    ),
    Kind(
        "OrderedDict",
        lambda: collections.OrderedDict(k=1, b=2),
        changes("o.move_to_end('k')", "o['k'] = 2", "del o['k']", "o['c'] = 1", "o.tag = 1"),
    ),
    Kind(
        "defaultdict",
        lambda: collections.defaultdict(int, k=1),
        changes("o.default_factory = list", "o.default_factory = None", "o['k'] = 2", "del o['k']", "o['c'] = 1"),
        queries=("o['no']",),
    ),
    Kind(
        "Counter",
        lambda: collections.Counter("aab"),
        changes("o['a'] = 9", "del o['b']", "o['z'] += 1", "o['a'] = -1", "o.tag = 1"),
        queries=("o['a']", "o.most_common(1)"),
        constant={
            "the class's own list of weak references": "__weakref__",
            "raises": "fromkeys",
            "an iterator that is not looked into (3.14)": "elements",
        },
    ),
    Kind(
        "ChainMap",
        lambda: collections.ChainMap({"k": 1}, {"b": 2}),
        changes("o.maps[0]['k'] = 4", "o.maps[1]['b'] = 4", "o.maps.append({'z': 1})", "o.maps = [{}]", "o.tag = 1"),
        constant={"the class's": "_MutableMapping__marker", "there is none": "__reversed__"},
    ),
    Kind("UserList", lambda: collections.UserList([2, 1]), changes("o.data.append(2)", "o.data = [3]", "o.tag = 1")),
    Kind(
        "bytearray",
        lambda: bytearray(b"ab"),
        changes(
            "o.append(3)", "o[0] = 5", "o.clear()", "o[:] = b' 1'", "o[:] = b'AB'", "o[:] = b' '", "o[:] = b'\\xff'"
        ),
        of("bytearray(b'12')", "bytearray(b'Ab')"),
    ),
    Kind("range", lambda: range(0, 4, 1), variants=of("range(1, 4)", "range(0, 5)", "range(0, 4, 2)", "range(0)")),
    Kind("slice", lambda: slice(1, 2, 3), variants=of("slice(2)", "slice(1, 5, 3)", "slice(1, 2)", "slice(0, 2, 3)")),
    Kind(
        "memoryview",
        lambda: memoryview(bytearray(b"abcdefgh")),
        changes("o[0] = 9", "o.release()"),
        of(
            "memoryview(b'abcdefgh')",
            "memoryview(bytearray(8)).cast('i')",
            "memoryview(bytearray(8)).cast('b')",
            "memoryview(bytearray(b'abcd'))",
            "memoryview(bytearray(8)).cast('b', (2, 4))",
            "memoryview(bytearray(b'abcdefgh1234567890abcdef'))[::2]",
        ),
        queries=("o.tolist()",),
    ),
    Kind(
        "dict keys",
        lambda: {"k": 1}.keys(),
        variants=of("{'b': 1}.keys()", "{}.keys()", "{1: 1}.keys()"),
        queries=("o.mapping['k']",),
    ),
    Kind("dict values", lambda: {"k": 1}.values(), variants=of("{'k': 2}.values()", "{}.values()", "{1: 1}.values()")),
    Kind("dict items", lambda: {"k": 1}.items(), variants=of("{'k': 2}.items()", "{}.items()", "{1: 1}.items()")),
    Kind(
        "mappingproxy",
        lambda: types.MappingProxyType({"k": 1}),
        variants=of(
            "types.MappingProxyType({'k': 2})",
            "types.MappingProxyType({})",
            "types.MappingProxyType(collections.OrderedDict(k=1))",
            "types.MappingProxyType({'b': 1})",
        ),
    ),
    Kind(
        "SimpleNamespace",
        lambda: types.SimpleNamespace(x=1),
        changes("o.x = 2", "o.tag = 1", "del o.x", "vars(o)['tag'] = 2"),
    ),
]


def iterator(name: str, make: str, *others: str, **more: Any) -> Kind:
    first = of(make)[make]
    return Kind(name, first, changes("next(o)", "list(o)"), of(*others), **more)


ITERATORS = [
    Kind(
        "iterator of a list",
        lambda: iter([1, 2]),
        changes(
            "next(o)",
            "list(o)",
            "o.__reduce__()[1][0].append(3)",
            "o.__reduce__()[1][0][0] = 4",
            "o.__reduce__()[1][0].clear()",
            "o.__setstate__(1)",
        ),
        of("iter([1])", "iter([2, 1])", "iter([])"),
    ),
    iterator("iterator of a list backwards", "reversed([1, 2])", "reversed([1])", "reversed([3, 4])"),
    iterator("iterator of a tuple", "iter((1, 2))", "iter((2, 1))", "iter((1,))"),
    iterator(
        "iterator of a range",
        "iter(range(3))",
        "iter(range(1, 3))",
        "iter(range(0, 9, 4))",
        known={}
        if sys.version_info >= (3, 12)
        else {"o.__reduce__()": "one that has moved is given back as one of the rest: 3.11 counts from the start"},
    ),
    iterator("iterator of a str", "iter('ab')", "iter('xy')", "iter('')"),
    iterator("iterator of bytes", "iter(b'ab')", "iter(b'xy')"),
    iterator("iterator of a bytearray", "iter(bytearray(b'ab'))", "iter(bytearray(b'xy'))"),
    iterator("iterator of a dict", "iter({'k': 1, 'b': 2})", "iter({'b': 1})", "iter({})"),
    iterator("iterator of a dict's values", "iter({'k': 1, 'b': 2}.values())", "iter({'k': 2}.values())"),
    iterator("iterator of a dict's items", "iter({'k': 1, 'b': 2}.items())", "iter({'k': 2}.items())"),
    iterator("iterator of a dict backwards", "reversed({'k': 1, 'b': 2})", "reversed({'b': 1})"),
    iterator("iterator of a set", "iter({1, 2})", "iter({1})", "iter({3, 4})"),
    iterator("iterator of a deque", "iter(collections.deque([1, 2]))", "iter(collections.deque([2]))"),
    iterator(
        "iterator by __getitem__",
        "iter(collections.UserString('ab'))",
        "iter(collections.UserString('xy'))",
        constant={"of one generator": "__name__ __qualname__ gi_code gi_yieldfrom", "each has its own": "gi_frame"},
    ),
    iterator("iterator of calls", "iter([3, 2, 1].pop, 3)", "iter([3, 2].pop, 3)", "iter([3, 2, 1].pop, 2)"),
    iterator("enumerate", "enumerate('ab')", "enumerate('ab', 1)", "enumerate('xy')"),
    iterator("zip", "zip('ab', [1, 2])", "zip('ab', [1])", "zip('ab')", "zip('ab', [1], strict=True)"),
    iterator("map", "map(len, ['a', ''])", "map(str, ['a', ''])", "map(len, ['aa'])"),
    iterator("filter", "filter(None, [1, 0, 2])", "filter(None, [1])", "filter(callable, [1, len])"),
    Kind(
        "count",
        lambda: itertools.count(),
        changes("next(o)"),
        of("itertools.count(5)", "itertools.count(0, 2)"),
        endless=True,
    ),
    Kind("cycle", lambda: itertools.cycle([1, 2]), changes("next(o)"), of("itertools.cycle([3])"), endless=True),
    Kind(
        "repeat",
        lambda: itertools.repeat(1, 2),
        changes("next(o)", "list(o)"),
        of("itertools.repeat(2, 2)", "itertools.repeat(1, 3)"),
    ),
    iterator("chain", "itertools.chain([1], [2])", "itertools.chain([1])", "itertools.chain([2], [1])"),
    iterator("islice", "itertools.islice([1, 2, 3], 2)", "itertools.islice([1, 2, 3], 1)", "itertools.islice('ab', 2)"),
    iterator(
        "accumulate",
        "itertools.accumulate([1, 2])",
        "itertools.accumulate([1, 3])",
        "itertools.accumulate([1, 2], max)",
    ),
    iterator("product", "itertools.product([1, 2], repeat=2)", "itertools.product([1])", "itertools.product([1, 3])"),
    iterator("permutations", "itertools.permutations([1, 2])", "itertools.permutations([1, 2], 1)"),
    iterator("combinations", "itertools.combinations([1, 2, 3], 2)", "itertools.combinations([1, 2], 1)"),
    iterator("takewhile", "itertools.takewhile(bool, [1, 2, 0])", "itertools.takewhile(bool, [1, 0])"),
    iterator("dropwhile", "itertools.dropwhile(bool, [1, 0, 2])", "itertools.dropwhile(callable, [1, 0])"),
    iterator("starmap", "itertools.starmap(pow, [(2, 3), (1, 1)])", "itertools.starmap(max, [(2, 3)])"),
    iterator("compress", "itertools.compress('abc', [1, 0, 1])", "itertools.compress('abc', [1])"),
    iterator("zip_longest", "itertools.zip_longest([1, 2], [1])", "itertools.zip_longest([1, 2], [1], fillvalue=0)"),
    iterator("pairwise", "itertools.pairwise([1, 2, 3])", "itertools.pairwise([1, 2])"),
    iterator("groupby", "itertools.groupby('aab')", "itertools.groupby('ab', str.upper)"),
    iterator(
        "tee",
        "itertools.tee([1, 2])[0]",
        "itertools.tee([2])[0]",
        constant={"an iterator that is not looked into (3.14)": "__copy__"},
    ),
]
