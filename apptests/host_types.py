"""What C types do that Python classes cannot: buffers, forbidden instances, hidden orders, abstract operands."""

import array
import decimal
import fractions
import math
import operator
import sys
from collections import OrderedDict

from apptests.marks import expected_break
from apptests.raising import message


def test_types_without_instances():
    for cls in (type(sys.flags), type(sys.version_info)):
        assert message(cls)[0] == "TypeError"
        assert message(cls.__new__, cls)[0] == "TypeError"


class Plain(frozenset):
    pass


def test_keywords_of_set_types():
    assert message(lambda: frozenset([1], a=2))[0] == "TypeError"
    assert message(lambda: Plain([1], a=2))[0] == "TypeError"


class Number:
    asked = False

    def __float__(self):
        self.asked = True
        return 1.0


def test_first_operand_is_refused_first():
    for function in (math.atan2, math.copysign, math.remainder):
        number = Number()
        assert message(function, "no", number)[0] == "TypeError"
        assert not number.asked


class Emptying:
    def __init__(self, target):
        self.target = target

    def __eq__(self, other):
        self.target.clear()
        return NotImplemented


def test_comparison_that_empties_a_list():
    left, right = [], []
    left.append(Emptying(right))
    right.append(Emptying(left))
    return left == right


@expected_break("the order after methods of dict on an OrderedDict")
def test_order_that_dict_does_not_know():
    od = OrderedDict(a=1, b=2)
    dict.__delitem__(od, "a")
    assert message(lambda: list(od.items())) == ("KeyError", "'a'")


@expected_break("decimals against fractions")
def test_decimals_against_fractions():
    assert decimal.Decimal("0.25") < fractions.Fraction(1, 3)
    assert decimal.Decimal("0.5") == fractions.Fraction(1, 2)


def test_numbers_in_views():
    assert float(memoryview(b"12.5")[1:]) == 2.5


@expected_break("an array")
def test_numbers_in_buffers():
    assert int(array.array("b", b"12")) == 12


@expected_break("a warning of the compiler")
def test_compiler_warning():
    import warnings

    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        compile("1 is 1", "<text>", "eval")
    assert [w.category for w in given] == [SyntaxWarning]


def interrupt():
    return array.array("b")


@expected_break("a C function")
def test_equal_texts_stay_two_objects():
    a = "some text"
    b = a[:4] + a[4:]
    interrupt()
    return a == b, operator.is_(a, b)


class Constants:
    text, number, data, ratio = "a text", 10**30, b"bytes", 0.25


@expected_break("a C function")
def test_what_was_looked_at_is_handed_on_itself():
    text, number, data, ratio = Constants.text, Constants.number, Constants.data, Constants.ratio
    size = len(text) + len(data) + int(number + ratio)
    interrupt()
    assert text is Constants.text and number is Constants.number
    assert data is Constants.data and ratio is Constants.ratio
    return size
