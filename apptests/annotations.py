"""Annotations of functions and classes: where they are evaluated, kept, set and copied (PEP 649, PEP 563)."""

import functools
import sys
import typing

from apptests.raising import message

LAZY = sys.version_info >= (3, 14)


def existing(a: int, *, b: "str" = "") -> list[int]:
    return [a]


class Existing:
    number: int
    text: "str" = ""

    def method(self, other: "Existing") -> int:
        return self.number


class Bare:
    pass


def test_functions_made_here():
    kind = int

    def made(a: kind, *rest: "str", **more: list[kind]) -> kind | None:
        return a

    assert made(3) == 3
    assert made.__annotations__ == {"a": int, "rest": "str", "more": list[int], "return": int | None}
    assert made.__annotations__ is made.__annotations__
    return list(made.__annotations__)


def test_functions_that_leave():
    kind = int

    def made(a: kind) -> "kind":
        return a

    return functools.partial(made, 1)(), typing.get_type_hints(existing)


def leaves(kind):
    def made(a: kind) -> "kind":
        return a

    return made


def test_what_has_left_is_annotated():
    assert leaves(str).__annotations__ == {"a": str, "return": "kind"}
    return leaves(int)(3)


def test_annotations_are_set():
    def made(a: int):
        return a

    made.__annotations__ = {"b": 1}
    assert made.__annotations__ == {"b": 1}
    assert message(setattr, made, "__annotations__", 3)[0] == "TypeError"
    del made.__annotations__
    return made.__annotations__


def test_an_annotation_that_cannot_be_evaluated():
    def made(a: "undefined"):  # noqa: F821
        return a

    assert made.__annotations__ == {"a": "undefined"}
    if LAZY:

        def later(a: undefined):  # noqa: F821
            return a

        assert message(lambda: later.__annotations__)[0] == "NameError"
        return later(1)
    return 1


def test_existing_functions_and_classes():
    assert existing.__annotations__ == {"a": int, "b": "str", "return": list[int]}
    assert Existing.__annotations__ == {"number": int, "text": "str"}
    assert Existing.method.__annotations__ == {"other": "Existing", "return": int}
    assert Bare.__annotations__ == {}
    return typing.get_type_hints(Existing)


def test_classes_made_here():
    kind = int

    class Made:
        number: kind
        text: "kind" = ""
        own = str
        of_own: own

        def method(self) -> own:
            return self.text

    assert Made.__annotations__ == {"number": int, "text": "kind", "of_own": str}
    assert Made.method.__annotations__ == {"return": str}
    assert Made().method() == ""
    Made.__annotations__ = {"x": 1}
    assert Made.__annotations__ == {"x": 1}
    return sorted(Made.__annotations__)


def test_a_wrapper_has_them():
    def wrap(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    wrapped = wrap(existing)
    assert wrapped(3) == [3]
    return wrapped.__annotations__ == existing.__annotations__


def test_the_function_that_gives_them():
    if not LAZY:
        return

    def made(a: int):
        return a

    assert made.__annotate__(1) == {"a": int}
    assert message(made.__annotate__, 3)[0] == "NotImplementedError"
    made.__annotate__ = lambda format: {"b": format}
    assert made.__annotations__ == {"b": 1}
    assert message(setattr, made, "__annotate__", 3) == ("TypeError", "__annotate__ must be callable or None")
    assert message(delattr, made, "__annotate__") == ("TypeError", "__annotate__ cannot be deleted")
    made.__annotate__ = lambda format: 3
    assert message(lambda: made.__annotations__)[0] == "TypeError"
    made.__annotate__ = None
    assert made.__annotations__ == {}

    class Made:
        x: int

    assert Made.__annotate__(1) == {"x": int}
    Made.__annotate__ = lambda format: {"y": 2}
    assert Made.__annotations__ == {"y": 2}
    return message(setattr, Made, "__annotate__", 3)
