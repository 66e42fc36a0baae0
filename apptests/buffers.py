"""Views of bytes, released ones too, and C objects that let others read their bytes."""

import array
import ctypes
import pickle

from apptests.marks import expected_break
from apptests.raising import message

NUMBERS = array.array("i", [1000])
LETTER = ctypes.c_char(b"x")
BUFFER = pickle.PickleBuffer(b"x")


def test_released_views():
    out = []
    for source in (b"abc", bytearray(b"abc")):
        view = memoryview(source)
        with view as same:
            assert same is view and view.obj is source
        for name in ("obj", "format", "itemsize", "ndim", "readonly", "shape", "strides", "nbytes", "contiguous"):
            out.append(message(getattr, view, name))
        for operation in (bytes, len, hash, memoryview, memoryview.tobytes, memoryview.tolist, memoryview.__enter__):
            out.append(message(operation, view))
        out.append(message(view.__getitem__, 0))
        out.append(message(view.__setitem__, 0, b"x"))
        view.release()
        assert view == view and view != memoryview(source) and view != source
    return out


def test_with_a_released_view():
    view = memoryview(b"abc")
    view.release()
    try:
        with view:
            out = "entered"
    except ValueError as e:
        out = str(e)
    return out


def test_a_view_is_left_by_its_own_release():
    view = memoryview(b"abc")
    with view:
        view.release()
    return message(len, view)


@expected_break("bytes.__new__ of a buffer")
def test_bytes_of_what_can_be_iterated_too():
    return bytes(NUMBERS)


@expected_break("bytes.__new__ of a buffer")
def test_bytes_of_a_buffer():
    return bytes(LETTER), bytes(BUFFER)


@expected_break("bytearray.__add__")
def test_buffers_are_added_to_bytearrays():
    changed = bytearray(b"a")
    changed += BUFFER
    return bytearray(b"a") + NUMBERS[:0], bytearray(b"a") + LETTER, changed


@expected_break("bytes.__add__")
def test_buffers_are_added_to_bytes():
    return b"a" + BUFFER, b"a" + LETTER


@expected_break("bytearray.__eq__")
def test_bytearrays_equal_buffers():
    data = bytearray(b"x")
    return [data == BUFFER, data != BUFFER, data <= LETTER, BUFFER == data]


@expected_break("memoryview.__eq__")
def test_views_equal_buffers():
    view = memoryview(b"x")
    return [view == BUFFER, view != BUFFER, BUFFER == view, view == 1, view == LETTER]


def test_others_are_no_buffers():
    data, view = bytearray(b"x"), memoryview(b"x")
    out = [data == [120], data != "x", view == "x", view != [120]]
    out.append(message(lambda: data + "x"))
    out.append(message(lambda: b"x" + 1))
    out.append(message(bytes, object()))
    return out
