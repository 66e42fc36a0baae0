"""Dicts written to without hashing or comparing their keys."""

import gc
import sys
import weakref

import pytest

from stator._core import dict_hashes, write_dict


class Key:
    """A key whose methods must not be called."""

    def __init__(self, name):
        self.name = name

    def __hash__(self):
        raise AssertionError("hashed")

    def __eq__(self, other):
        raise AssertionError("compared")


class Alike:
    """A key like any other of its class."""

    def __hash__(self):
        return 7

    def __eq__(self, other):
        return True


class Sub(dict):
    pass


@pytest.mark.parametrize("cls", [dict, Sub])
def test_keys_that_hash_alike(cls):
    a, b, c = Key("a"), Key("b"), Key("c")
    d = write_dict(cls(), (), (a, b), (1, 2), (7, 7))
    assert type(d) is cls
    assert list(d.values()) == [1, 2]
    assert dict_hashes(d) == (7, 7)
    assert all(map(lambda x, y: x is y, d, (a, b)))

    assert write_dict(d, (a,), (c, b, a), (3, 4, 5), (7, 7, 8)) is d
    assert [key.name for key in d] == ["b", "c", "a"]
    assert list(d.values()) == [4, 3, 5]
    assert dict_hashes(d) == (7, 7, 8)


def test_other_keys():
    key = Key("k")
    d = {"x": 1, 5: 2}
    write_dict(d, [5], [key, "x", "y", 6.5], [3, 4, 5, 6], [hash("x"), None, hash("y"), None])
    write_dict(d, ["y"], ["z"], [7], [None])
    assert [*d.items()][1:] == [(key, 3), (6.5, 6), ("z", 7)]
    assert [*d.values()] == [4, 3, 6, 7]
    assert dict_hashes(d) == (hash("x"), hash("x"), hash(6.5), hash("z"))
    assert d[6.5] == 6
    assert d["z"] == 7


@pytest.mark.parametrize("attributes", [1, 2])
def test_an_objects_dict(attributes):
    class Holder:
        pass

    holder, key = Holder(), Key("k")
    holder.x = 1
    if attributes == 2:
        holder.y = 2
    write_dict(holder.__dict__, (), (key, "x"), (3, 4), (hash("x"), None))
    assert holder.x == 4
    assert holder.__dict__.get("y") == (2 if attributes == 2 else None)
    assert list(holder.__dict__)[-1] is key


def test_what_was_found_by_another_key():
    d = write_dict({}, (), [Alike(), 5], ["first", 6], [7, None])
    assert d[Alike()] == "first"
    assert d[5] == 6


def test_a_gap_stays_where_it_is():
    keys = [Key(str(n)) for n in range(4)]
    d = write_dict({}, (), keys, range(4), [7] * 4)
    write_dict(d, keys[:2], (), (), ())
    passed = iter(d)
    assert next(passed) is keys[2]
    write_dict(d, (), [keys[2]], ["other"], [7])
    assert next(passed) is keys[3]


def test_what_is_let_go_of_sees_the_finished_dict():
    class Last:
        def __del__(self):
            seen.append([getattr(key, "name", key) for key in d])
            d["late"] = 1

    seen = []
    a, b = Key("a"), Key("b")
    d = write_dict({}, (), (a, b), (Last(), Last()), (7, 7))
    write_dict(d, (a,), (b,), (2,), (7,))
    gc.collect()
    assert seen == [["b"], ["b", "late"]]


def test_a_weak_reference_keeps_its_hash():
    class Referent:
        def __hash__(self):
            raise AssertionError("hashed")

    referent = Referent()
    d = write_dict({}, (), [weakref.ref(referent)], [1], [9])
    (reference,) = d
    del referent
    gc.collect()
    assert hash(reference) == 9


def test_no_reference_is_lost_or_kept():
    key, item = Key("k"), object()
    before = sys.getrefcount(key), sys.getrefcount(item)
    d = write_dict({}, (), (key,), (item,), (3,))
    write_dict(d, (), (key,), (item,), (3,))
    write_dict(d, (key,), (key,), (item,), (3,))
    d.clear()
    assert (sys.getrefcount(key), sys.getrefcount(item)) == before


def test_what_is_no_dict_or_does_not_fit():
    with pytest.raises(TypeError, match="expected a dict"):
        write_dict([], (), (), (), ())
    with pytest.raises(TypeError, match="expected a dict"):
        dict_hashes(set())
    with pytest.raises(TypeError, match="five arguments"):
        write_dict({})
    with pytest.raises(TypeError, match="as sequences"):
        write_dict({}, (), 5, (), ())
    with pytest.raises(ValueError, match="as many keys"):
        write_dict({}, (), (1,), (), (1,))
    with pytest.raises(ValueError, match="no hash"):
        write_dict({}, (), (1,), (1,), (-1,))
    with pytest.raises(TypeError):
        write_dict({}, (), (1,), (1,), ("x",))
    with pytest.raises(KeyError):
        write_dict({}, (1,), (), (), ())
    with pytest.raises(TypeError, match="unhashable"):
        write_dict({}, (), ([],), (1,), (None,))
    d = write_dict({}, (), (key := Key("k"),), (1,), (3,))
    with pytest.raises(KeyError):
        write_dict(d, ("x",), (), (), ())
    assert next(iter(d)) is key
