"""Reprs that show where an existing object lies."""

import functools


class Plain:
    def method(self):
        return self

    @staticmethod
    def apart():
        return 1

    def __len__(self):
        return 3


class Shown(Plain):
    def __repr__(self):
        return "Shown()"


def function(a):
    yield a


class Meta(type):
    pass


class WithMeta(metaclass=Meta):
    pass


PLAIN, SHOWN, ITEMS = Plain(), Shown(), [1]
PARTIAL = functools.partial(function, 1)
GENERATOR = function(1)


def test_objects_and_functions():
    assert repr(PLAIN) == f"<apptests.addresses.Plain object at {id(PLAIN):#x}>" == str(PLAIN) == f"{PLAIN}"
    assert repr(function) == f"<function function at {id(function):#x}>"
    assert repr(GENERATOR) == f"<generator object function at {id(GENERATOR):#x}>"
    assert repr(Plain.__dict__["apart"]) == f"<staticmethod({Plain.apart!r})>"
    assert object.__repr__(3) == f"<int object at {id(3):#x}>"


def test_methods():
    assert repr(SHOWN.method) == "<bound method Plain.method of Shown()>"
    assert repr(PLAIN.method) == f"<bound method Plain.method of {PLAIN!r}>"
    assert repr(len) == "<built-in function len>"
    assert repr(ITEMS.append) == f"<built-in method append of list object at {id(ITEMS):#x}>"
    assert repr(ITEMS.__len__) == f"<method-wrapper '__len__' of list object at {id(ITEMS):#x}>"


def test_in_containers():
    assert repr([PLAIN, {"a": function}]) == f"[{PLAIN!r}, {{'a': {function!r}}}]"
    assert repr(PARTIAL) == f"functools.partial({function!r}, 1)"


def test_after_a_change():
    name = function.__qualname__
    function.__qualname__ = "other"
    try:
        assert repr(function) == f"<function other at {id(function):#x}>"
    finally:
        function.__qualname__ = name


def test_messages_that_nobody_reads():
    class Strict:
        def check(self, wanted):
            message = f"{self!r} is not {wanted!r}"
            if self is wanted:
                raise ValueError(message)
            return len([message])

    assert Strict().check(Strict()) == 1


kept = []


def test_hashes():
    plain = Plain()
    assert hash(PLAIN) == hash(PLAIN) == object.__hash__(PLAIN) != hash(SHOWN)
    assert hash(plain) == hash(plain) == object.__hash__(plain) != hash(PLAIN)
    assert hash(Plain()) is not None
    assert hash((Plain, 1)) == hash((Plain, 1))
    kept.append((plain, hash(plain), hash(PLAIN)))
    plain, of_new, of_existing = kept.pop()
    return of_existing == hash(PLAIN)


def test_hash_of_the_object_with_an_eq_of_its_own():
    class Loose:
        __hash__ = object.__hash__

        def __eq__(self, other):
            return isinstance(other, Loose)

    a, b = Loose(), Loose()
    found = {a: 1}
    assert found[a] == 1 and a == b and hash(a) != hash(b)
    assert list({a: 1, b: 2}.values()) == [1, 2]
