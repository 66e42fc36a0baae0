"""Programs that `make fuzz` has found to do something else when traced, made small."""

import functools
import sys
import traceback
import weakref

from apptests.marks import expected_break
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


class Items(list):
    pass


class Mapping(dict):
    pass


class Made(tuple):
    def __new__(cls, *items):
        return super().__new__(cls, items)


class Sequence:
    def __getitem__(self, index):
        return [1, 2][index]


class NotIterable:
    __iter__ = None


def test_object_new_of_what_other_types_lay_out():
    return [message(object.__new__, cls) for cls in (list, Items, dict, Mapping, Made, type("Inner", (Made,), {}), int)]


def test_unpacking_what_is_not_iterable():
    def starred(value):
        first, *rest = value
        return first

    def exact(value):
        first, second = value
        return first

    return [message(unpack, v) for v in (1, None, Point(), NotIterable(), Sequence()) for unpack in (starred, exact)]


def test_unbound_variables_shared_with_inner_functions():
    def read():
        for shared in ():
            pass
        return [lambda: shared, shared]

    def delete():
        del shared  # noqa: F821
        return lambda: shared  # noqa: F821

    def inner():
        (lambda: free)()
        free = 1

    return [message(read), message(delete), message(inner)]


def test_cells_of_functions_after_a_break():
    def sort(items, scale):
        items.sort(key=lambda item: item * scale)
        return items

    return sort([1, 3, 2], -1), sort([1, 3, 2], 1)


def test_keywords_given_twice():
    def take(**named):
        return named

    seen = [message(lambda: take(a=1, **{"a": 2})), message(lambda: dict(a=1, **{"a": 2}))]
    try:
        raise ValueError
    except ValueError:
        seen += [message(lambda: take(a=1, **{"a": 2})), message(lambda: take(**{"a": 1}, **{"a": 2}))]
    return seen


def test_lines_after_what_stands_far_to_the_right():
    def f(a):
        # fmt: off
        if len(a) == 2 and len(a + a) == 4 and len(a + a + a) == 6 and len(a + a + a + a) == 8 and len(a + a + a + a + a) == len("0123456789"):  # noqa: E501
            a = len(a)
        b = a
        return b.missing
        # fmt: on

    try:
        f([1, 2])
    except AttributeError as e:
        assert lines(e)[-1] == ("f", 5), lines(e)


class Slotted:
    __slots__ = ("first", "second")


def test_slots_that_hold_nothing():
    def delete(held):
        del held.first

    def read(held):
        return held.second

    def other(held):
        del held.third

    return [message(use, Slotted()) for use in (delete, read, other)]


class Oops(ValueError):
    pass


def test_context_of_what_is_thrown_into_a_generator():
    def throwing():
        counting(1).throw(Oops)

    def raising():
        raise Oops

    def contexts():
        seen = []
        for function in (throwing, raising):
            try:
                try:
                    raise KeyError("inner")
                finally:
                    function()
            except Oops as e:
                seen.append(repr(e.__context__))
            try:
                function()
            except Oops as e:
                seen.append(repr(e.__context__))
        return seen

    try:
        raise KeyError("outer")
    except KeyError:
        return contexts()


@expected_break("the letters of an address are not known while tracing")
def test_letters_of_an_object():
    text = f"{Point()}"
    return [type(letter).__name__ for letter in text][:3], max(text), message(dict, text)


def test_context_of_a_key_error():
    def delete(key):
        del {}[key]

    try:
        try:
            raise ValueError
        except ValueError:
            delete(Point)
    except KeyError as e:
        return repr(e.__context__), e.args == (Point,), lines(e)[1:]


def test_lines_of_what_is_raised_again():
    def again(a):
        try:
            return a.missing
        except AttributeError:
            a = len("text")
            raise

    try:
        again(1)
    except AttributeError as e:
        assert lines(e)[1:] == [("again", 2)], lines(e)


def test_group_that_nobody_catches():
    def unmatched():
        try:
            raise ExceptionGroup("group", [ValueError(1)])
        except* TypeError:
            pass

    try:
        unmatched()
    except BaseException as e:
        assert e.__suppress_context__
        assert e.__context__ is None
        assert e.exceptions[0].__context__ is None
    matched, rest = ExceptionGroup("group", [ValueError(1)]).split(TypeError)
    assert matched is None
    assert rest.__suppress_context__


def test_group_caught_in_part():
    def partly():
        try:
            raise ExceptionGroup("group", [TypeError(2), ValueError(1)])
        except* TypeError:
            pass

    try:
        partly()
    except BaseException as e:
        assert repr(e) == "ExceptionGroup('group', [ValueError(1)])"
        assert e.__context__ is None


