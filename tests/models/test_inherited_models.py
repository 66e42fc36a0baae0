"""What the class of a model gives to the host types that it models (`stator.space.protocol.models`)."""

import itertools
from collections import OrderedDict, deque

import pytest

from stator.models import standard_space  # noqa: F401  all models are registered with it
from stator.models.containers.ordered_dict import OrderedDictValue
from stator.space.protocol import COMPARISONS, HANDLERS, models
from stator.space.value import NotKnown, ObjectValue


def is_modelled(cls: type, name: str) -> bool:
    return id(vars(cls)[name]) in HANDLERS


@pytest.mark.parametrize("name", ["clear", "keys", "__iter__", "__setitem__"])
def test_an_inherited_method_is_a_model(name):
    assert f"tp_{name.strip('_')}" not in vars(OrderedDictValue)
    assert is_modelled(OrderedDict, name)


@pytest.mark.parametrize("cls", [list, tuple, dict, set, OrderedDict, deque, slice])
def test_one_method_models_all_comparisons(cls):
    assert all(is_modelled(cls, name) for name in COMPARISONS)


@pytest.mark.skipif("__reduce__" not in vars(type(itertools.tee(())[0])), reason="copies of tee have gone")
def test_a_slot_that_the_model_does_not_answer_stays_without_one():
    assert not is_modelled(type(itertools.tee(())[0]), "__reduce__")


def test_none_takes_an_inherited_model_away():
    class Host:
        def first(self):
            pass

        def second(self):
            pass

    class Base(ObjectValue):
        def first(self, space):
            raise NotKnown(self)

        def second(self, space):
            raise NotKnown(self)

    class Model(Base):
        second = None

    models(Host)(Model)
    assert is_modelled(Host, "first")
    assert not is_modelled(Host, "second")
