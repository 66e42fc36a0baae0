"""Exceptions: chaining, re-raising, groups, notes, and exceptions as objects."""


def app_raise_from():
    try:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ValueError("outer") from error
    except ValueError as error:
        assert isinstance(error.__cause__, KeyError)
        assert error.__suppress_context__
        assert error.__context__ is error.__cause__


def app_raise_from_none():
    try:
        try:
            raise KeyError("inner")
        except KeyError:
            raise ValueError("outer") from None
    except ValueError as error:
        assert error.__cause__ is None and error.__suppress_context__
        assert isinstance(error.__context__, KeyError)


def app_implicit_context():
    try:
        try:
            {}["x"]
        except KeyError:
            [][0]
    except IndexError as error:
        assert isinstance(error.__context__, KeyError)
        assert not error.__suppress_context__


def app_context_of_an_exception_in_finally():
    try:
        try:
            raise KeyError("first")
        finally:
            raise ValueError("second")
    except ValueError as error:
        assert isinstance(error.__context__, KeyError)


def app_bare_raise():
    log = []

    def inner():
        try:
            raise ValueError("x")
        except ValueError:
            log.append("seen")
            raise

    try:
        inner()
    except ValueError as error:
        log.append(str(error))
    assert log == ["seen", "x"]
    try:
        raise
    except RuntimeError as error:
        assert "No active exception" in str(error)


def app_the_name_is_deleted():
    error = "before"
    try:
        raise ValueError
    except ValueError as error:
        pass
    try:
        error
    except NameError:
        return
    raise AssertionError("the name is still bound")


def app_raise_class_and_instance():
    for what in (ValueError, ValueError()):
        try:
            raise what
        except ValueError as error:
            assert error.args == ()
    try:
        raise 5
    except TypeError as error:
        assert "must derive from BaseException" in str(error)


class AppError(Exception):
    def __init__(self, code, *args):
        super().__init__(code, *args)
        self.code = code

    def __str__(self):
        return f"code {self.code}"


class SpecialError(AppError):
    pass


def app_user_exceptions():
    try:
        raise SpecialError(7, "more")
    except AppError as error:
        assert (error.code, str(error), error.args) == (7, "code 7", (7, "more"))
        assert type(error) is SpecialError
        assert repr(error) == "SpecialError(7, 'more')"


def app_handler_order():
    def kind(error):
        try:
            raise error
        except SpecialError:
            return "special"
        except AppError:
            return "app"
        except Exception:
            return "any"

    assert [kind(e) for e in (SpecialError(1), AppError(1), ValueError())] == ["special", "app", "any"]


def app_notes():
    try:
        raise ValueError("x")
    except ValueError as error:
        error.add_note("a note")
        assert error.__notes__ == ["a note"]


def app_exception_groups():
    log = []
    try:
        raise ExceptionGroup("many", [ValueError("v"), KeyError("k"), TypeError("t")])
    except* ValueError as group:
        log.append([str(e) for e in group.exceptions])
    except* (KeyError, TypeError) as group:
        log.append([type(e).__name__ for e in group.exceptions])
    assert log == [["v"], ["KeyError", "TypeError"]]


def app_exception_group_rest_is_raised():
    try:
        try:
            raise ExceptionGroup("many", [ValueError("v"), ExceptionGroup("deep", [KeyError("k"), ValueError("w")])])
        except* KeyError:
            pass
    except ExceptionGroup as rest:
        assert rest.message == "many"
        assert [type(e).__name__ for e in rest.exceptions] == ["ValueError", "ExceptionGroup"]
        assert [str(e) for e in rest.exceptions[1].exceptions] == ["w"]
    else:
        raise AssertionError("nothing was raised")


def app_except_star_wraps_a_plain_exception():
    try:
        raise ValueError("x")
    except* ValueError as group:
        assert isinstance(group, ExceptionGroup)
        assert [str(e) for e in group.exceptions] == ["x"]


def app_group_split_and_subgroup():
    group = ExceptionGroup("g", [ValueError(1), KeyError(2)])
    match, rest = group.split(ValueError)
    assert [e.args for e in match.exceptions] == [(1,)]
    assert [e.args for e in rest.exceptions] == [(2,)]
    assert group.subgroup(OSError) is None


def app_messages_are_cpythons():
    def message(action):
        try:
            action()
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    assert message(lambda: {}["k"]) == "KeyError: 'k'"
    assert message(lambda: [1][5]) == "IndexError: list index out of range"
    assert message(lambda: (1,)[5]) == "IndexError: tuple index out of range"
    assert message(lambda: "a" + 1) == 'TypeError: can only concatenate str (not "int") to str'
    assert message(lambda: 1 + "a") == "TypeError: unsupported operand type(s) for +: 'int' and 'str'"
    assert message(lambda: None.x) == "AttributeError: 'NoneType' object has no attribute 'x'"
    assert message(lambda: 5()) == "TypeError: 'int' object is not callable"
    assert message(lambda: [] < 1) == "TypeError: '<' not supported between instances of 'list' and 'int'"
    assert message(lambda: {[]: 1}) is not None and "unhashable type: 'list'" in message(lambda: {[]: 1})
    assert message(lambda: int("x")) == "ValueError: invalid literal for int() with base 10: 'x'"
    assert message(lambda: iter(5)) == "TypeError: 'int' object is not iterable"


def app_error_in_a_handler_keeps_the_outer_state():
    log = []
    for i in range(2):
        try:
            try:
                raise ValueError(i)
            except ValueError:
                raise KeyError(i)
        except KeyError as error:
            log.append((error.args[0], error.__context__.args[0]))
    assert log == [(0, 0), (1, 1)]


def app_sys_exc_info():
    import sys

    assert sys.exc_info() == (None, None, None)
    try:
        raise ValueError("x")
    except ValueError as error:
        assert sys.exc_info()[1] is error
    assert sys.exc_info() == (None, None, None)