class Number(complex):
    pass


def test_second_part_of_a_complex_number():
    assert complex(0, Number(4.25 + 1j)) == complex(-1, 4.25)
    assert type(complex(0, Number(1j))) is complex


if sys.version_info >= (3, 14):
    expected_break("call of <class 'complex'>, which warns")(test_second_part_of_a_complex_number)


def test_names_of_unbound_variables():
    def local():
        return a  # noqa: F821
        a = 1

    def free():
        def inner():
            return b  # noqa: F821

        inner()
        b = 1

    found = []
    for function in (local, free):
        try:
            function()
        except NameError as e:
            found.append((type(e).__name__, e.name))
    assert found == [("UnboundLocalError", None), ("NameError", "b")]


def test_group_that_a_later_clause_catches():
    try:
        raise ExceptionGroup("group", [KeyError(1)])
    except* StopIteration:
        pass
    except* KeyError as group:
        found = group.__suppress_context__
    return found


@functools.lru_cache
def named(*references):
    return [reference().__name__ for reference in references][0]


def test_caches_asked_about_new_classes():
    class New:
        pass

    reference = weakref.ref(New)
    assert [named(reference, weakref.ref(dict)), named(weakref.ref(New), weakref.ref(dict))] == ["New", "New"]
    assert named(weakref.ref(dict)) == "dict"


def test_properties_without_room_for_their_documentation():
    class Slotted(property):
        __slots__ = ("more",)

    def documented():
        """Some words."""

    try:
        made = Slotted(doc="words"), Slotted()
        found = [getattr(item, "__doc__", None) for item in made]
    except AttributeError as e:
        found = str(e)
    try:
        Slotted(documented)
    except AttributeError as e:
        return found, str(e)
    return found


def test_raised_again_by_name_after_a_break():
    try:
        try:
            traceback.send  # noqa: B018
        except AttributeError as e:
            list(Point.__dict__.values()).insert(0, 1)
            raise e
    except AttributeError as e:
        assert e.__context__ is None


def test_the_traceback_of_the_group_that_except_star_makes():
    error = None
    try:
        try:
            raise KeyError(1)
        except* IndexError:
            pass
        except* Exception:
            reversed([1, 1, 1]).send  # noqa: B018
    except ExceptionGroup as e:
        error = e.exceptions[0].__context__
    except AttributeError as e:
        error = e.__context__
    assert type(error) is ExceptionGroup
    return error.__traceback__ is None, lines(error.exceptions[0])


def test_half_of_a_slot():
    class Sets:
        def __setitem__(self, key, value):
            pass

        def __set__(self, instance, value):
            pass

    class Deletes:
        def __delitem__(self, key):
            pass

        def __delete__(self, instance):
            pass

    class Owner:
        sets, deletes = Sets(), Deletes()

    def set_item(obj):
        obj[1] = 2

    def delete_item(obj):
        del obj[1]

    def set_attribute(name):
        setattr(Owner(), name, 1)

    found = []
    for function, argument in (
        (set_item, Deletes()),
        (delete_item, Sets()),
        (set_attribute, "deletes"),
        (lambda name: delattr(Owner(), name), "sets"),
        (set_item, Sets()),
        (delete_item, Deletes()),
    ):
        try:
            found.append(function(argument))
        except AttributeError as e:
            found.append((e.args, e.name, e.obj))
    names = ["__setitem__", "__delitem__", "__set__", "__delete__"]
    assert found == [*(((name,), None, None) for name in names), None, None], found


class Joined(list):
    def __radd__(self, left):
        return "radd", left

    def __rmul__(self, left):
        return "rmul", left


class Adds(list):
    def __add__(self, right):
        return "add", right


def test_sequences_are_joined_after_the_slots_of_numbers():
    found = []
    for left in (Adds([1]), "x", [1], (1,), b"x"):
        right = Joined()
        found += [(left + right)[0], (left * right)[0]]
        for _ in range(2):
            added, times = left, left
            added += right
            times *= right
        found += [added[0], times[0]]
    names = ["radd", "rmul", "radd", "rmul"]
    assert found == ["add", "rmul", 1, "rmul"] + names * 4, found


def test_a_reflected_method_is_asked_once():
    asked = []

    class Declines(tuple):
        def __radd__(self, left):
            asked.append(left)
            return NotImplemented

    pair = (1,)
    pair += Declines((2,))
    items = [1]
    items += Declines((2,))
    assert (pair, items, len(asked)) == ((1, 2), [1, 2], 2), (pair, items, asked)
