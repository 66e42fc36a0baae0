"""Tracebacks: which frames, lines and columns."""

import sys
import traceback
import types

from apptests.raising import message


def caught(function, *args):
    try:
        function(*args)
    except BaseException as e:
        return e
    return None


def entries(error):
    """Of each traceback entry: the function, and the line from the function's first."""
    found = []
    entry = error.__traceback__
    while entry is not None:
        found.append((entry.tb_frame.f_code.co_name, entry.tb_lineno - entry.tb_frame.f_code.co_firstlineno))
        entry = entry.tb_next
    return found


def divides(a, b):
    total = 1 + (a / b) + 2
    return total


def in_except():
    try:
        x = 1 / 0
    except ZeroDivisionError:
        "x" / 2
        pass


def in_other_except():
    try:
        x = 1 / 0
    except TypeError:
        pass


def in_named_except():
    try:
        x = 1 / 0
    except ZeroDivisionError as error:
        error / 0
        pass


def in_finally():
    try:
        x = 1 / 0
    finally:
        len("x")


def raises_in_finally():
    try:
        x = 1 / 0
    finally:
        "x" / 0
        pass


class Manager:
    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass


class Failing(Manager):
    def __exit__(self, *args):
        raise ValueError


def after_with():
    with Manager():
        x = 1 / 0
        pass


def with_failing_exit():
    with Failing():
        x = 1 / 0


def raised_again():
    try:
        divides(1, 0)
    except ZeroDivisionError as error:
        raise error


def sent_on():
    try:
        divides(1, 0)
    except ZeroDivisionError:
        raise


def in_generator():
    def items():
        yield 1
        yield {}["missing"]

    for _ in items():
        pass


FAILING = (
    in_except,
    in_other_except,
    in_named_except,
    in_finally,
    raises_in_finally,
    after_with,
    with_failing_exit,
    raised_again,
    sent_on,
    in_generator,
)


def test_lines():
    return [entries(caught(function)) for function in FAILING]


def test_carets():
    return [shown(caught(function)) for function in (in_named_except, raised_again)]


def shown(error):
    """The frames' code objects, and the text with carets, as the interpreter would print it."""
    text = traceback.format_exception(error)
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return text, [code is globals().get(code.co_name, caught).__code__ for code in codes if code.co_name != "items"]


def test_context_is_what_was_handled_outside():
    def chain(error):
        return [] if error is None else [type(error), *chain(error.__context__)]

    found = []
    for function in FAILING:
        try:
            raise LookupError
        except LookupError:
            found.append(chain(caught(function)))
            found.append(sys.exc_info()[0])
    return found


def test_code_of_a_frame():
    code = test_code_of_a_frame.__code__
    assert sys._getframe().f_code is code
    try:
        len(3)
    except TypeError as e:
        assert e.__traceback__.tb_frame.f_code is code
    assert sys._getframe().f_lineno == code.co_firstlineno + 7


def test_cleared_frames_of_generators():
    def failing():
        kept.append("held")
        yield 1
        raise ValueError("from inside")

    kept = []
    try:
        list(failing())
    except ValueError as e:
        traceback.clear_frames(e.__traceback__)
        return [str(e), e.__traceback__.tb_next.tb_frame.f_code.co_name, kept]


def test_what_code_tells_of_its_instructions():
    code = caught.__code__
    positions, lines = code.co_positions(), code.co_lines()
    first = next(positions)
    rest = [*positions]
    return first, len(rest), rest[-1], next(lines), [*lines], next(positions, "end"), type(lines).__name__


def refuses(x):
    raise ValueError(x)


def callers(error):
    """The names of the innermost frame of the traceback and of two that called it."""
    tb = error.__traceback__
    while tb.tb_next is not None:
        tb = tb.tb_next
    frame = tb.tb_frame
    return [found.f_code.co_name for found in (frame, frame.f_back, frame.f_back.f_back)]


def error_of(function, *args):
    try:
        function(*args)
    except ValueError as e:
        return e


def error_of_map(function, *args):
    return error_of(lambda: list(map(function, args)))


def test_who_called_the_frame_that_failed():
    errors = [error_of(refuses, 1), error_of_map(refuses, 2), error_of_map(refuses, 3)]
    names = [callers(e) for e in errors]
    assert names[0] == ["refuses", "error_of", "test_who_called_the_frame_that_failed"], names
    assert names[1:] == [["refuses", "<lambda>", "error_of"]] * 2, names


# -- tracebacks that the program makes --------------------------------------------------------------------------------


def test_a_traceback_made():
    frame = sys._getframe()
    inner = types.TracebackType(None, frame, 2, 7)
    made = types.TracebackType(inner, frame, True, 8)
    assert type(made) is types.TracebackType
    assert (made.tb_lasti, made.tb_lineno, made.tb_next is inner, made.tb_frame is frame) == (1, 8, True, True)
    assert (inner.tb_lasti, inner.tb_lineno, inner.tb_next) == (2, 7, None)
    error = KeyError("a").with_traceback(made)
    assert error.__traceback__ is made and error.__traceback__.tb_next is inner
    del frame
    return [line for _, line in traceback.walk_tb(error.__traceback__)]


def test_a_traceback_that_grows():
    def outer():
        made = types.TracebackType(None, sys._getframe(), 0, 1)
        raise KeyError("a").with_traceback(made)

    try:
        outer()
    except KeyError as error:
        names = [(frame.f_code.co_name, line > 1) for frame, line in traceback.walk_tb(error.__traceback__)]
        kept = error
    expected = [("test_a_traceback_that_grows", True), ("outer", True), ("outer", False)]
    assert names == expected, names
    found = traceback.extract_tb(kept.__traceback__)
    return [entry.name for entry in found], str(kept)


def test_calls_of_the_class_of_tracebacks():
    make, frame = types.TracebackType, sys._getframe()
    return [
        message(make),
        message(make, None, frame, 0),
        message(make, 3, frame, 0, 1),
        message(make, None, 3, 0, 1),
        message(make, None, frame, "a", 1),
        message(make, None, frame, 0, None),
        message(make, None, frame, 1 << 40, 1),
        message(make, None, frame, 0, -(1 << 40)),
        message(make, None, frame, 0, 1, 2),
        message(make.__new__),
        message(make.__new__, int, None, frame, 0, 1),
    ]
