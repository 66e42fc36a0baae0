"""Comprehensions and generator expressions: scopes, nesting, order."""


def app_list_set_dict():
    assert [x * x for x in range(5) if x % 2] == [1, 9]
    assert {x % 3 for x in range(10)} == {0, 1, 2}
    assert {k: v for v, k in enumerate("ab")} == {"a": 0, "b": 1}


def app_nested_loops_and_conditions():
    assert [(x, y) for x in range(3) for y in range(x) if x + y > 1] == [(2, 0), (2, 1)]
    assert [[y for y in range(x)] for x in range(3)] == [[], [0], [0, 1]]


def app_the_loop_variable_stays_inside():
    x = "outer"
    assert [x for x in range(3)] == [0, 1, 2]
    assert x == "outer"


def app_comprehension_sees_the_enclosing_scope():
    factor = 3

    def scaled(values):
        offset = 1
        return [factor * v + offset for v in values]

    assert scaled([1, 2]) == [4, 7]


def app_closures_made_in_a_comprehension():
    functions = [lambda y: x + y for x in range(3)]
    assert [f(10) for f in functions] == [12, 12, 12]


def app_first_iterable_is_evaluated_outside():
    log = []

    def source(name):
        log.append(name)
        return [1, 2]

    lazy = (x + y for x in source("first") for y in source("second"))
    assert log == ["first"]
    assert list(lazy) == [2, 3, 3, 4]
    assert log == ["first", "second", "second"]


def app_generator_expression_in_calls():
    assert sum(x for x in range(5)) == 10
    assert any(x > 3 for x in range(5)) and not all(x > 3 for x in range(5))
    assert max((x % 4, x) for x in range(8)) == (3, 7)
    assert ",".join(str(x) for x in range(3)) == "0,1,2"
    assert dict((x, -x) for x in range(2)) == {0: 0, 1: -1}


def app_any_stops_early():
    seen = []

    def check(x):
        seen.append(x)
        return x == 2

    assert any(check(x) for x in range(10))
    assert seen == [0, 1, 2]


def app_exception_inside_a_comprehension():
    log = []
    try:
        [log.append(x) or 1 // (2 - x) for x in range(5)]
    except ZeroDivisionError:
        log.append("caught")
    assert log == [0, 1, 2, "caught"]


def app_comprehension_in_a_class_body():
    class Table:
        names = ["a", "b"]
        upper = [name.upper() for name in names]

    assert Table.upper == ["A", "B"]
