"""What the attributes of functions may be set to, against CPython."""

import sys

import pytest

import stator

NAMES = ["__code__", "__name__", "__qualname__", "__doc__", "__module__", "__defaults__", "__kwdefaults__"]
NAMES += ["__annotations__", "__dict__", *(["__type_params__"] if sys.version_info >= (3, 12) else [])]


def outcomes(name):
    found = []
    for value in (None, 1, "a", [1], (1,), {"k": 1}):

        def set_to(a, *, k=2):
            return a, k

        try:
            setattr(set_to, name, value)
            found.append(repr(getattr(set_to, name)))
        except (TypeError, AttributeError) as e:
            found.append(repr(e))

    def deleted(a=1, *, k=2):
        return a, k

    try:
        delattr(deleted, name)
        found.append(repr(getattr(deleted, name)))
    except (TypeError, AttributeError) as e:
        found.append(repr(e))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_setting_and_deleting(name):
    assert stator.compile(outcomes, backend="eager", fullgraph=True)(name) == outcomes(name)
