"""Numbers: int, float, complex, bool, math; exact results and exact errors."""

import math
import operator
import sys
import warnings
from decimal import Decimal
from fractions import Fraction

from apptests.marks import expected_break


def app_integers():
    assert (7 // 2, -7 // 2, 7 % -3, -7 % 3, divmod(-7, 2)) == (3, -4, -2, 2, (-4, 1))
    assert 2**100 == 1267650600228229401496703205376 and pow(3, -1, 7) == 5 and pow(2, 10, 1000) == 24
    assert (6 & 3, 6 | 3, 6 ^ 3, ~6, 1 << 70 >> 68) == (2, 7, 5, -7, 4)
    assert (10).bit_length() == 4 and (255).to_bytes(2, "big") == b"\x00\xff" and (7).bit_count() == 3
    assert int("ff", 16) == 255 and int(" 12 ") == 12 and int(-3.9) == -3 and 1_000 == 1000
    assert hex(255) + oct(8) + bin(5) == "0xff0o100b101"


def app_floats():
    assert 0.1 + 0.2 != 0.3 and abs(0.1 + 0.2 - 0.3) < 1e-9 and 7.5 // 2 == 3.0 and -7.5 % 2 == 0.5
    assert round(2.5) == 2 and round(3.5) == 4 and round(2.675, 2) == 2.67 and round(1234, -2) == 1200
    assert (0.5).as_integer_ratio() == (1, 2) and (2.0).is_integer() and float("1e3") == 1000.0
    assert float("inf") > 1e308 and math.isnan(float("nan")) and str(1e16) == "1e+16" and repr(0.1) == "0.1"
    assert math.copysign(1, -0.0) == -1 and 0.0 == -0.0 and (1.5).hex() == "0x1.8000000000000p+0"


def app_booleans_are_integers():
    assert True + True == 2 and sum([True, False, True]) == 2 and isinstance(True, int) and True == 1
    assert (True & False, True | False, True ^ True, not 0) == (False, True, False, True)
    assert type(True & True) is bool and type(True + 0) is int and "ab"[True] == "b"


def app_short_circuit_gives_operands():
    assert (0 or "x", 1 and "y", "" or None, [] and 1, 1 or 1 / 0) == ("x", "y", None, [], 1)


def app_complex():
    z = 3 + 4j
    assert abs(z) == 5.0 and z.conjugate() == 3 - 4j and z * 1j == -4 + 3j and (z.real, z.imag) == (3.0, 4.0)
    try:
        z < z
    except TypeError as error:
        assert "'<' not supported between instances of 'complex' and 'complex'" == str(error)
    else:
        raise AssertionError("no TypeError")


def app_math():
    assert math.sqrt(16) == 4.0 and math.gcd(12, 18) == 6 and math.comb(5, 2) == 10 and math.prod([2, 3, 4]) == 24
    assert math.floor(-1.5) == -2 and math.ceil(-1.5) == -1 and math.trunc(-1.5) == -1 and math.isqrt(17) == 4
    assert math.isclose(math.sin(math.pi / 6), 0.5) and math.hypot(3, 4) == 5 and math.log2(8) == 3 and math.inf > 0
    try:
        math.sqrt(-1)
    except ValueError:
        pass
    else:
        raise AssertionError("no ValueError")


def app_errors():
    def message(action):
        try:
            action()
        except (ArithmeticError, ValueError, TypeError) as error:
            return type(error).__name__

    assert message(lambda: 1 / 0) == message(lambda: 1 % 0) == message(lambda: 0**-1) == "ZeroDivisionError"
    assert message(lambda: 2.0**10000) == "OverflowError" and message(lambda: 1 << -1) == "ValueError"
    assert message(lambda: int(float("nan"))) == "ValueError" and message(lambda: 5 @ 5) == "TypeError"


def app_mixed_arithmetic():
    assert 1 + 1.0 == 2.0 and type(1 + 1.0) is float and 2**-1 == 0.5 and 1 == 1.0 == (1 + 0j)
    assert 10**20 > 1e19 and 2**53 + 1 != float(2**53) and hash(1) == hash(1.0) == hash(True)
    assert Fraction(1, 3) + Fraction(1, 6) == Fraction(1, 2) and Fraction(3, 4) * 4 == 3


def app_integer_algorithms():
    def collatz(n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    assert collatz(6) == 8
    a, b = 0, 1
    for _ in range(10):
        a, b = b, a + b
    assert a == 55


@expected_break("Decimal's comparison in C converts any Rational, and the Fraction is made in the trace")
def app_decimal_and_fraction():
    third, half = Fraction(1, 3), Decimal("0.5")
    assert third < half and half > third and not half == third and half != third
    assert Fraction(1, 2) == half and half <= Fraction(1, 2)
    assert "x".__eq__(half) is NotImplemented


def app_deprecated_conversions_warn():
    class Flag:
        def __index__(self):
            return True

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert operator.index(Flag()) == 1
        assert [1, 2][Flag()] == 2
        if sys.version_info < (3, 14):
            assert bool(NotImplemented) is True
    assert [str(w.message).split(" (")[0] for w in seen] == [
        "__index__ returned non-int",
        "__index__ returned non-int",
        *(["NotImplemented should not be used in a boolean context"] if sys.version_info < (3, 14) else []),
    ]
    assert {w.category for w in seen} == {DeprecationWarning}


def app_a_class_that_refuses_subscription():
    class Plain:
        __class_getitem__ = None

    try:
        Plain[int]
        raise AssertionError
    except TypeError as e:
        assert str(e) == "type 'Plain' is not subscriptable"


class Own(float):
    pass


@expected_break("a hash by address")
def app_hash_of_what_is_no_number():
    value, own = float("nan"), Own("nan")
    assert hash(value) == object.__hash__(value) and hash(own) == object.__hash__(own)
    return hash(Own("inf"))
