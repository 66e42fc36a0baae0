"""The match statement: every kind of pattern."""

from dataclasses import dataclass


@dataclass
class Point:
    x: int
    y: int


class Tagged:
    __match_args__ = ("tag",)

    def __init__(self, tag, payload=None):
        self.tag, self.payload = tag, payload


def kind(value):
    match value:
        case None | True | False:
            return "singleton"
        case 0:
            return "zero"
        case int(n) if n < 0:
            return f"negative {n}"
        case int() | float():
            return "number"
        case "":
            return "empty text"
        case str() as text:
            return f"text {text}"
        case []:
            return "empty"
        case [x]:
            return f"one {x}"
        case [first, *_, last]:
            return f"{first}..{last}"
        case {"type": "point", "at": [x, y], **rest}:
            return f"point {x} {y} {sorted(rest)}"
        case {}:
            return "mapping"
        case Point(0, 0):
            return "origin"
        case Point(x=0, y=y):
            return f"on the axis {y}"
        case Point():
            return "point"
        case Tagged("a" | "b" as tag, payload=[*items]):
            return f"{tag} {items}"
        case _:
            return "other"


def app_literals_and_guards():
    assert [kind(v) for v in (None, True, 0, -3, 2.5)] == ["singleton", "singleton", "zero", "negative -3", "number"]


def app_texts():
    assert kind("") == "empty text"
    assert kind("abc") == "text abc"  # no sequence


def app_sequences():
    assert kind([]) == "empty"
    assert kind((5,)) == "one 5"
    assert kind([1, 2, 3]) == "1..3"
    assert kind(range(4)) == "0..3"
    assert kind({1, 2}) == "other"


def app_mappings():
    assert kind({"type": "point", "at": (1, 2), "c": 3, "b": 4}) == "point 1 2 ['b', 'c']"
    assert kind({"type": "point"}) == "mapping"


def app_classes():
    assert kind(Point(0, 0)) == "origin"
    assert kind(Point(0, 5)) == "on the axis 5"
    assert kind(Point(1, 5)) == "point"
    assert kind(Tagged("a", (1, 2))) == "a [1, 2]"
    assert kind(Tagged("c", ())) == "other"


def app_value_patterns():
    class Colour:
        RED, GREEN = 1, 2

    def name(value):
        match value:
            case Colour.RED:
                return "red"
            case Colour.GREEN:
                return "green"
        return "none"

    assert [name(v) for v in (1, 2, 3)] == ["red", "green", "none"]


def app_bindings_of_a_failed_pattern():
    match [1, 2]:
        case [a, 3]:
            raise AssertionError
        case [b, c]:
            assert (b, c) == (1, 2)


def app_too_many_positional_patterns():
    try:
        match Tagged("a"):
            case Tagged("a", 1):
                pass
    except TypeError as error:
        assert "accepts 1 positional sub-pattern (2 given)" in str(error)
    else:
        raise AssertionError("no TypeError")


def app_nested():
    def first_leaf(tree):
        match tree:
            case {"children": [child, *_]}:
                return first_leaf(child)
            case {"children": []}:
                return None
            case leaf:
                return leaf

    assert first_leaf({"children": [{"children": [{"children": []}, 2]}, 1]}) is None
    assert first_leaf({"children": [{"children": [7, 2]}, 1]}) == 7
