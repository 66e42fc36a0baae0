"""Programs that `make fuzz` has found to do something else when traced, made small."""

import traceback

from apptests.raising import message


class Point:
    pass


def lines(error):
    """The lines of a traceback, from each function's first."""
    entries = traceback.walk_tb(error.__traceback__)
    return [(f.f_code.co_name, line - f.f_code.co_firstlineno) for f, line in entries]


def counting(start):
    value = start
    yield lambda: value
    value += 1


def test_thrown_into_a_generator_that_has_not_begun():
    seen = []
    for kind in (ValueError, StopIteration, GeneratorExit):
        generator = counting(1)
        try:
            generator.throw(kind("thrown"))
        except BaseException as e:
            seen.append((type(e).__name__, str(e), lines(e)[1:], list(generator)))
    assert [entry[2] for entry in seen[::2]] == [[("counting", 0)]] * 2, seen
    return seen


def test_deleting_items_of_what_has_none():
    def delete(container, key):
        del container[key]

    def put(container, key):
        container[key] = 1

    containers = (len, delete, Point(), 3, (1,), "a", None, {1}, range(3), {}.keys(), Point, Point().__init__, iter(()))
    return [message(change, c, key) for c in containers for key in (0, "a", 10**30) for change in (delete, put)]


def test_an_index_that_no_size_holds():
    def first(items, index):
        return items[index]

    assert message(first, [1], 10**20) == ("IndexError", "cannot fit 'int' into an index-sized integer")
    return [message(first, items, i) for items in ([1], (1,), "a", range(3)) for i in (2**63, 2**63 - 1, -(2**63) - 1)]


def test_sorting_with_a_flag_that_is_no_int_of_c():
    return [message(sorted, [2, 1], reverse=flag) for flag in (10**20, -(2**31) - 1, 2**31, 2**31 - 1, -5, 2.0, None)]


def test_the_group_around_a_single_exception():
    seen = []
    try:
        try:
            raise KeyError(1)
        except* KeyError as group:
            seen += [group.args, len(lines(group))]
            raise ValueError("other")
    except ValueError as e:
        seen += [e.args, e.__context__.args, len(lines(e.__context__))]
    return [repr(item) for item in seen]


def test_groups_of_what_is_no_exception_are_base_groups():
    try:
        try:
            raise BaseExceptionGroup("both", [KeyError(1), ValueError(2)])
        except* KeyError:
            raise GeneratorExit
        except* ValueError:
            raise TypeError
    except BaseExceptionGroup as group:
        return type(group).__name__, [type(e).__name__ for e in group.exceptions]


class Swallowing:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        return kind is TypeError and error.args == (len("text"),)


def test_what_leaves_a_with_statement_after_a_break():
    with Swallowing() as first, Swallowing():
        raise TypeError(len("text"))
    return type(first).__name__
