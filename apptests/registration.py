"""`ABCMeta.register`: classes that count as subclasses by declaration."""

import abc
import collections.abc
import sys
import time
import typing

from apptests.marks import expected_break
from apptests.raising import message


class Drawable(abc.ABC):
    pass


class Shape(Drawable):
    pass


def test_new_classes():
    class A(abc.ABC):
        pass

    class B:
        pass

    class C(B):
        pass

    assert not issubclass(B, A) and not isinstance(C(), A)
    assert A.register(B) is B
    assert issubclass(B, A) and issubclass(C, A) and isinstance(C(), A) and not issubclass(A, B)
    assert not issubclass(int, A)
    A.register(int)
    assert isinstance(3, A) and isinstance(True, A) and not isinstance(3.0, A)


def test_chains():
    class A(abc.ABC):
        pass

    class A1(A):
        pass

    class A2(abc.ABC):
        pass

    class B:
        pass

    A2.register(A)
    A1.register(B)
    assert issubclass(B, A1) and issubclass(B, A) and issubclass(B, A2)
    assert message(A1.register, A2) == ("RuntimeError", "Refusing to create an inheritance cycle")
    assert message(A1.register, 4) == ("TypeError", "Can only register classes")
    assert A.register(A1) is A1


def test_as_a_decorator():
    class A(abc.ABC):
        pass

    @A.register
    class B:
        pass

    b = B()
    assert isinstance(b, A) and issubclass(B, (A,))
    kept.append((A, B, b))
    A, B, b = kept.pop()
    assert isinstance(b, A)


kept = []


def test_an_existing_base():
    class Circle:
        pass

    before = abc.get_cache_token()
    assert not isinstance(Circle(), Drawable)
    Shape.register(Circle)
    assert isinstance(Circle(), Shape) and isinstance(Circle(), Drawable)
    assert abc.get_cache_token() == before + 1
    Shape.register(Circle)
    assert abc.get_cache_token() == before + 1


def test_patterns():
    class Several:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return (0, 10)[index]

    class More(Several):
        pass

    def matched(value):
        match value:
            case [a, b]:
                return a, b
            case {}:
                return "mapping"
        return None

    assert matched(More()) is None
    collections.abc.Sequence.register(Several)
    assert matched(More()) == (0, 10) and matched(Several()) == (0, 10)


# -- hooks of the program's -------------------------------------------------------------------------------------------


@typing.runtime_checkable
class HasNumber(typing.Protocol):
    number: int


class Numbered:
    def __init__(self):
        self.number = 3


class Asking(abc.ABC):
    @classmethod
    def __subclasshook__(cls, subclass):
        frame = sys._getframe(1)
        assert (frame.f_code.co_name, frame.f_globals["__name__"]) == ("__subclasscheck__", "abc")
        return hasattr(subclass, "answer") or NotImplemented


class WithAnswer:
    answer = 42


def test_protocols_with_attributes():
    found = [isinstance(value, HasNumber) for value in (Numbered(), 3, Numbered, HasNumber)]
    return found, message(issubclass, Numbered, HasNumber)


def test_hooks_see_the_frames_of_abc():
    found = [isinstance(WithAnswer(), Asking), issubclass(int, Asking), isinstance(Numbered(), Asking)]
    return found, [isinstance(WithAnswer(), Asking), issubclass(int, Asking)]


def test_registration_with_a_protocol_that_has_attributes():
    @typing.runtime_checkable
    class P(typing.Protocol):
        number: int = 1

    class Registered:
        pass

    P.register(Registered)
    assert isinstance(Registered(), P)
    return message(issubclass, Registered, P)


@expected_break("time.sleep")
def test_protocols_among_the_subclasses_of_an_abstract_class():
    class Foo(collections.abc.Sized, typing.Protocol):
        pass

    time.sleep(0)
    return isinstance(1.5, collections.abc.Sized), issubclass(type("Bar", (), {}), collections.abc.Sized)
