"""Exceptions: attributes, chaining, texts, groups, what `raise` and `except` accept."""

import contextlib
import re
import sys
import traceback
import types

from apptests.raising import message


class Plain(Exception):
    pass


class WithState(ValueError):
    def __init__(self, code, *rest):
        super().__init__(f"code {code}", *rest)
        self.code = code

    def __str__(self):
        return f"<{self.args[0]}>"


class Coded(OSError):
    pass


def caught(function, *args):
    try:
        function(*args)
    except BaseException as e:
        return e
    return None


def fail(error):
    raise error


def test_arguments_and_text():
    cases = [
        (Exception(), (), "", "Exception()"),
        (Exception(1), (1,), "1", "Exception(1)"),
        (Exception(1, "b"), (1, "b"), "(1, 'b')", "Exception(1, 'b')"),
        (KeyError("k"), ("k",), "'k'", "KeyError('k')"),
        (Plain([1]), ([1],), "[1]", "Plain([1])"),
    ]
    for error, args, text, shown in cases:
        assert error.args == args
        assert str(error) == text
        assert repr(error) == shown
        assert caught(fail, error) is error


def test_own_classes():
    e = caught(fail, WithState(7, "x"))
    assert isinstance(e, ValueError)
    assert e.code == 7
    assert e.args == ("code 7", "x")
    assert str(e) == "<code 7>"
    assert f"{e}" == "<code 7>"
    e.extra = [1]
    assert e.__dict__ == {"code": 7, "extra": [1]}
    e.args = (1, 2)
    assert e.args == (1, 2)


def test_fields():
    e = caught(fail, StopIteration(5))
    assert e.value == 5
    assert caught(fail, SystemExit(3)).code == 3
    assert caught(fail, SystemExit(3, 4)).code == (3, 4)
    i = ImportError("m", name="n", path="p")
    assert (i.msg, i.name, i.path) == ("m", "n", "p")
    a = AttributeError("t", name="n", obj=e)
    assert a.obj is e
    assert NameError("x", name="y").name == "y"
    u = caught(str.encode, "\xe4", "ascii")
    assert (u.encoding, u.start, u.end, u.reason) == ("ascii", 0, 1, "ordinal not in range(128)")


def test_os_errors():
    e = OSError(2, "No such file", "name")
    assert type(e) is FileNotFoundError
    assert (e.errno, e.strerror, e.filename) == (2, "No such file", "name")
    assert e.args == (2, "No such file")
    assert str(e) == "[Errno 2] No such file: 'name'"
    assert type(Coded(2, "x")) is Coded
    assert OSError("only").errno is None
    e.filename = "other"
    assert str(e).endswith("'other'")


def test_chaining():
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            first = inner
            raise ValueError("outer") from inner
    except ValueError as outer:
        assert outer.__cause__ is first
        assert outer.__context__ is first
        assert outer.__suppress_context__
    try:
        try:
            {}["k"]
        except KeyError:
            [].nothing  # noqa: B018
    except AttributeError as e:
        assert type(e.__context__) is KeyError
        assert e.__cause__ is None
        assert not e.__suppress_context__
    try:
        raise Plain from None
    except Plain as e:
        assert e.__cause__ is None
        assert e.__suppress_context__


def test_handled_exception_is_forgotten():
    try:
        raise Plain(1)
    except Plain:
        pass
    assert caught(fail, Plain(2)).__context__ is None


def test_reraise():
    def again():
        try:
            raise Plain(1)
        except Plain as e:
            e.seen = True
            raise

    assert caught(again).seen

    def nothing():
        raise

    assert str(caught(nothing)) == "No active exception to reraise"


def test_raise_of_wrong_things():
    assert str(caught(fail, 3)) == "exceptions must derive from BaseException"
    assert type(caught(fail, Plain)) is Plain

    def cause():
        raise Plain from 3

    assert str(caught(cause)) == "exception causes must derive from BaseException"

    def pattern():
        try:
            raise Plain
        except 3:
            pass

    text = "catching classes that do not inherit from BaseException is not allowed"
    assert str(caught(pattern)) == text


def test_except_with_tuples_and_order():
    def kind(error):
        try:
            raise error
        except (KeyError, IndexError):
            return "lookup"
        except ArithmeticError:
            return "arithmetic"
        except Exception:
            return "other"

    assert [kind(e) for e in (KeyError(), IndexError(), ZeroDivisionError(), Plain())] == [
        "lookup",
        "lookup",
        "arithmetic",
        "other",
    ]


def test_finally_and_else():
    log = []

    def run(error):
        try:
            if error:
                raise error
        except Plain:
            log.append("except")
            return 1
        else:
            log.append("else")
        finally:
            log.append("finally")
        return 2

    assert run(None) == 2
    assert run(Plain()) == 1
    assert type(caught(run, KeyError())) is KeyError
    assert log == ["else", "finally", "except", "finally", "finally"]


