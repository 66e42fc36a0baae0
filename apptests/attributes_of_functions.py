"""Attributes of functions, methods and cells that are set, refused and compared."""

import sys
import types

from apptests.raising import message


class Owner:
    def method(self):
        """Doc."""

    @classmethod
    def of_class(cls):
        pass


def plain(a, b=1):
    return a


def test_code_is_exchanged():
    def first(x=1):
        "First."
        return x

    def second(x):
        return x * 10

    first.__code__ = second.__code__
    assert first() == 10 and first.__name__ == "first" and first.__doc__ == "First."
    assert first.__qualname__.endswith("first") and first.__code__ is second.__code__

    def closed():
        return first

    assert message(lambda: setattr(closed, "__code__", second.__code__)) == (
        "ValueError",
        "closed() requires a code object with 1 free vars, not 0",
    )
    assert message(lambda: setattr(first, "__code__", 3)) == ("TypeError", "__code__ must be set to a code object")


def test_what_cannot_be_set():
    def made():
        pass

    method = Owner().method
    for target in (made, plain):
        for name in ("__globals__", "__closure__", "__builtins__"):
            assert message(lambda target=target, name=name: setattr(target, name, {})) == (
                "AttributeError",
                "readonly attribute",
            )
        assert message(lambda target=target: delattr(target, "__dict__")) == ("TypeError", "cannot delete __dict__")
    for name in ("__func__", "__self__"):
        assert message(lambda name=name: setattr(method, name, 1)) == ("AttributeError", "readonly attribute")
    assert message(lambda: setattr(method, "__doc__", "x")) == (
        "AttributeError",
        "attribute '__doc__' of 'method' objects is not writable",
    )
    assert message(lambda: setattr(method, "nothing", 1))[0] == "AttributeError"


def test_methods():
    owner, other = Owner(), Owner()
    assert owner.method.__doc__ == "Doc." and Owner.of_class.__doc__ is None
    assert owner.method == owner.method and owner.method != other.method
    assert not owner.method != owner.method
    assert owner.method.__lt__(owner.method) is NotImplemented
    assert owner.method.__reduce__() == (getattr, (owner, "method"))
    assert [].append.__reduce__()[1] == ([], "append")
    items = []
    assert items.append == items.append and items.append != [].append and items.append != items.pop
    assert items.__len__ == items.__len__ and items.__len__ != [].__len__
    assert items.append.__call__(3) is None and items == [3]
    assert message(types.MethodType, 3, 1) == ("TypeError", "first argument must be callable")
    assert message(types.MethodType, plain, None)[0] == "TypeError"


def test_cells():
    cell, same, empty = types.CellType(3), types.CellType(3), types.CellType()
    assert cell == same and cell <= same and not cell < same and empty < cell and cell > empty
    assert empty == types.CellType() and cell != 3
    assert message(lambda: cell < types.CellType("a"))[0] == "TypeError"
    assert message(lambda: empty.cell_contents) == ("ValueError", "Cell is empty")
    empty.cell_contents = cell
    assert empty.cell_contents is cell


def test_slots_under_their_own_names():
    assert list.__getattribute__([1], "count")(1) == 1
    assert message(list.__getattribute__, [1]) == ("TypeError", "expected 1 argument, got 0")
    own = "__getattribute__" in vars(list)  # else it is that of object
    assert message(list.__getattribute__, 1, "a")[0] == ("TypeError" if own else "AttributeError")

    def made():
        pass

    made.a = 1
    assert type(made).__getattribute__(made, "a") == 1
    assert str.__getattribute__("a", "upper")() == "A"
    assert message(type.__setattr__, int, "a", 1) == (
        "TypeError",
        "cannot set 'a' attribute of immutable type 'int'",
    )


def test_keywords_fill_positions():
    assert list(enumerate(iterable="ab")) == list(enumerate(start=0, iterable="ab"))
    assert message(lambda: enumerate("ab", iterable=1))[0] == "TypeError"
    assert list(map(int, [True])) == [1]


def test_unions_and_aliases():
    union = int | str
    assert union == str | int and union != int and hash(union) == hash(str | int)
    assert union.__args__ == (int, str)
    assert enumerate[int].__origin__ is enumerate


def test_range_iterators_are_placed():
    iterator = iter(range(10))
    next(iterator)
    iterator.__setstate__(2)
    assert next(iterator) == (3 if sys.version_info >= (3, 12) else 2)
    long = iter(range(1 << 70))
    next(long)
    assert long.__length_hint__() == (1 << 70) - 1


def test_unions_with_what_is_made_here():
    class United(type):
        def __ror__(cls, other):
            return other, cls.__name__

    class Here(metaclass=United):
        pass

    class Other:
        def __ror__(self, other):
            return "other", other

        def __eq__(self, other):
            return True

    assert int | Other() == ("other", int)
    if sys.version_info < (3, 14):  # later a union takes anything
        assert (int | str) | Other() == ("other", int | str) and (int | str).__or__(3) is NotImplemented
    assert (int | str) == Other() and not (int | str) != Other()
    assert list[int] == Other()
    assert (int | str).__eq__(3) is NotImplemented
    assert message(lambda: int | 3)[0] == "TypeError"
