"""Control flow: loops with else, with, try and finally, nested and leaving early."""

from contextlib import ExitStack, contextmanager, nullcontext, suppress


def app_loop_else():
    def find(values, wanted):
        for i, value in enumerate(values):
            if value == wanted:
                break
        else:
            return -1
        return i

    assert find("abc", "b") == 1
    assert find("abc", "z") == -1
    n = 3
    while n:
        n -= 1
    else:
        n = "done"
    assert n == "done"


def app_continue_and_break_through_finally():
    log = []
    for i in range(5):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            log.append(i)
        finally:
            log.append(f"f{i}")
    assert log == [0, "f0", "f1", 2, "f2", "f3"]


def app_finally_overrides_return():
    def f():
        try:
            return "try"
        finally:
            return "finally"

    def g():
        for _ in range(2):
            try:
                raise ValueError
            finally:
                break
        return "swallowed"

    assert f() == "finally"
    assert g() == "swallowed"


def app_return_value_is_fixed_before_finally():
    def f():
        x = 1
        try:
            return x
        finally:
            x = 2

    assert f() == 1


def app_try_except_else_finally():
    def run(action):
        log = []
        try:
            log.append("try")
            action()
        except (KeyError, IndexError) as error:
            log.append(type(error).__name__)
        except ArithmeticError:
            log.append("arithmetic")
        else:
            log.append("else")
        finally:
            log.append("finally")
        return log

    assert run(lambda: None) == ["try", "else", "finally"]
    assert run(lambda: {}["x"]) == ["try", "KeyError", "finally"]
    assert run(lambda: [][0]) == ["try", "IndexError", "finally"]
    assert run(lambda: 1 // 0) == ["try", "arithmetic", "finally"]


class Manager:
    def __init__(self, log, name, swallow=False):
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self):
        self.log.append(f"enter {self.name}")
        return self.name

    def __exit__(self, kind, value, traceback):
        self.log.append(f"exit {self.name} {kind.__name__ if kind else None}")
        return self.swallow


def app_with_enters_and_exits_in_order():
    log = []
    with Manager(log, "a") as a, Manager(log, "b") as b:
        log.append(a + b)
    assert log == ["enter a", "enter b", "ab", "exit b None", "exit a None"]


def app_with_swallows_an_exception():
    log = []
    with Manager(log, "outer"):
        with Manager(log, "inner", swallow=True):
            raise ValueError("x")
        log.append("after")
    assert log == ["enter outer", "enter inner", "exit inner ValueError", "after", "exit outer None"]


def app_with_lets_an_exception_through():
    log = []
    try:
        with Manager(log, "a"):
            raise KeyError("k")
    except KeyError as error:
        assert error.args == ("k",)
    assert log == ["enter a", "exit a KeyError"]


def app_return_from_inside_with():
    log = []

    def f():
        with Manager(log, "a"):
            for i in range(3):
                with Manager(log, i):
                    if i == 1:
                        return i
        return "never"

    assert f() == 1
    assert log == ["enter a", "enter 0", "exit 0 None", "enter 1", "exit 1 None", "exit a None"]


def app_with_needs_the_protocol():
    try:
        with 5:
            pass
    except TypeError as error:
        assert "context manager protocol" in str(error)
    else:
        raise AssertionError("no TypeError")


def app_contextmanager_from_a_generator():
    log = []

    @contextmanager
    def section(name):
        log.append(f"<{name}>")
        try:
            yield name.upper()
        except ValueError:
            log.append("caught")
        finally:
            log.append(f"</{name}>")

    with section("a") as name:
        log.append(name)
    with section("b"):
        raise ValueError
    assert log == ["<a>", "A", "</a>", "<b>", "caught", "</b>"]


def app_exit_stack():
    log = []
    with ExitStack() as stack:
        for name in "ab":
            stack.enter_context(Manager(log, name))
        stack.callback(log.append, "callback")
    assert log == ["enter a", "enter b", "callback", "exit b None", "exit a None"]


def app_suppress_and_nullcontext():
    with suppress(KeyError, IndexError):
        {}["missing"]
        raise AssertionError("not reached")
    with nullcontext(5) as five:
        assert five == 5


def app_nested_finally_order():
    log = []
    try:
        try:
            try:
                raise ValueError("first")
            finally:
                log.append(1)
        finally:
            log.append(2)
    except ValueError:
        log.append(3)
    assert log == [1, 2, 3]


def app_while_with_complex_conditions():
    a, b, steps = 10, 3, 0
    while a > 0 and not (b > 20 or steps == 6):
        a, b, steps = a - 1, b * 2, steps + 1
    assert (a, b, steps) == (7, 24, 3)


def app_assert_statement():
    try:
        assert 1 > 2, f"{1} is not more"
    except AssertionError as error:
        assert error.args == ("1 is not more",)
    else:
        raise RuntimeError("no AssertionError")
