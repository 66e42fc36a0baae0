"""Slots of builtin types that programs seldom ask for by themselves."""

import collections
import copy
import functools
import operator
import sys
import time
import types
import weakref


class Plain:
    def one(self):
        return 1

    def two(self):
        return 2


PLAIN, OTHER = Plain(), Plain()
METHOD, APPEND, WRAPPER = PLAIN.one, [].append, (5).__add__
CELL = types.CellType(3)


def outcome(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)


# -- functions --------------------------------------------------------------------------------------------------------


def plain(a, b=2, *, c=3):
    return a, b, c


def closing():
    x = 1
    return lambda: x


CLOSURE = closing()


def reads_x():
    return x, len("ab")  # noqa: F821


def counts(n):
    yield from range(n)


def test_functions_are_made():
    make, code = types.FunctionType, plain.__code__
    assert make(code, globals())(1, 2, c=3) == (1, 2, 3)
    assert make(code, globals(), "name", (7, 8))(c=4) == (7, 8, 4)
    assert make(code, globals(), argdefs=(7,), name="name")(1, c=4) == (1, 7, 4)
    assert make(CLOSURE.__code__, globals(), "name", None, (CELL,))() == 3
    assert make(CLOSURE.__code__, globals(), None, None, CLOSURE.__closure__)() == 1
    assert make(CLOSURE.__code__, {}, None, None, (types.CellType(8),))() == 8
    assert make(reads_x.__code__, {"x": 9})() == (9, 2)
    assert list(make(counts.__code__, {})(3)) == [0, 1, 2]
    if sys.version_info >= (3, 13):
        assert make(code, {}, kwdefaults={"c": 10})(1, 2) == (1, 2, 10)


def test_functions_know_what_they_are_made_of():
    made = types.FunctionType(plain.__code__, globals(), "name")
    assert (made.__name__, made.__qualname__, made.__module__) == ("name", "plain", __name__)
    assert made.__code__ is plain.__code__ and made.__globals__ is globals()
    assert (made.__defaults__, made.__kwdefaults__, made.__closure__) == (None, None, None)
    namespace = {"x": 1, "__name__": "here"}
    made = types.FunctionType(reads_x.__code__, namespace)
    assert made.__module__ == "here" and made.__globals__ is namespace
    namespace["x"] = 2
    assert made() == (2, 2)
    assert types.FunctionType(reads_x.__code__, {}).__module__ is None


def test_functions_that_cannot_be_made():
    code, of = plain.__code__, CLOSURE.__code__
    told = [
        outcome(types.FunctionType, *args)
        for args in [
            (),
            (1,),
            (1, {}),
            (code, 1),
            (code, {}, 1),
            (code, {}, None, 1),
            (code, {}, None, None, 1),
            (code, {}, None, None, (CELL,)),
            (of, {}, None, None, None),
            (of, {}, None, None, [CELL]),
            (of, {}, None, None, (1,)),
            (of, {}, None, None, (CELL, CELL)),
            (code, {}, "a", (), (), 5, 6),
        ]
    ]
    assert all(kind in ("TypeError", "ValueError") for kind, text in told)
    return [*told, outcome(types.FunctionType, code, {}, bad=1), outcome(types.FunctionType.__new__, int, code, {})]


# -- hashes of methods ------------------------------------------------------------------------------------------------


def test_hashes_of_methods():
    assert hash(PLAIN.one) == hash(METHOD) == METHOD.__hash__() == types.MethodType.__hash__(PLAIN.one)
    assert hash(PLAIN.one) != hash(OTHER.one)
    assert hash(WRAPPER) == hash((5).__add__)
    assert hash(dict.fromkeys) == hash(dict.fromkeys) and hash(len) == len.__hash__()
    assert {PLAIN.one: 1, len: 2, APPEND: 3}[METHOD] == 1
    own, items = Plain(), [1]
    assert hash(own.one) == hash(own.one) and hash(items.append) == hash(items.append)
    return outcome(types.MethodType.__hash__, 3), hash(METHOD), hash(len), hash(APPEND), hash(WRAPPER)


def test_one_function_under_two_names():
    items = collections.deque([1])
    assert (items.copy == items.__copy__) is (sys.version_info < (3, 13))
    assert items.append != items.copy and items.append == items.append


# -- finalisers of generators -----------------------------------------------------------------------------------------


def logging(log):
    try:
        yield 1
    finally:
        log.append("closed")


class Once:
    def __await__(self):
        yield 1


async def waiting(log):
    try:
        await Once()
    finally:
        log.append("closed")


