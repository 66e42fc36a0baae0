"""Functions: closures, defaults, star-arguments, recursion, decorators."""

COUNTER = 0


def app_closure_reads_and_writes():
    total = 0

    def add(n):
        nonlocal total
        total += n
        return total

    assert [add(1), add(2), add(3)] == [1, 3, 6]
    assert total == 6


def app_closure_shares_its_cell():
    def pair():
        value = 0

        def get():
            return value

        def set_(new):
            nonlocal value
            value = new

        return get, set_

    get, set_ = pair()
    other_get, _ = pair()
    set_(5)
    assert get() == 5
    assert other_get() == 0


def app_late_binding_in_a_loop():
    late = [lambda: i for i in range(3)]
    early = [lambda i=i: i for i in range(3)]
    assert [f() for f in late] == [2, 2, 2]
    assert [f() for f in early] == [0, 1, 2]


def app_closure_over_a_deleted_name():
    value = 1

    def read():
        return value  # noqa: F821

    assert read() == 1
    del value
    try:
        read()
    except NameError as error:
        assert "value" in str(error)
    else:
        raise AssertionError("no NameError")


def app_global_statement():
    global COUNTER
    COUNTER = 10
    COUNTER += 1
    assert COUNTER == 11
    del COUNTER
    try:
        COUNTER
    except NameError:
        COUNTER = 0
    assert COUNTER == 0


def app_unbound_local():
    def early(flag):
        if flag:
            x = 1
        return x

    assert early(True) == 1
    try:
        early(False)
    except UnboundLocalError as error:
        assert "x" in str(error)
    else:
        raise AssertionError("no UnboundLocalError")


def app_defaults_are_evaluated_once():
    def collect(item, into=[]):
        into.append(item)
        return into

    assert collect(1) == [1]
    assert collect(2) == [1, 2]
    assert collect(3, []) == [3]
    assert collect.__defaults__ == ([1, 2],)


def everything(a, b=2, /, c=3, *rest, d, e=5, **more):
    return a, b, c, rest, d, e, more


def app_every_kind_of_parameter():
    assert everything(1, d=4) == (1, 2, 3, (), 4, 5, {})
    assert everything(1, 20, 30, 40, 50, d=4, f=6) == (1, 20, 30, (40, 50), 4, 5, {"f": 6})
    # A positional-only name may be used again in **more.
    assert everything(1, d=4, a=7) == (1, 2, 3, (), 4, 5, {"a": 7})


def app_star_calls():
    args, kwargs = [1, 2], {"d": 4}
    assert everything(*args, *[3, 9], **kwargs, **{"z": 0}) == (1, 2, 3, (9,), 4, 5, {"z": 0})
    assert everything(*(x for x in (1, 2)), d=0)[:2] == (1, 2)


def type_error(call):
    try:
        call()
    except TypeError as error:
        return str(error)
    raise AssertionError("no TypeError")


def app_wrong_calls():
    def f(a, b, *, c):
        return a, b, c

    assert "missing 1 required positional argument: 'b'" in type_error(lambda: f(1, c=1))
    assert "missing 1 required keyword-only argument: 'c'" in type_error(lambda: f(1, 2))
    assert "takes 2 positional arguments but 3" in type_error(lambda: f(1, 2, 3, c=1))
    assert "unexpected keyword argument 'z'" in type_error(lambda: f(1, 2, c=1, z=2))
    assert "multiple values for argument 'a'" in type_error(lambda: f(1, 2, a=3, c=1))
    assert "multiple values for keyword argument 'c'" in type_error(lambda: f(1, 2, **{"c": 1}, **{"c": 2}))


def app_recursion():
    def ackermann(m, n):
        if m == 0:
            return n + 1
        if n == 0:
            return ackermann(m - 1, 1)
        return ackermann(m - 1, ackermann(m, n - 1))

    assert ackermann(1, 3) == 5


def app_mutual_recursion():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    assert even(8) and odd(7) and not even(3)


def app_decorators():
    log = []

    def named(name):
        def decorate(function):
            def wrapper(*args, **kwargs):
                log.append(name)
                return function(*args, **kwargs)

            wrapper.__name__ = function.__name__
            return wrapper

        return decorate

    @named("outer")
    @named("inner")
    def f(x):
        return x + 1

    assert f(1) == 2
    assert log == ["outer", "inner"]
    assert f.__name__ == "f"


def app_function_attributes():
    def f(a, b=1, *, c: int = 2) -> str:
        """The text."""

    f.note = "n"
    assert f.note == "n"
    assert f.__doc__ == "The text."
    assert f.__kwdefaults__ == {"c": 2}
    assert f.__annotations__ == {"c": int, "return": str}
    assert f.__code__.co_argcount == 2
    assert f.__qualname__.endswith("<locals>.f")


def app_lambda_and_conditional_expression():
    pick = lambda flag, *, other=0: "yes" if flag else other  # noqa: E731
    assert pick(1) == "yes"
    assert pick(0, other="no") == "no"


def app_walrus():
    seen = []
    values = iter([3, 2, 0, 9])
    while value := next(values):
        seen.append(value)
    assert seen == [3, 2] and value == 0
    assert [y for x in range(4) if (y := x * x) > 1] == [4, 9]
    assert y == 9


def app_unpacking():
    a, (b, *c), d = 1, (2, 3, 4), 5
    assert (a, b, c, d) == (1, 2, [3, 4], 5)
    *front, last = "abc"
    assert front == ["a", "b"] and last == "c"
    a, b = b, a
    assert (a, b) == (2, 1)
    assert [*range(2), *"xy"] == [0, 1, "x", "y"]
    assert {**{"a": 1, "b": 2}, "b": 3} == {"a": 1, "b": 3}
    for wrong, words in (([1], "not enough values"), ([1, 2, 3], "too many values")):
        try:
            a, b = wrong
        except ValueError as error:
            assert words in str(error)
        else:
            raise AssertionError("no ValueError")


def app_chained_comparison_evaluates_once():
    calls = []

    def middle():
        calls.append(1)
        return 5

    assert 1 < middle() < 10
    assert not 1 < middle() < 3
    assert not (9 < middle() < middle())
    assert len(calls) == 3
