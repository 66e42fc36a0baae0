"""Texts that name a class: another name of the class is another text."""

import collections
import functools
import types

import pytest

import stator


def shown(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error), str(error)


#: bases of the class, and the program that shows its name
NAMING = {
    "attribute": ((), lambda o: o.absent),
    "attribute of the class": ((), lambda o: type(o).absent),
    "iteration": ((), lambda o: [*o]),
    "call": ((), lambda o: o()),
    "starred argument": ((), lambda o: max(*o)),
    "keywords": ((), lambda o: dict(**o)),
    "length": ((), lambda o: len(o)),
    "item": ((), lambda o: o[0]),
    "assigned item": ((), lambda o: o.__class__.__setitem__(o, 0, 1)),
    "operator": ((), lambda o: o + 1),
    "comparison": ((), lambda o: o < 1),
    "sign": ((), lambda o: -o),
    "index": ((), lambda o: [1][o]),
    "key": ((list,), lambda o: {o: 1}),
    "text": ((), lambda o: repr(o).partition(" at ")[0]),
    "text of the class": ((), lambda o: repr(type(o))),
    "text of a member": ((), lambda o: repr(type(o).slot)),
    "unset member": ((), lambda o: o.slot),
    "deque": ((collections.deque,), lambda o: repr(o)),
    "set": ((set,), lambda o: repr(o)),
    "defaultdict": ((collections.defaultdict,), lambda o: repr(o)),
    "ordered dict": ((collections.OrderedDict,), lambda o: repr(o)),
    "bytearray": ((bytearray,), lambda o: repr(o)),
    "exception": ((ValueError,), lambda o: repr(o)),
    "partial": ((functools.partial,), lambda o: repr(o)),
    "namespace": ((types.SimpleNamespace,), lambda o: repr(o)),
    "words of C code": ((), lambda o: int(o)),
    "method of another type": ((), lambda o: str.upper(o)),
    "super": ((), lambda o: repr(super(type(o), o))),
}


def make(bases):
    namespace = {"__module__": "somewhere"} if bases else {"__module__": "somewhere", "__slots__": ("slot",)}
    cls = type("First", bases, namespace)
    return cls(int) if bases and bases[0] is functools.partial else cls()


@pytest.mark.parametrize("how", NAMING)
def test_a_new_name_is_shown(how):
    bases, program = NAMING[how]
    compiled = stator.compile(program, backend="eager")
    obj = make(bases)
    assert shown(compiled, obj) == shown(program, obj)
    for attribute, value in (("__name__", "Second"), ("__qualname__", "Third"), ("__module__", "elsewhere")):
        setattr(type(obj), attribute, value)
        assert shown(compiled, obj) == shown(program, obj)
    told = str(shown(program, obj))
    assert "First" not in told and ("Second" in told or "Third" in told)


def test_words_that_nobody_reads_guard_no_name():
    def program(o):
        try:
            o.other  # noqa: B018
        except AttributeError:
            return hasattr(o, "absent"), getattr(o, "absent", None)

    obj = make(())
    compiled = stator.compile(program, backend="eager")
    assert compiled(obj) == (False, None)
    type(obj).__name__ = "Second"
    assert compiled(obj) == (False, None)
    assert stator.stats().frames == 1


def test_words_that_are_read_later_guard_the_name():
    def program(o):
        try:
            o.absent  # noqa: B018
        except AttributeError as error:
            return error

    obj = make(())
    compiled = stator.compile(program, backend="eager")
    assert str(compiled(obj)) == "'First' object has no attribute 'absent'"
    type(obj).__name__ = "Second"
    assert str(compiled(obj)) == "'Second' object has no attribute 'absent'"


@pytest.mark.parametrize(
    "make",
    [
        lambda: ValueError(1),
        lambda: OSError(2, "no file", "name"),
        lambda: StopIteration(3),
        lambda: ExceptionGroup("m", [KeyError(1)]),
        lambda: functools.partial(int),
    ],
)
def test_a_look_for_attributes_makes_no_dict(make):
    def program(o):
        return hasattr(o, "absent"), o.__reduce__()

    compiled = stator.compile(program, backend="eager")
    for change in (lambda o: None, lambda o: vars(o), lambda o: vars(o).update(tag=1), lambda o: None):
        plain, traced = make(), make()
        change(plain), change(traced)
        assert str(compiled(traced)) == str(program(plain))
        assert str(traced.__reduce__()) == str(plain.__reduce__())


@pytest.mark.parametrize("method", ["__eq__", "__hash__", "__len__", "__repr__", "__iter__"])
def test_a_method_that_a_tuple_is_given_later(method):
    cls = type("Later", (collections.namedtuple("Base", "a b"),), {})

    def program(o):
        return o == (1, 2), hash(o), len(o), f"{o}", [*o], o in [(1, 2)], str.format("{}", o), {o: 1}

    replies = {"__hash__": 5, "__len__": 3, "__repr__": "r", "__iter__": iter(()), "__eq__": False}
    compiled = stator.compile(program, backend="eager")
    obj = cls(1, 2)
    assert shown(compiled, obj) == shown(program, obj)
    setattr(cls, method, lambda *args: replies[method])
    assert shown(compiled, obj) == shown(program, obj)
    setattr(cls, method, functools.partial(lambda *args: replies[method]))
    assert shown(compiled, obj) == shown(program, obj)


def test_a_metaclass_is_not_asked_about_the_class_that_is_called():
    asked = []

    class Meta(type):
        def __getattr__(cls, name):
            asked.append(name)
            return name

    class Called(metaclass=Meta):
        pass

    assert type(stator.compile(lambda: Called(), backend="eager")()) is Called
    assert not asked
    assert not stator.stats().breaks
