"""`Interned`: guards share a test by its identity, so equal values must give one object."""

import gc
import pickle
import weakref

import pytest

from stator.guards.interned import Interned


class Above(Interned):
    def __init__(self, bound):
        self.bound = bound

    def __call__(self, number):
        return number > self.bound


class Below(Interned):
    def __init__(self, bound):
        self.bound = bound


def test_equal_values_are_one_object():
    above = Above(3)
    assert Above(3) is above
    assert above(4) and not above(3)


@pytest.mark.parametrize("other", [(Above, 4), (Above, 3.0), (Above, True), (Below, 3)])
def test_other_values_types_and_classes_are_others(other):
    kind, value = other
    above, one = Above(3), Above(1)
    assert kind(value) not in (above, one)


def test_it_goes_with_its_last_holder():
    above = Above("only here")
    gone = weakref.ref(above)
    del above
    gc.collect()
    assert gone() is None


def test_a_pickled_one_is_the_same():
    above = Above(3)
    assert pickle.loads(pickle.dumps(above)) is above
