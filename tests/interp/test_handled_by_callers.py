"""A compiled function that is called while its callers handle an exception."""

import sys
import traceback

import pytest

import stator


def handled():
    return sys.exc_info()[1], sys.exception()


def formatted():
    return traceback.format_exc()


def raise_again():
    raise


def raise_again_at_last():
    try:
        raise
    finally:
        list(range(3))


def after_a_break():
    stator.graph_break()
    return sys.exception()


def in_a_generator():
    def numbers():
        yield sys.exception()
        stator.graph_break()
        yield sys.exception()
        try:
            [][1]
        except IndexError as e:
            yield sys.exception() is e
        yield sys.exception()

    made = numbers()
    found = [next(made)]
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError as e:
        found += [next(made) is e, next(made)]
    found.append(next(made))
    return found


def while_handling(function, error):
    """What the function gives or raises, and the traceback, while `error` is being handled, if it is one."""
    error = error and error.with_traceback(None)
    try:
        if error is None:
            return function(), None
        try:
            raise error
        except Exception:
            return function(), None
    except Exception as e:
        return e, traceback.format_exc()


@pytest.mark.parametrize("fullgraph", [True, False])
@pytest.mark.parametrize("function", [handled, formatted, raise_again, raise_again_at_last])
def test_what_the_callers_handle(function, fullgraph):
    compiled = stator.compile(function, backend="eager", fullgraph=fullgraph)
    for error in (None, ValueError("a"), ValueError("b"), KeyError("c"), None):
        expected, shown = while_handling(function, error)
        given, text = while_handling(compiled, error)
        assert text == shown
        if type(expected) is RuntimeError:  # nothing to raise again
            assert type(given) is RuntimeError
            assert str(given) == str(expected)
        else:
            assert given == expected


def test_after_a_break():
    compiled = stator.compile(after_a_break, backend="eager")
    for error in (None, ValueError("a"), KeyError("b"), None):
        assert while_handling(compiled, error) == (error, None)


def test_generators():
    expected = in_a_generator()
    assert stator.compile(in_a_generator, backend="eager")() == expected


def test_the_exception_is_let_go_of():
    import gc
    import weakref

    class Failure(Exception):
        pass

    compiled = stator.compile(lambda: sys.exception() is None, backend="eager", fullgraph=True)
    try:
        raise Failure
    except Failure as e:
        held = weakref.ref(e)
        assert compiled() is False
    gc.collect()
    assert held() is None


def number():
    return int("x")


def test_what_c_code_raises_has_it_as_context():
    compiled = stator.compile(number, backend="eager", fullgraph=True)
    for _ in range(2):
        outer = KeyError("outer")
        try:
            raise outer
        except KeyError:
            with pytest.raises(ValueError, match="invalid literal") as raised:
                compiled()
        assert raised.value.__context__ is outer


def contexts():
    found = []
    try:
        raise LookupError
    except LookupError as e:
        found.append(e.__context__)
    try:
        int("x")
    except ValueError as e:
        found.append(e.__context__)
    try:
        raise ExceptionGroup("two", [ValueError(), TypeError()])
    except* ValueError as e:
        found.append(e.__context__)
    except* TypeError:
        pass
    return [*found, ValueError().__context__]


def test_contexts_that_the_program_reads():
    compiled = stator.compile(contexts, backend="eager", fullgraph=True)
    for outer in (None, KeyError("a"), OSError("b")):
        expected, _ = while_handling(contexts, outer)
        assert expected == [outer, outer, outer, None]
        assert while_handling(compiled, outer) == (expected, None)
