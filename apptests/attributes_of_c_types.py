"""What C types let the program set, and what of them has keyword parameters."""

import functools
import inspect
import operator
import string
import weakref
from collections import deque, namedtuple

from apptests.raising import message, words


class Slotted:
    __slots__ = ("__weakref__", "x")


@functools.lru_cache
def cached(x):
    return x


def test_read_only():
    items = deque([1], 3)
    assert words(AttributeError, lambda: setattr(items, "maxlen", 4)).endswith("objects is not writable")
    assert words(AttributeError, lambda: setattr(range(3), "start", 1)) == "readonly attribute"
    part = functools.partial(int, base=2)
    for name in ("func", "args", "keywords"):
        assert words(AttributeError, lambda: setattr(part, name, 1)) == "readonly attribute"
        assert words(AttributeError, lambda: delattr(part, name)) == "readonly attribute"
    assert words(TypeError, lambda: delattr(part, "__dict__")) == "cannot delete __dict__"
    assert part("11") == 3


def test_weak_reference_list():
    thing = Slotted()
    assert thing.__weakref__ is None
    ref = weakref.ref(thing)
    assert thing.__weakref__ is ref


def test_text_signature():
    class Documented:
        """Documented(x)
        --

        text
        """

    class Plain:
        pass

    return Documented.__text_signature__, Plain.__text_signature__


def test_cmp_to_key():
    key = functools.cmp_to_key(mycmp=lambda x, y: x - y)
    assert key(obj=3) > key(1) and key(50).obj == 50
    for call in (lambda: functools.cmp_to_key(), lambda: functools.cmp_to_key(1, 2), lambda: key(), lambda: key(1, 2)):
        assert message(call)[0] == "TypeError"
    return message(key), message(key, 1, 2), message(key, other=1)


def test_cached_functions_are_copied_as_functions():
    assert cached.__copy__() is cached and cached.__deepcopy__({}) is cached
    assert cached.__reduce__() == "cached"


def test_small_functions():
    assert operator.inv(5) == -6
    assert message(lambda: list(string.Formatter().parse(3)))[0] == "TypeError"
    return message(lambda: string.Formatter().get_field(3, (), {}))


def test_parameters_by_name():
    calls = (lambda: bin(number=3), lambda: chr(i=3), lambda: "a".__getitem__(key=0), lambda: abs(x=1))
    for call in calls:
        assert message(call)[0] == "TypeError"
    assert sum([1], start=2) == 3 and round(number=2.5) == 2 and round(number=2.55, ndigits=1) == 2.5
    assert int.from_bytes(bytes=b"\1", byteorder="big") == 1
    return [message(call) for call in calls]


Point = namedtuple("Point", "x y")


class Descriptors:
    __slots__ = ("slot",)

    @property
    def property_(self):
        return 1

    @classmethod
    def class_method(cls):
        return 2

    @staticmethod
    def static_method():
        return 3


def got(descriptor, *args):
    try:
        return type(descriptor.__get__(*args)).__name__
    except (TypeError, AttributeError) as e:
        return str(e)


def test_get_of_c_descriptors():
    own = [vars(Descriptors)[name] for name in ("slot", "property_", "class_method", "static_method")]
    others = [type.__dict__["__mro__"], list.append, list.__add__, dict.__dict__["fromkeys"], Point.x, super(int, 3)]
    for descriptor in own + others:
        assert got(descriptor, None) == got(descriptor, None, None) == "__get__(None, None) is invalid"
        assert "invalid" not in got(descriptor, None, Descriptors)


def test_static_attribute_of_none():
    assert inspect.getattr_static(None, "missing", 1) == 1
