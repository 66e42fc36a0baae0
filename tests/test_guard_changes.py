"""Whatever a trace has read may change between two calls: each change is noticed."""

import collections
import operator
import sys
import types

import pytest

import stator

LEVEL = 1
TABLE = {"k": 1}
NAMES = ["a"]


def helper(x):
    return x + 10


class Config:
    scale = 2

    def __init__(self):
        self.offset = 1

    def apply(self, x):
        return x * self.scale + self.offset


def reads_global(x):
    return x + LEVEL


def reads_containers(x):
    return x + TABLE["k"] + len(NAMES), TABLE.get("absent"), "b" in NAMES


def calls_helper(x):
    return helper(x)


def with_default(x, extra=[1]):  # noqa: B006
    return x + len(extra)


def set_global(name, value):
    setattr(sys.modules[__name__], name, value)


def make_closure():
    cell = 1

    def read(x):
        return x + cell

    def write(value):
        nonlocal cell
        cell = value

    return read, write


CHANGES = {
    "global": (reads_global, lambda: set_global("LEVEL", 5)),
    "dict item": (reads_containers, lambda: TABLE.update(k=7)),
    "absent key": (reads_containers, lambda: TABLE.update(absent=3)),
    "list": (reads_containers, lambda: NAMES.append("b")),
    "global function": (calls_helper, lambda: set_global("helper", lambda x: x - 1)),
    "function code": (calls_helper, lambda: setattr(helper, "__code__", (lambda x: x * 3).__code__)),
    "default": (with_default, lambda: with_default.__defaults__[0].append(2)),
    "default replaced": (with_default, lambda: setattr(with_default, "__defaults__", ([1, 2, 3],))),
}


@pytest.fixture(autouse=True)
def restore():
    module = sys.modules[__name__]
    saved = (LEVEL, dict(TABLE), list(NAMES), helper, helper.__code__)
    yield
    module.LEVEL, table, names, module.helper, code = saved
    module.helper.__code__ = code
    TABLE.clear()
    TABLE.update(table)
    NAMES[:] = names
    with_default.__defaults__ = ([1],)


@pytest.mark.parametrize("change", CHANGES)
def test_change_is_noticed(change):
    fn, make_change = CHANGES[change]
    wrapped = stator.compile(fn, backend="eager", fullgraph=True)
    assert wrapped(1) == fn(1)
    make_change()
    assert wrapped(1) == fn(1)
    assert stator.stats().frames == 2


def test_closure_cell():
    read, write = make_closure()
    wrapped = stator.compile(read, backend="eager", fullgraph=True)
    assert wrapped(1) == 2
    write(9)
    assert wrapped(1) == 10


@pytest.mark.parametrize(
    "change",
    [
        lambda config: setattr(config, "offset", 5),
        lambda config: setattr(config, "scale", 7),  # now shadows the class attribute
        lambda config: setattr(Config, "scale", 4),
        lambda config: setattr(Config, "apply", lambda self, x: -x),
        lambda config: setattr(config, "apply", lambda x: x + 100),
        lambda config: setattr(config, "__class__", type("Other", (Config,), {"scale": 11})),
        lambda config: config.__dict__.update(offset=8),
    ],
)
def test_attribute_changes(change, monkeypatch):
    monkeypatch.setattr(Config, "scale", 2)
    monkeypatch.setattr(Config, "apply", Config.apply)
    config = Config()

    def program(x):
        return config.apply(x)

    wrapped = stator.compile(program, backend="eager", fullgraph=True)
    assert wrapped(3) == program(3)
    change(config)
    assert wrapped(3) == program(3)


def test_attribute_that_appears():
    holder = types.SimpleNamespace(a=1)

    def program():
        return getattr(holder, "b", "absent"), hasattr(holder, "c")

    wrapped = stator.compile(program, backend="eager", fullgraph=True)
    assert wrapped() == ("absent", False)
    holder.b = 2
    assert wrapped() == (2, False)
    holder.c = None
    assert wrapped() == (2, True)


def test_one_object_under_two_names():
    def program(a, b):
        a.append(1)
        return len(a), len(b)

    wrapped = stator.compile(program, backend="eager", fullgraph=True)
    assert wrapped([], []) == (1, 0)
    shared: list[int] = []
    assert wrapped(shared, shared) == (1, 1)
    assert wrapped([], []) == (1, 0)


@pytest.mark.parametrize("make", [list, tuple, collections.deque])
@pytest.mark.parametrize(
    "take", [lambda items: items[0], operator.itemgetter(0), lambda items: (items[-1], items[1])[0]]
)
def test_an_item_that_nobody_looks_at_must_be_there(make, take):
    def first(items):
        take(items)

    compiled = stator.compile(first, backend="eager", fullgraph=True)
    assert compiled(make([1, 2])) is None
    with pytest.raises(IndexError):
        compiled(make([]))
