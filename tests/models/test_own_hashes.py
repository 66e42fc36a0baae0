"""Keys that have methods to hash and compare them: these are called as often as CPython calls them."""

import gc
import sys
import weakref
from typing import ClassVar

import pytest

import stator


def compiled(function):
    return stator.compile(function, backend="eager", fullgraph=True)


class Counting:
    """A key that counts how often it is hashed and compared."""

    log: ClassVar[list] = []

    def __init__(self, n, hashed=7):
        self.n = n
        self.hashed = hashed

    def __hash__(self):
        self.log.append(("hash", self.n))
        return self.hashed

    def __eq__(self, other):
        self.log.append((self.n, other.n))
        return self.n == other.n

    def __repr__(self):
        return f"Counting({self.n})"


class DictOfCounting(dict):
    pass


def writes(d):
    d[Counting(5)] = 1
    d[next(iter(d))] = "changed"
    return d


def deletes(d):
    del d[Counting(2)]
    d[Counting(2)] = 2
    return d


def reads(d):
    return d.get(Counting(2)), Counting(9) in d, len(d)


def joins(d):
    return {**d, Counting(6): 6}, dict(d), d.copy(), d | {"a": 1}


def clears(d):
    d.clear()
    d[Counting(1)] = 1
    d["a"] = 2
    return d


@pytest.mark.parametrize("program", [writes, deletes, reads, joins, clears])
@pytest.mark.parametrize("kind", [dict, DictOfCounting])
@pytest.mark.parametrize("hashes", [(7, 7, 7), (1, 7, 2)])
def test_own_hashes_are_asked_for_as_often_as_by_cpython(program, kind, hashes):
    def run(function):
        d = kind()
        for n, hashed in zip((1, 2, 3), hashes, strict=True):
            d[Counting(n, hashed)] = n
        Counting.log.clear()
        result = function(d)
        log = Counting.log.copy()
        return log, repr(result), repr(d), [hash(key) for key in d]

    traced = compiled(program)
    assert run(traced) == run(program)
    assert run(traced) == run(program)


def test_another_stored_hash_is_another_trace():
    def find(d, key):
        return d.get(key)

    traced = compiled(find)
    for hashed in (7, 8, 7):
        d = {Counting(1, hashed): "found"}
        for sought in (7, 8):
            key = Counting(1, sought)
            assert traced(d, key) == find(d, key)


HOLDERS = [lambda n: (Counting(n), 1), lambda n: (1, (Counting(n),)), lambda n: frozenset({Counting(n)})]
if sys.version_info >= (3, 12):  # slices have hashes
    HOLDERS += [lambda n: slice(1, Counting(n)), lambda n: (slice(Counting(n)), 2)]


@pytest.mark.parametrize("key", HOLDERS)
def test_keys_that_hold_own_hashes(key):
    def make(keys):
        return {key: 1 for key in keys}

    def find(d, key):
        return d.get(key), d

    def run(make, find):
        keys = [key(1), key(2)]
        Counting.log.clear()
        d = make(keys)
        found, again = find(d, keys[1])
        d[key(1)] = 5
        return found, again is d, Counting.log.copy()

    # A tuple that keeps its hash is hashed for real.
    whole = sys.version_info < (3, 14) or type(key(1)) is not tuple
    traced = [stator.compile(function, backend="eager", fullgraph=whole) for function in (make, find)]
    assert run(*traced) == run(make, find)


def test_hashes_of_weak_references_outlast_their_objects():
    def make():
        a, b = Counting(1), Counting(2)
        return a, b, {weakref.ref(a): 1}, {weakref.ref(a), weakref.ref(b)}

    logs = []
    for function in (make, compiled(make)):
        Counting.log.clear()
        a, b, d, s = function()
        logs.append(Counting.log.copy())
        (reference,) = d
        assert weakref.ref(b) in s
        del a
        gc.collect()
        assert reference() is None
        assert d[reference] == 1
    assert logs[0] == logs[1]


class Mixed:
    """What has an equality of its own, and the hash of any object."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return False


def test_the_hash_of_an_object_with_its_own_equality():
    def make():
        a, b = Mixed(), Mixed()
        return a, b, {a, b}, {a: 1, b: 2}

    a, b, s, d = compiled(make)()
    assert a in s
    assert b in s
    assert (d[a], d[b]) == (1, 2)
