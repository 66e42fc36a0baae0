"""Slots of builtin types that programs seldom ask for by themselves."""

import collections
import copy
import sys
import types


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