def test_errors_of_operations():
    assert str(caught(lambda: 1 / 0)) == "division by zero"
    assert str(caught(lambda: [][1])) == "list index out of range"
    assert str(caught(lambda: {}[(1,)])) == "(1,)"
    assert str(caught(lambda: int("x"))) == "invalid literal for int() with base 10: 'x'"
    assert str(caught(lambda: None.x)) == "'NoneType' object has no attribute 'x'"
    assert str(caught(lambda: undefined)) == "name 'undefined' is not defined"  # noqa: F821
    assert str(caught(lambda: 1 + "a")) == "unsupported operand type(s) for +: 'int' and 'str'"


def test_notes():
    e = Plain()
    assert not hasattr(e, "__notes__")
    e.add_note("one")
    e.add_note("two")
    assert e.__notes__ == ["one", "two"]
    later = sys.version_info >= (3, 14)
    words = "add_note() argument must be str, not int" if later else "note must be a str, not 'int'"
    assert str(caught(e.add_note, 3)) == words


def test_with_traceback():
    e = Plain(1)
    assert e.with_traceback(None) is e
    assert e.__traceback__ is None


def test_context_managers():
    seen = []

    class Manager:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, traceback):
            seen.append((kind, value, traceback is None))
            return kind is Plain

    with Manager():
        raise Plain(1)
    assert seen[0][0] is Plain
    assert seen[0][1].args == (1,)
    assert not seen[0][2]
    with Manager():
        pass
    assert seen[1] == (None, None, True)

    @contextlib.contextmanager
    def manager():
        try:
            yield 5
        except Plain as e:
            seen.append(e.args)

    with manager() as five:
        raise Plain(five)
    assert seen[2] == (5,)
    with contextlib.suppress(KeyError):
        raise KeyError


def test_groups():
    group = ExceptionGroup("g", [ValueError(1), TypeError(2), ExceptionGroup("h", [ValueError(3)])])
    assert group.message == "g"
    assert len(group.exceptions) == 3
    match, rest = group.split(ValueError)
    assert [type(e) for e in match.exceptions] == [ValueError, ExceptionGroup]
    assert [type(e) for e in rest.exceptions] == [TypeError]
    assert group.subgroup(lambda e: isinstance(e, TypeError)).exceptions[0].args == (2,)
    assert group.subgroup(KeyError) is None
    assert str(group) == "g (3 sub-exceptions)"
    assert type(BaseExceptionGroup("b", [KeyError()])) is ExceptionGroup
    assert str(caught(ExceptionGroup, "g", [1])) == "Item 0 of second argument (exceptions) is not an exception"


def test_except_star():
    log = []
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as e:
        log.append([x.args for x in e.exceptions])
    except* TypeError as e:
        log.append([x.args for x in e.exceptions])
    assert log == [[(1,)], [(2,)]]

    def partial():
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
        except* ValueError:
            pass

    left = caught(partial)
    assert [type(e) for e in left.exceptions] == [KeyError]

    def naked():
        try:
            raise ValueError(4)
        except* ValueError as e:
            log.append(type(e))

    naked()
    assert log[-1] is ExceptionGroup


def test_generators_and_exceptions():
    def stops():
        yield 1
        raise StopIteration(2)

    e = caught(list, stops())
    assert type(e) is RuntimeError
    assert str(e) == "generator raised StopIteration"
    assert type(e.__cause__) is StopIteration

    def thrown():
        try:
            yield 1
        except Plain as e:
            yield e.args

    g = thrown()
    next(g)
    assert g.throw(Plain(3)) == (3,)


class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass


class Failing(Quiet):
    def __exit__(self, *args):
        raise ValueError


def in_with(manager):
    with manager:
        1 / 0  # noqa: B018


def named():
    try:
        1 / 0  # noqa: B018
    except Exception as e:
        1 / 0  # noqa: B018
        return e


def test_line_that_a_finished_frame_shows():
    found = []
    for function, *args in ((in_with, Quiet()), (in_with, Failing()), (named,)):
        step = caught(function, *args).__traceback__.tb_next
        while step:
            found.append(step.tb_frame.f_lineno - step.tb_frame.f_code.co_firstlineno)
            step = step.tb_next
    assert found == [2, 1, 1, 4], found
    return found


def test_traceback_of_what_passes_through_a_with_statement():
    step = caught(in_with, Quiet()).__traceback__
    lines = []
    while step:
        lines.append(step.tb_lineno - step.tb_frame.f_code.co_firstlineno)
        step = step.tb_next
    assert lines == [2, 2], lines


def test_positions_in_a_traceback():
    e = caught(in_with, Quiet())
    text = "".join(traceback.format_exception(e))
    assert "    1 / 0  # noqa: B018\n    ~~^~~\n" in text, text