def test_finalisers_of_generators():
    log = []
    generator = logging(log)
    assert next(generator) == 1 and generator.__del__() is None
    assert log == ["closed"] and list(generator) == [] and generator.__del__() is None
    generator = logging(log)
    assert generator.__del__() is None and list(generator) == [] and log == ["closed"]
    coroutine = waiting(log)
    assert coroutine.send(None) == 1 and coroutine.__del__() is None and log == ["closed"] * 2


# -- exceptions taken apart -------------------------------------------------------------------------------------------

IMPORT, SYSTEM = ImportError("x", name="n", path=PLAIN), OSError(1, "a", "f", None, "g")


class OwnImport(ImportError):
    pass


OWN = OwnImport("q", name=None)
OWN.more = 1


def with_more(error):
    error.more = 1
    return error


def test_exceptions_taken_apart():
    assert IMPORT.__reduce__() == (ImportError, ("x",), {"name": "n", "path": PLAIN})
    assert SYSTEM.__reduce__()[:2] == (PermissionError, (1, "a", "f", None, "g"))
    assert OWN.__reduce__() == (OwnImport, ("q",), {"more": 1, "name": None})
    assert ImportError("a").__reduce__() == (ImportError, ("a",))
    assert with_more(ImportError("a")).__reduce__() == (ImportError, ("a",), {"more": 1})
    assert with_more(ImportError("a", path=2)).__reduce__() == (ImportError, ("a",), {"more": 1, "path": 2})
    assert OSError(1, "a", "f").__reduce__() == (PermissionError, (1, "a", "f"))
    assert with_more(OSError("a")).__reduce__() == (OSError, ("a",), {"more": 1})
    assert StopIteration(1).__reduce__() == (StopIteration, (1,))
    assert copy.copy(IMPORT).path is PLAIN and copy.copy(OSError(2, "b", "f")).filename == "f"
    return [
        AttributeError("a", name="x", obj=1).__reduce__(),
        SyntaxError("a", ("f", 1, 2, "t")).__reduce__(),
        UnicodeDecodeError("a", b"x", 1, 2, "r").__reduce__(),
        outcome(OSError.__reduce__, ValueError(1)),
    ]


# -- texts that show addresses ----------------------------------------------------------------------------------------


class Named:
    __name__ = "named"


NAMED = Named()
EMPTY, FULL = types.CellType(), types.CellType(PLAIN)
REFERENCES = [weakref.ref(each) for each in (PLAIN, NAMED, plain)]
DEAD = weakref.ref(Plain())


def test_texts_with_addresses():
    assert repr(EMPTY) == f"<cell at {id(EMPTY):#x}: empty>"
    assert repr(FULL) == f"<cell at {id(FULL):#x}: Plain object at {id(PLAIN):#x}>"
    shown = [repr(each) for each in REFERENCES]
    assert shown[0].startswith(f"<weakref at {id(REFERENCES[0]):#x}; to '")
    assert shown[0].endswith(f"Plain' at {id(PLAIN):#x}>")
    assert shown[1].endswith(f"Named' at {id(NAMED):#x} (named)>")
    assert shown[2].endswith(f"; to 'function' at {id(plain):#x} (plain)>")
    assert repr(DEAD) == f"<weakref at {id(DEAD):#x}; dead>"
    return shown, outcome(types.CellType.__repr__, 3), outcome(weakref.ref.__repr__, 3)


# -- slots asked for by name ------------------------------------------------------------------------------------------

SECOND = operator.itemgetter(1)


@functools.lru_cache
def cached(x):
    return x + 1


def difference(a, b):
    return a - b


def test_calls_asked_for_by_name():
    assert SECOND.__call__([1, 2]) == 2 == operator.itemgetter.__call__(SECOND, [1, 2])
    assert operator.attrgetter("real").__call__(3) == 3 and operator.methodcaller("upper").__call__("a") == "A"
    assert cached.__call__(3) == 4 and cached.__get__(4)() == 5 and cached.__get__(None, int) is cached
    assert functools.cmp_to_key(difference).__call__(3) < functools.cmp_to_key(difference)(4)
    assert [1].__len__.__call__() == 1 == len.__call__.__call__([1])
    assert WRAPPER.__lt__(WRAPPER) is NotImplemented
    return [
        outcome(SECOND.__call__),
        outcome(SECOND.__call__, 1, 2),
        outcome(operator.attrgetter.__call__, SECOND, [1]),
        outcome(types.MethodWrapperType.__call__, 3),
        outcome(cached.__get__, None),
        outcome(lambda: WRAPPER < WRAPPER),
    ]


