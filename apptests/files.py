"""Files, in memory and others, and what is written to them."""

import contextlib
import io
import os
import pickle
import sys
import tempfile

from apptests.marks import expected_break


def test_memory_files_are_initialised_again():
    data = io.BytesIO(b"one")
    data.read(1)
    data.__init__(b"twenty")
    text = io.StringIO("one\n")
    text.write("two")
    text.__init__("twenty\n", newline="\r\n")
    empty = io.BytesIO(initial_bytes=b"x")
    empty.__init__()
    return data.read(), text.getvalue(), empty.getvalue()


def test_memory_file_made_without_init():
    text = io.StringIO.__new__(io.StringIO)
    try:
        text.getvalue()
    except ValueError as e:
        said = str(e)
    try:
        text.closed  # noqa: B018
    except ValueError as e:
        said += str(e)
    text.__init__("abc")
    return said, text.read(), io.BytesIO.__new__(io.BytesIO, b"ignored").getvalue()


def test_memory_file_rejects_what_it_is_initialised_with():
    data, text = io.BytesIO(b"old"), io.StringIO("old")
    for file, wrong in ((data, "text"), (text, b"bytes")):
        try:
            file.__init__(wrong)
        except TypeError as e:
            print(e)
        else:
            raise AssertionError
    return data.getvalue()


class Numbered(io.BytesIO):
    def __init__(self, content, number):
        super().__init__(content)
        self.number = number


@expected_break("BytesIO.__new__ of a subclass")
def test_subclass_of_a_memory_file():
    file = Numbered(b"abc", 3)
    return file.getvalue(), file.number


@expected_break("attribute 'note' of type 'BytesIO'")
def test_attribute_of_a_memory_file():
    file = io.BytesIO(b"abc")
    file.note = 3
    again = pickle.loads(pickle.dumps(file))
    return again.note, again.getvalue()


def test_closed_memory_file():
    file = io.StringIO("abc")
    file.close()
    try:
        file.write("d")
    except ValueError as e:
        return str(e), file.closed
    raise AssertionError


_SHUT = io.StringIO()
_SHUT.close()


@expected_break("write")
def test_existing_file_that_is_closed():
    try:
        _SHUT.write("x")
    except ValueError as e:
        return str(e)
    raise AssertionError


@expected_break("print")
def test_print_to_a_closed_file():
    try:
        print("x", file=_SHUT)
    except ValueError as e:
        return str(e)
    raise AssertionError


class Raw(io.RawIOBase):
    def __init__(self):
        self.written = []

    def writable(self):
        return True

    def write(self, data):
        self.written.append(bytes(data))
        return len(data)


_RAW = Raw()
_THROUGH = io.TextIOWrapper(_RAW, encoding="ascii", write_through=True)


@expected_break("write")
def test_text_file_over_the_program_own():
    start = len(_RAW.written)
    _THROUGH.write("abc")
    return _RAW.written[start:]


_ASCII = io.TextIOWrapper(io.BytesIO(), encoding="ascii")


@expected_break("write")
def test_text_that_cannot_be_encoded():
    try:
        _ASCII.write("\xff")
    except UnicodeEncodeError as e:
        return str(e)
    raise AssertionError


def test_text_is_written_after_the_graph():
    return _ASCII.write("abc")


@expected_break("write")
def test_text_file_that_is_only_read():
    with open(__file__) as file:
        try:
            file.write("x")
        except io.UnsupportedOperation as e:
            return str(e)
    raise AssertionError


@expected_break("mkstemp|open")
def test_text_file_on_disk():
    handle, path = tempfile.mkstemp()
    os.close(handle)
    with open(path, "w", encoding="utf-8") as file:
        file.write("one\n")
        print("zw\xf6lf", file=file)
        file.flush()
    with open(path, encoding="utf-8") as file:
        text = file.read()
    os.unlink(path)
    return text


def test_print_to_nowhere():
    with contextlib.redirect_stdout(_ASCII):
        print("x")
        sys.stdout.write("y")
    return 1
