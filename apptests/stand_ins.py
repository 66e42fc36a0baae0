"""C functions that ask the program's own objects: conversions, buffers, iterables."""

import sys
import warnings

from apptests.raising import words


class Index:
    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number


class Fails:
    def __index__(self):
        raise ZeroDivisionError("no index")


class FailsAsType:
    def __index__(self):
        raise TypeError("no index of this type")


class Bytes:
    def __bytes__(self):
        return b"made"


class SubInt(int):
    pass


class SubFloat(float):
    pass


def test_index_of_texts():
    assert "abc"[Index(1)] == "b"
    assert b"abc"[Index(2)] == 99
    assert bytearray(b"abc")[Index(0)] == 97
    assert range(10)[Index(3)] == 3
    assert range(10)[Index(3) : Index(5)] == range(3, 5)
    assert "abc".center(Index(9)) == "   abc   "
    assert "abc".find("c", Index(1), Index(3)) == 2
    assert b"abc".find(Index(98)) == 1
    assert "a\tb".expandtabs(Index(2)) == "a b"
    assert (5).to_bytes(Index(3), "big") == b"\0\0\5"
    assert words(ZeroDivisionError, lambda: "abc"[Fails()]) == "no index"
    assert words(TypeError, lambda: "abc"[FailsAsType()]) == "no index of this type"
    assert "must be integers" in words(TypeError, lambda: "abc"[Bytes()])
    assert words(IndexError, lambda: b"abc"[Index(9)]) == "index out of range"
    assert words(IndexError, lambda: "abc"[Index(1 << 80)]).startswith("cannot fit 'Index'")


def test_formatting_bytes():
    assert b"%d %s" % (Index(3), Bytes()) == b"3 made"
    assert b"%c" % Index(65) == b"A"
    assert bytearray(b"%b") % Bytes() == bytearray(b"made")
    assert "not 'Index'" in words(TypeError, lambda: b"%s" % Index(3))


def test_iterables():
    assert b"-".join(bytearray([n]) for n in (65, 66)) == b"A-B"
    assert b"".join(iter([b"a", memoryview(b"b")])) == b"ab"
    assert int.from_bytes([Index(1), 2], "big") == 258
    assert int.from_bytes((n for n in (1, 2)), "little") == 513
    text = "sequence item 1: expected a bytes-like object, Index found"
    assert words(TypeError, lambda: b"".join([b"a", Index(1)])) == text
    assert "abc".startswith(("x", "ab")) and not "abc".endswith(())


def test_operands_changed_meanwhile():
    class Clears:
        def __index__(self):
            array.clear()
            return 1

    array = bytearray(b"12345")
    words(IndexError, lambda: array.__setitem__(0, Clears()))
    assert array == b""


def test_deprecated_subclasses():
    class Number:
        def __int__(self):
            return SubInt(4)

        def __float__(self):
            return SubFloat(2.5)

    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        assert (int(Number()), type(int(Number()))) == (4, int)
        assert (float(Number()), type(float(Number()))) == (2.5, float)
    assert len(given) == 4
    assert "__int__ returned non-int (type SubInt)" in str(given[0].message)
    assert "Number.__float__ returned non-float (type SubFloat)" in str(given[2].message)


def test_trunc():
    class Truncated:
        def __trunc__(self):
            return self.given

    number = Truncated()
    if sys.version_info >= (3, 14):
        refusal = "int() argument must be a string, a bytes-like object or a real number, not 'Truncated'"
        assert words(TypeError, lambda: int(number)) == refusal
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        number.given = Index(7)
        assert int(number) == 7
        number.given = SubInt(7)
        assert type(int(number)) is int
        number.given = "7"
        assert words(TypeError, lambda: int(number)) == "__trunc__ returned non-Integral (type str)"


def test_numbers_of_buffers():
    assert int(memoryview(b"12")) == 12
    assert float(memoryview(b"1.5")) == 1.5
    assert int(bytearray(b"12")) == 12


def test_keywords_of_float():
    class Own(float):
        def __init__(self, number, other=None):
            self.other = other

    made = Own(2.5, other=3)
    assert (made, made.other) == (2.5, 3)
    assert words(TypeError, lambda: float(x=1)) == "float() takes no keyword arguments"


def test_alternate_constructors():
    class Data(bytes):
        pass

    class Made(float):
        def __init__(self, *args):
            self.args = args

    assert type(Data.fromhex("00ff")) is Data
    assert Made.fromhex("0x1.8p+1").args == (3.0,)
    assert type(SubInt.from_bytes(b"\1", "big")) is SubInt
