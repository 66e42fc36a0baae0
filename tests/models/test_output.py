"""print, warnings and logging: what goes out, in which order, and how often."""

import contextlib
import io
import logging
import sys
import warnings

import pytest

import stator


def compiled(function):
    return stator.compile(function, backend="eager", fullgraph=True)


def printed(function, *args):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        function(*args)
    return out.getvalue()


class Thing:
    def __str__(self):
        return "thing"


class Upper(io.StringIO):
    def write(self, text):
        return super().write(text.upper())


class Tee:
    def __init__(self):
        self.parts = []

    def write(self, text):
        self.parts.append(text)

    def flush(self):
        self.parts.append("flush")


def test_print_goes_out_at_each_call():
    def program(n):
        print("a", n, Thing(), sep="-", end=";")
        print([n], flush=True)
        print()

    traced = compiled(program)
    for n in (1, 2, 1):
        assert printed(traced, n) == printed(program, n) == f"a-{n}-thing;[{n}]\n\n"


def test_print_shows_values_as_they_were():
    def program(values):
        print(values)
        values.append(1)
        print(values)

    assert printed(compiled(program), [0]) == "[0]\n[0, 1]\n"


def test_print_to_files():
    def program(file):
        print("x", 1, file=file, sep=",", flush=True)

    traced = compiled(program)
    for make in (io.StringIO, Tee):
        real, ours = make(), make()
        program(real)
        traced(ours)
        assert vars(ours) == vars(real)
        assert make is Tee or ours.getvalue() == real.getvalue() == "x,1\n"


def test_print_without_standard_output(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert compiled(lambda: print("nowhere"))() is None


def test_sys_stdout_write_returns_the_length():
    def program():
        return sys.stdout.write("abc")

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert compiled(program)() == 3
    assert out.getvalue() == "abc"


def test_output_comes_before_the_exception():
    def program():
        print("before")
        raise ValueError("after")

    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(ValueError, match="after"):
        compiled(program)()
    assert out.getvalue() == "before\n"


def warn_twice():
    warnings.warn("careful", DeprecationWarning, stacklevel=1)
    warnings.warn("other")


def test_warnings_name_the_line_of_the_program():
    traced = compiled(warn_twice)
    with warnings.catch_warnings(record=True) as ours:
        warnings.simplefilter("always")
        traced()
        traced()
    with warnings.catch_warnings(record=True) as real:
        warnings.simplefilter("always")
        warn_twice()
    expected = [(str(w.message), w.category, w.filename, w.lineno) for w in real]
    assert [(str(w.message), w.category, w.filename, w.lineno) for w in ours] == 2 * expected


def test_a_warning_is_shown_once_where_the_filter_says_so():
    traced = stator.compile(warn_twice, backend="eager")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("once")
        traced()
        traced()
    assert len(caught) == 2


def test_warnings_as_errors_are_raised_by_the_program():
    def program():
        try:
            warnings.warn("careful")
        except UserWarning as e:
            return str(e)
        return None

    traced = compiled(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert traced() is None
        warnings.simplefilter("error")
        assert traced() == "careful"
        warnings.simplefilter("ignore")
        assert traced() is None


def test_a_wrong_category_is_a_type_error():
    with pytest.raises(TypeError, match="category must be a Warning subclass, not 'int'"):
        compiled(lambda: warnings.warn("x", int))()


@pytest.fixture
def stream():
    logger = LOGGER
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(funcName)s %(lineno)d %(message)s"))
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)


#: unknown to the manager: pytest attaches handlers of its own to the loggers it finds there
LOGGER = logging.Logger("tests.models.output")


def log_some(values):
    LOGGER.debug("hidden %s", values)
    LOGGER.info("values %s of %d", values, 3)
    values.append(1)
    LOGGER.warning("plain %s", "text")
    LOGGER.error("%(a)s", {"a": 5})
    return LOGGER.isEnabledFor(logging.DEBUG)


def test_log_records_are_those_of_the_plain_program(stream):
    assert log_some([0]) is False
    expected = stream.getvalue()
    stream.truncate(0)
    stream.seek(0)
    assert compiled(log_some)([0]) is False
    assert stream.getvalue() == expected
    assert "INFO tests.models.output log_some" in expected and "values [0] of 3" in expected


def test_get_logger_finds_what_there_is():
    logger = logging.getLogger("tests.models.found")
    traced = compiled(lambda name: logging.getLogger(name))
    assert traced("tests.models.found") is logger
    assert traced(None) is traced("") is logging.root


def test_the_level_is_guarded():
    logger = logging.getLogger("tests.models.found")
    traced = compiled(lambda: (logger.isEnabledFor(logging.INFO), logger.getEffectiveLevel()))
    for level in (logging.INFO, logging.ERROR, logging.INFO):
        logger.setLevel(level)
        assert traced() == (level == logging.INFO, level)


def test_a_handler_of_the_programs_own_is_seen(stream):
    class Keep(logging.Handler):
        def emit(self, record):
            kept.append(record.getMessage())

    kept = []
    traced = stator.compile(lambda: LOGGER.info("kept %s", 1), backend="eager")
    traced()
    handler = Keep()
    LOGGER.addHandler(handler)
    try:
        traced()
    finally:
        LOGGER.removeHandler(handler)
    assert kept == ["kept 1"]
    assert stream.getvalue().count("kept 1") == 2


def test_existing_locks_are_released():
    import threading

    lock = threading.Lock()

    def program():
        with lock:
            return lock.locked()

    for _ in range(2):
        assert compiled(program)() is True
        assert not lock.locked()


def test_recorded_warnings_can_be_read_at_once():
    def program(caught):
        warnings.warn("careful")
        return len(caught)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced = compiled(program)
        assert [traced(caught), traced(caught)] == [1, 2]
