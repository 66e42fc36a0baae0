"""Modules that the traced program makes, and what it asks of those that exist."""

import copy
import importlib.machinery
import importlib.util
import json
import operator
import sys
import types

from apptests.marks import expected_break

HELD = types.ModuleType("held", "What it is for.")
HELD.number = 3


class Counting(types.ModuleType):
    """A module that counts what is missing."""

    missed = 0

    def __getattr__(self, name):
        type(self).missed += 1
        if name.startswith("_"):
            raise AttributeError(f"no {name} in {self.__name__}")
        return name.upper()


def outcome(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)


# -- new modules ------------------------------------------------------------------------------------------------------


def test_a_new_module():
    module = types.ModuleType("made", "Made here.")
    assert type(module) is types.ModuleType and isinstance(module, types.ModuleType)
    assert list(vars(module)) == ["__name__", "__doc__", "__package__", "__loader__", "__spec__"]
    assert (module.__name__, module.__doc__, module.__package__) == ("made", "Made here.", None)
    module.number = 3
    module.twice = lambda: module.number * 2
    assert module.twice() == 6 and "number" in dir(module)
    del module.number
    assert not hasattr(module, "number")
    return module.__dict__.keys()


def test_calls_of_the_class():
    assert types.ModuleType(name="a", doc=None).__doc__ is None
    return [
        outcome(types.ModuleType),
        outcome(types.ModuleType, 3),
        outcome(types.ModuleType, "a", "b", "c"),
        outcome(types.ModuleType, "a", other=1),
        outcome(types.ModuleType.__new__),
        outcome(types.ModuleType.__new__, int),
    ]


def test_what_is_missing():
    bare = types.ModuleType.__new__(types.ModuleType)
    assert vars(bare) == {}
    module = types.ModuleType("made")
    found = [outcome(getattr, bare, "x"), outcome(getattr, module, "x"), outcome(delattr, module, "x")]
    module.__name__ = 3
    found.append(outcome(getattr, module, "x"))
    try:
        module.other  # noqa: B018
    except AttributeError as error:
        assert error.obj is module and error.name == "other"
    module.__getattr__ = lambda name: name * 2
    assert module.x == "xx"
    return found


def test_its_text():
    module = types.ModuleType("made")
    found = [repr(module), str(module)]
    module.__file__ = "made.py"
    found.append(repr(module))
    del module.__name__
    found.append(repr(module))
    module.__loader__ = 3
    found.append(repr(module))
    del module.__file__
    found.append(repr(module))
    module.__spec__ = importlib.machinery.ModuleSpec("spec", None, origin="there")
    found.append(repr(module))
    return [*found, repr(json), repr(sys), repr(HELD)]


def test_its_dict_cannot_be_replaced():
    class Base:
        pass

    class Own(types.ModuleType, Base):
        pass

    class Other(Base, types.ModuleType):
        pass

    module, own = types.ModuleType("made"), Own("own")
    found = [outcome(setattr, each, "__dict__", {}) for each in (module, own, HELD, Other("other"))]
    found.append(outcome(vars(Base)["__dict__"].__set__, own, {}))
    return found, [outcome(delattr, each, "__dict__") for each in (module, own, HELD)], own.__name__


def test_made_again():
    module = types.ModuleType("first", "text")
    module.x = 1
    module.__init__("second")
    assert (module.__name__, module.__doc__, module.x) == ("second", None, 1)
    return outcome(module.__init__)


def test_annotations():
    module = types.ModuleType("made")
    assert "__annotations__" not in vars(module)
    module.__annotations__["x"] = int
    assert vars(module)["__annotations__"] == {"x": int} == module.__annotations__
    module.__annotations__ = 3
    assert module.__annotations__ == 3
    del module.__annotations__
    assert "__annotations__" not in vars(module)
    return outcome(delattr, module, "__annotations__")


def test_annotations_of_one_that_exists():
    HELD.__annotations__["number"] = int
    return HELD.__annotations__


def test_subclasses():
    module = Counting("own")
    assert module.thing == "THING" and module.missed == 1
    module.thing = 3
    assert module.thing == 3 and Counting.missed == 1
    result = outcome(getattr, module, "_thing")
    assert repr(module) == "<module 'own'>" and Counting.missed > 1
    missed, Counting.missed = Counting.missed, 0
    return result, missed, module.thing


def test_returned_and_executed():
    module = types.ModuleType("executed")
    exec("def double(x):\n    return x * factor\nfactor = 2", module.__dict__)
    assert module.double(4) == 8
    module.factor = 3
    assert module.double(4) == 12
    return sorted(name for name in vars(module) if not name.startswith("__"))


def test_identity_and_keys():
    one, two = types.ModuleType("a"), types.ModuleType("a")
    assert one is not two and one != two and one == one
    assert {one: 1, two: 2, HELD: 3}[two] == 2 and len({one, two, one, HELD, json}) == 4
    assert copy.copy is not None and one in [two, one]
    return outcome(operator.lt, one, two), outcome(copy.copy, one), outcome(one)


def test_from_a_spec():
    spec = importlib.machinery.ModuleSpec("unread", None)
    module = importlib.util.module_from_spec(spec)
    assert module.__spec__ is spec and module.__name__ == "unread"
    return outcome(getattr, module, "x")


def test_put_where_imports_look():
    module = types.ModuleType("put_there")
    module.value = 5
    sys.modules["put_there"] = module
    try:
        import put_there

        assert put_there is module
        from put_there import value

        assert value == 5
    finally:
        del sys.modules["put_there"]
    return "put_there" in sys.modules


@expected_break("import of 'taken_away'")
def test_taken_from_where_imports_look():
    module = types.ModuleType("taken_away")
    sys.modules["taken_away"] = module
    import taken_away

    del sys.modules["taken_away"]
    return taken_away is module, outcome(__import__, "taken_away")


def test_functions_that_hold_their_module():
    module = types.ModuleType("executed")
    exec("def first(): return second\ndef second(): return first", module.__dict__)
    module.module = module
    functions = [module.first, module.second]
    functions[0].extra = functions
    return functions[0]() is functions[1], functions[1]() is functions[0], vars(module) is functions[0].__globals__


def test_shared_and_stored():
    module = types.ModuleType("stored")
    module.itself = module
    HELD.other = module
    assert HELD.other.itself is module
    found = HELD.other
    del HELD.other
    return found.itself is found
