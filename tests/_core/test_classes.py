"""The metaclass of a class that exists."""

import gc
import pickle
import weakref

import pytest

from stator._core import set_metaclass


class Answering(type):
    __slots__ = ()

    def __instancecheck__(cls, instance):
        return instance == 1 or type.__instancecheck__(cls, instance)


class Base:
    attribute = 1

    def method(self):
        return self.attribute


class Changed(Base):
    pass


def test_the_metaclass_is_what_is_asked():
    before = Changed()
    assert not isinstance(1, Changed)
    set_metaclass(Changed, Answering)
    assert type(Changed) is Answering and type(Base) is type
    assert isinstance(1, Changed) and not isinstance(2, Changed) and isinstance(before, Changed)
    assert isinstance(before, Base) and not isinstance(1, Base)
    assert before.method() == Changed().method() == Changed.attribute == 1
    assert pickle.loads(pickle.dumps(Changed)) is Changed
    Changed.attribute = 2
    assert before.method() == 2 and type(type("Sub", (Changed,), {})) is Answering


def test_the_class_is_collected():
    class Metaclass(type):
        __slots__ = ()

    made = type("Made", (), {})
    set_metaclass(made, Metaclass)
    watched = [weakref.ref(made), weakref.ref(Metaclass)]
    del made, Metaclass
    gc.collect()
    assert [ref() for ref in watched] == [None, None]


@pytest.mark.parametrize(
    ("cls", "metaclass"),
    [
        (int, Answering),
        (Base, type),
        (Base, type("Further", (Answering,), {})),
        (Base, int),
        (Answering("Has", (), {}), Answering),
    ],
)
def test_refused(cls, metaclass):
    kept = type(cls)
    with pytest.raises(TypeError, match="set_metaclass"):
        set_metaclass(cls, metaclass)
    assert type(cls) is kept