def test_a_cached_result_that_is_also_a_key():
    assert (cached(5), cached(6), cached(5), cached(6)) == (6, 7, 6, 7)


# -- iterators --------------------------------------------------------------------------------------------------------

FORWARD, BACKWARD = type(iter(collections.deque())), type(reversed(collections.deque()))


def test_iterators_over_deques():
    items = collections.deque([1, 2, 3])
    assert [list(FORWARD(items, n)) for n in (-1, 0, 1, 5)] == [[1, 2, 3], [1, 2, 3], [2, 3], []]
    assert list(BACKWARD(items, 1)) == [2, 1] and list(FORWARD(items)) == [1, 2, 3]
    assert FORWARD(items, 1).__reduce__()[1][1] == 1
    return [outcome(FORWARD, *args) for args in [(), (1,), (items, "a"), (items, 1.0), (items, 1, 2)]]


def test_unpacked_aliases():
    iterator = iter(list[int])
    assert iterator.__reduce__() == (iter, (list[int],))
    assert repr(next(iterator)) == "*list[int]" and list(iterator) == [] and iterator.__reduce__() == (iter, ((),))
    return repr([*tuple[int, str]]), outcome(vars(types.GenericAlias)["__iter__"], 3)


def test_views_of_memory():
    view = memoryview(b"abcd")
    iterator = iter(view)
    assert (next(iterator), list(iterator), list(iterator)) == (97, [98, 99, 100], [])
    assert hash(view) == hash(b"abcd") and view.cast("b")[0] == 97
    assert view.cast("I").tolist() == memoryview(b"abcd").cast("I").tolist()
    square = view.cast("B", (2, 2))
    assert square.tolist() == [[97, 98], [99, 100]] and square.shape == (2, 2)
    assert [*reversed(view)] == [100, 99, 98, 97] and sum(memoryview(bytearray(b"ab"))) == 195
    return [
        outcome(iter, square),
        outcome(list, square),
        outcome(view.cast),
        outcome(view.cast, "Q"),
        outcome(view.__delitem__, 0),
        outcome(hash, memoryview(bytearray(b"a"))),
    ]


def test_names_of_a_traceback():
    try:
        PLAIN.three  # noqa: B018
    except AttributeError as error:
        assert dir(error.__traceback__) == ["tb_frame", "tb_lasti", "tb_lineno", "tb_next"]
        assert error.__traceback__.__dir__() == ["tb_frame", "tb_next", "tb_lasti", "tb_lineno"]
    return outcome(types.TracebackType.__dir__, 3)


# -- structure sequences ----------------------------------------------------------------------------------------------

HOOKS, EPOCH = sys.get_asyncgen_hooks(), time.gmtime(0)
HOOKS_TYPE = type(HOOKS)


def test_structure_sequences():
    assert repr(HOOKS).startswith("asyncgen_hooks(") and HOOKS.__reduce__() == (HOOKS_TYPE, (tuple(HOOKS), {}))
    assert time.struct_time(range(9)).tm_year == 0 and time.struct_time(range(9), {"tm_zone": "x"}).tm_zone == "x"
    assert HOOKS_TYPE((1, 2)).finalizer == 2 and repr(HOOKS_TYPE((1, 2))).endswith("(firstiter=1, finalizer=2)")
    assert repr(EPOCH).startswith("time.struct_time(tm_year=1970, ")
    return [
        *(outcome(HOOKS_TYPE, *args) for args in [(), ((1,),), (1,), ((1, 2, 3),), ((1, 2), {})]),
        outcome(HOOKS_TYPE.__repr__, (1, 2)),
        outcome(HOOKS_TYPE.__new__, int),
        EPOCH.__reduce__(),
        repr(sys.version_info),
    ]


def test_the_builtins_of_a_function_made_of_code():
    def length(s):
        return len(s)

    names = {}
    made = type(length)(length.__code__, names)
    return made.__builtins__ is length.__builtins__, made("abc"), names


# -- operators between objects of one class ---------------------------------------------------------------------------


class OnlyReflected:
    def __radd__(self, other):
        return "radd"

    __rmul__ = __rsub__ = __radd__


def test_reflected_methods_are_not_asked_within_a_class():
    one, two = OnlyReflected(), OnlyReflected()
    assert 1 + one == 1 * one == 1 - one == "radd"
    found = [outcome(operation, one, two) for operation in (operator.add, operator.mul, operator.sub)]
    return found, outcome(operator.add, one, one), outcome(operator.iadd, one, two)