def test_syntax_errors():
    error = SyntaxError("odd", ("x.py", 3, 2, "a b", 3, 4))
    assert (error.msg, error.filename, error.lineno, error.offset) == ("odd", "x.py", 3, 2)
    assert (error.text, error.end_lineno, error.end_offset) == ("a b", 3, 4)
    assert str(error) == "odd (x.py, line 3)" and error.args == ("odd", ("x.py", 3, 2, "a b", 3, 4))
    assert SyntaxError("odd", ["x.py", None, None, b"a"]).text == b"a"
    kind, words = message(SyntaxError, "odd", ("x.py",))
    assert kind == "TypeError" and "argument" in words


KEPT_GROUP = ExceptionGroup("kept", [ValueError(1), TypeError(2)])


def test_text_of_groups():
    class Own(ExceptionGroup):
        def derive(self, exceptions):
            return Own(self.message, exceptions)

    assert str(KEPT_GROUP) == "kept (2 sub-exceptions)"
    assert str(Own("own", [KeyError()])) == "own (1 sub-exception)"
    assert str(ExceptionGroup("outer", [KEPT_GROUP])) == "outer (1 sub-exception)"


def test_modules_that_are_called():
    module = types.ModuleType("tool")
    found = [message(module)]
    module.tool = 1
    found.append(message(module))
    module.tool = len
    found.append(message(module))
    module.__name__ = "other"
    found.append(message(module))
    module.__name__ = 3
    found.append(message(module))
    del module.__name__
    found.append(message(module))
    plain = ("TypeError", "'module' object is not callable")
    hint = ". Did you mean: 'tool.tool(...)'?" if sys.version_info >= (3, 12) else ""
    assert found == [plain, plain, (plain[0], plain[1] + hint), plain, plain, plain], found


# -- what is raised while CPython computes ----------------------------------------------------------------------------


def test_attributes_of_errors_of_the_standard_library():
    found = []
    for pattern in ("(a", "(?P<1>a)", "a**"):
        try:
            re.compile(pattern)
        except re.error as error:
            found += [error.msg, error.pattern, error.pos, error.lineno, error.args, vars(error), error.__cause__]
    return found


def test_print_with_the_arrow_of_python_2():
    hinted = 'Did you mean "print(<message>' in str(caught(lambda: print >> 3))  # noqa: F633
    assert hinted == (sys.version_info < (3, 14))
    arrow = print
    return [str(caught(f)) for f in (lambda: arrow >> "a", lambda: len >> 3, lambda: 3 >> print, lambda: print << 3)]


def test_links_made_by_the_called_function():
    """What C code or the standard library raises has been raised while handling something else: codecs, `from`."""
    import codecs
    import configparser

    try:
        try:
            1 / 0  # noqa: B018
        except ZeroDivisionError:
            codecs.decode(b"hello", "zlib_codec")
    except Exception as e:
        assert type(e.__context__) is ZeroDivisionError
        if sys.version_info < (3, 12):  # later versions add a note
            assert type(e.__cause__) is type(e)
            assert str(e.__cause__) in str(e)
            assert e.__suppress_context__
            assert e.__cause__.__context__ is e.__context__
        else:
            assert e.__notes__ == ["decoding with 'zlib_codec' codec failed"]
    else:
        raise AssertionError("nothing raised")
    try:
        int("x")
    except ValueError as e:
        assert (e.__cause__, e.__context__, e.__suppress_context__) == (None, None, False)
    parser = configparser.ConfigParser()
    try:
        parser["nowhere"]
    except KeyError as e:
        assert (e.__cause__, e.__context__, e.__suppress_context__) == (None, None, False)


def test_links_made_by_the_standard_library():
    import ipaddress

    try:
        ipaddress.IPv4Network("10.0.0.0/x")
    except ValueError as e:
        assert type(e) is ipaddress.NetmaskValueError
        assert e.__suppress_context__, e
        assert e.__cause__ is None
        assert e.__context__ is not None


def test_reduce_words_what_cannot_be_iterated():
    import functools

    class Broken:
        def __init__(self, error):
            self.error = error

        def __iter__(self):
            raise self.error

    def words(iterable):
        try:
            functools.reduce(lambda a, b: a, iterable)
        except Exception as e:
            return type(e).__name__, str(e)

    assert words(Broken(TypeError("mine"))) == ("TypeError", "reduce() arg 2 must support iteration")
    assert words(Broken(ValueError("mine"))) == ("ValueError", "mine")
    assert words(3) == ("TypeError", "reduce() arg 2 must support iteration")


class Refused(ValueError):
    def __init__(self, request, why):
        super().__init__(f"request {request}: {why}")
        self.request = request


REFUSED = Refused(1, "once")


def test_init_of_an_existing_exception():
    items = [3]
    Refused.__init__(REFUSED, items[0], "again")
    assert REFUSED.args == ("request 3: again",) and str(REFUSED) == "request 3: again" and REFUSED.request == 3
    ValueError.__init__(REFUSED, items, 2)
    assert REFUSED.args[0] is items and repr(REFUSED) == "Refused([3], 2)"
    try:
        ValueError.__init__(REFUSED, why=1)
    except TypeError as error:
        assert "keyword" in str(error)
    else:
        raise AssertionError
    assert REFUSED.args == ([3], 2)
