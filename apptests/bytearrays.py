"""bytearray, its subclasses, and views of it."""

import copy

from apptests.raising import words


class Named(bytearray):
    pass


class Slotted(bytearray):
    __slots__ = ("name",)


class Initialised(bytearray):
    def __init__(self, *args, extra=1, **kwargs):
        super().__init__(*args, **kwargs)
        self.extra = extra


BEFORE = Slotted(b"before")
BEFORE.name = "old"


def test_subclasses():
    data = Named(b"abc")
    data.z = 3
    assert repr(data) == str(data) == "Named(b'abc')"
    assert type(data.upper()) is bytearray and type(data[1:]) is bytearray
    assert data + b"x" == b"abcx" and b"x" + data == b"xabc"
    data += b"d"
    assert type(data) is Named and data == b"abcd" and data.z == 3
    assert b"".join([data, Slotted(b"q")]) == b"abcdq"
    assert words(TypeError, lambda: "".join([data])) == "sequence item 0: expected str instance, Named found"
    made = Initialised(extra=4, source=b"u")
    assert (made, made.extra) == (b"u", 4)
    assert type(Named.fromhex("00ff")) is Named


def test_made_and_returned():
    data = Named(b"abc")
    data.other = [data]
    return data, len(data)


def test_slots():
    data = Slotted(b"a")
    assert not hasattr(data, "name")
    data.name = "n"
    assert data.name == "n" and copy.copy(data).name == "n"
    old, BEFORE.name = BEFORE.name, "new"
    BEFORE.append(65)
    assert (old, BEFORE.name, BEFORE.pop()) == ("old", "new", 65)
    BEFORE.name = "old"


def test_construction():
    assert bytearray(3) == b"\0\0\0"
    assert bytearray(n for n in (1, 2)) == b"\1\2"
    assert bytearray("é", "utf-8") == b"\xc3\xa9"
    assert words(TypeError, lambda: bytearray("x")) == "string argument without an encoding"
    assert words(ValueError, lambda: bytearray(-1)) == "negative count"
    assert words(TypeError, lambda: bytearray(1.5)) == "cannot convert 'float' object to bytearray"
    partly = bytearray(b"x")
    assert words(ValueError, lambda: partly.extend(n for n in (65, 66, 1000))) == "byte must be in range(0, 256)"
    assert partly == b"x"
    assert "unbound method" in words(TypeError, bytearray.hex) or "needs an argument" in words(TypeError, bytearray.hex)


def test_views():
    data = bytearray(b"abc")
    view = memoryview(data)
    text = "Existing exports of data: object cannot be re-sized"
    assert words(BufferError, lambda: data.append(1)) == text
    data[0] = 66
    view[1] = 67
    view[2:] = b"D"
    assert (bytes(view), data) == (b"BCD", b"BCD")
    view.release()
    data.append(69)
    assert data == b"BCDE"
    with memoryview(data) as view:
        assert view[-1] == 69
    assert words(ValueError, lambda: view[0]).startswith("operation forbidden on released")


def test_view_of_what_is_returned():
    data = bytearray(b"abc")
    view = memoryview(data)
    view[0] = 66
    return data, view.tobytes()


def test_iteration():
    data = bytearray(b"abc")
    items = iter(data)
    assert next(items) == 97
    data.append(100)
    assert list(copy.copy(items)) == [98, 99, 100] == list(items)
    assert items.__reduce__()[1:] == (((),),)


def test_reduce():
    data = Named(b"ab")
    data.z = 1
    assert data.__reduce__() == (Named, ("ab", "latin-1"), {"z": 1})
    assert data.__reduce_ex__(3) == (Named, (b"ab",), {"z": 1})
    assert bytearray().__reduce__() == (bytearray, (), None)
    again = copy.deepcopy(data)
    assert (type(again), again, again.z) == (Named, b"ab", 1)
