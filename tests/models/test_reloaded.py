"""C modules loaded a second time: their types are other types, with the same models."""

import importlib
import sys

import pytest

import stator


@pytest.fixture
def fresh(monkeypatch):
    """A second copy of a module, made of a second copy of its C half."""

    def load(name, c_name):
        for each in (name, c_name):
            monkeypatch.delitem(sys.modules, each)
        made = importlib.import_module(name)
        monkeypatch.undo()
        assert sys.modules[name] is not made
        return made

    return load


def test_functions_and_types(fresh):
    functools, heapq, operator = (
        fresh(n, c) for n, c in [("functools", "_functools"), ("heapq", "_heapq"), ("operator", "_operator")]
    )
    existing = functools.partial(max, 5)

    def use():
        made = functools.partial(int, base=2)
        items = [5, 3, 1]
        heapq.heapify(items)
        heapq.heappush(items, 0)
        ordered = sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: a - b))
        getter = operator.itemgetter(1)
        return [made("101"), existing(3), items, ordered, getter("ab"), repr(made)], made, getter

    results, made, getter = stator.compile(use, fullgraph=True)()
    expected, as_made, as_getter = use()
    assert results == expected
    assert type(made) is type(as_made) is functools.partial
    assert type(getter) is type(as_getter) is operator.itemgetter


def test_caches(fresh):
    functools = fresh("functools", "_functools")

    def use():
        @functools.lru_cache(maxsize=3)
        def double(x):
            return 2 * x

        return double(1), double(1), tuple(double.cache_info()), double

    *results, double = stator.compile(use, fullgraph=True)()
    assert results == [2, 2, (1, 1, 3, 1)]
    assert type(double) is functools._lru_cache_wrapper
    assert double.__copy__() is double
