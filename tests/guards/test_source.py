"""Sources: interned paths, and what each loads."""

from __future__ import annotations

import copy
import functools
import gc
import math
import pickle
import types
import weakref
from collections import OrderedDict, defaultdict

import pytest

from stator.guards import intern
from stator.guards.naming import PLAIN
from stator.guards.source import (
    AttrSource,
    CallSource,
    CellContentsSource,
    CellSource,
    ConstSource,
    DictItemSource,
    DictKeySource,
    FunctionSource,
    GetAttrSource,
    GlobalSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    OffsetSource,
    SizeSource,
    StrideSource,
    TypeAttrSource,
    TypeSource,
    WeakrefSource,
)

X = LocalSource(0, "x")
ONE_OF_EACH = [
    X,
    FunctionSource(),
    CellSource(0, "c"),
    GlobalSource(globals(), "X", "mod"),
    ConstSource(math, "math"),
    AttrSource(X, "a"),
    GetAttrSource(X, "a"),
    InstanceDictSource(X),
    TypeSource(X),
    TypeAttrSource(TypeSource(X), "a"),
    ItemSource(X, 2),
    DictItemSource(X, "k"),
    DictKeySource(X, 1),
    CellContentsSource(X),
    SizeSource(X, 1),
    StrideSource(X, 1),
    OffsetSource(X, 0),
    WeakrefSource(X),
    CallSource(len, X, "len"),
    CallSource(pow, X, "{} ** {1}", ItemSource(X, 0)),
]


class Plain:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


@pytest.mark.parametrize("source", ONE_OF_EACH, ids=lambda s: type(s).__name__)
def test_sources_are_interned_and_copies_are_the_same(source):
    assert type(source)(*source.fields()) is source
    kind, fields = source.__reduce__()
    assert kind(*fields) is source
    assert copy.deepcopy(source) is source


def test_pickling_gives_the_interned_source():
    source = ItemSource(AttrSource(X, "layers"), 3)
    assert pickle.loads(pickle.dumps(source)) is source


def test_readable():
    assert ItemSource(AttrSource(LocalSource(0, "self"), "layers"), 3).expr() == "self.layers[3]"
    assert GlobalSource(globals(), "X").expr() == "X"
    assert GlobalSource(globals(), "X", "a.b").expr() == "a.b.X"
    assert DictItemSource(X, "k").expr() == "x['k']"
    assert len({source.expr() for source in ONE_OF_EACH}) == len(ONE_OF_EACH)


def test_interning_tells_equal_keys_of_different_types_apart():
    assert DictItemSource(X, 1) is not DictItemSource(X, True)
    assert DictItemSource(X, 1) is DictItemSource(X, 1)


def test_unused_sources_go_away():
    gc.collect()  # what tests before this one have left
    before = len(intern._interned)
    sources = [ItemSource(AttrSource(X, f"gone{i}"), i) for i in range(100)]
    assert len(intern._interned) == before + 200
    del sources
    gc.collect()
    assert len(intern._interned) == before


def test_a_source_keeps_what_it_embeds_alive():
    class Thing:
        pass

    thing = Thing()
    alive = weakref.ref(thing)
    source = ConstSource(thing, "thing")
    del thing
    assert alive() is not None
    del source
    assert alive() is None


def test_negative_indices_are_refused():
    with pytest.raises(ValueError, match="front"):
        ItemSource(X, -1)


def make_closure(c):
    def closed(x):
        return c

    return closed


def empty_closure():
    def closed():
        return later

    if not closed:
        later = 1
    return closed


def test_locals_function_cells(load):
    closed = make_closure("inside")
    assert load(LocalSource(1, "y"), ("a", "b")) == "b"
    assert load(LocalSource(2, "z"), ("a", "b")) is LookupError
    assert load(FunctionSource(), (), closed) is closed
    assert load(CellSource(0, "c"), (), closed) == "inside"
    assert load(CellSource(1, "d"), (), closed) is LookupError
    assert load(CellSource(0, "c"), (), len) is LookupError
    assert load(CellSource(0, "later"), (), empty_closure()) is LookupError


def test_globals_follow_the_dict(load):
    scope = {"here": 1}
    assert load(GlobalSource(scope, "here"), ()) == 1
    scope["here"] = 2
    assert load(GlobalSource(scope, "here"), ()) == 2
    assert load(GlobalSource(scope, "gone"), ()) is LookupError


class WithProperty:
    shadowed = "class"

    def __init__(self):
        self.__dict__["own"] = "instance"

    @property
    def computed(self):
        return "computed"

    def __getattribute__(self, name):
        if name == "own":
            return "intercepted"
        return super().__getattribute__(name)


def test_own_attributes_ignore_the_type(load):
    obj = WithProperty()
    assert load(AttrSource(X, "own"), (obj,)) == "instance"
    assert load(AttrSource(X, "shadowed"), (obj,)) is LookupError
    assert load(AttrSource(X, "computed"), (obj,)) is LookupError
    assert load(GetAttrSource(X, "own"), (obj,)) == "intercepted"
    assert load(GetAttrSource(X, "computed"), (obj,)) == "computed"
    assert load(GetAttrSource(X, "gone"), (obj,)) is LookupError


class LyingDict:
    @property
    def __dict__(self):
        return {"lie": 1}


class LyingChild(Plain):
    @property
    def __dict__(self):
        return {"lie": 1}


class Slotted:
    __slots__ = ("a",)


def test_the_real_instance_dict(load):
    liar = LyingChild()
    object.__setattr__(liar, "truth", 2)
    assert load(AttrSource(X, "truth"), (liar,)) == 2
    assert load(AttrSource(X, "lie"), (liar,)) is LookupError
    assert load(AttrSource(X, "lie"), (LyingDict(),)) is LookupError
    assert load(AttrSource(X, "a"), (Slotted(),)) is LookupError
    assert load(AttrSource(X, "a"), (5,)) is LookupError
    plain = Plain(a=1)
    assert load(InstanceDictSource(X), (plain,)) is plain.__dict__
    assert load(InstanceDictSource(X), (5,)) is LookupError


@pytest.mark.parametrize("make", [lambda: math, lambda: make_closure(1), lambda: functools.partial(len), ValueError])
def test_instance_dicts_of_many_kinds(load, make):
    obj = make()
    assert load(InstanceDictSource(X), (obj,)) is obj.__dict__
    obj.noted = "noted"
    try:
        assert load(AttrSource(X, "noted"), (obj,)) == "noted"
    finally:
        del obj.noted


def test_own_attributes_of_a_class(load):
    assert load(AttrSource(X, "shadowed"), (WithProperty,)) == "class"
    assert load(AttrSource(X, "append"), (list,)) is list.__dict__["append"]
    assert load(AttrSource(X, "shadowed"), (type("Child", (WithProperty,), {}),)) is LookupError
    assert load(InstanceDictSource(X), (WithProperty,)) is LookupError


def test_types(load):
    class Child(WithProperty):
        pass

    assert load(TypeSource(X), (Child(),)) is Child
    assert load(TypeAttrSource(X, "computed"), (Child,)) is WithProperty.__dict__["computed"]
    assert load(TypeAttrSource(X, "gone"), (Child,)) is LookupError
    assert load(TypeAttrSource(X, "computed"), (Child(),)) is LookupError


class OddList(list):
    def __getitem__(self, index):
        raise AssertionError

    def __len__(self):
        return 0


class OddDict(dict):
    def __getitem__(self, key):
        raise AssertionError

    def __missing__(self, key):
        return "made up"

    def __iter__(self):
        return iter(["made up"])


def test_items(load):
    for sequence in ([1, 2], (1, 2), OddList([1, 2])):
        assert load(ItemSource(X, 1), (sequence,)) == 2
        assert load(ItemSource(X, 2), (sequence,)) is LookupError
    assert load(ItemSource(X, 0), ("ab",)) is LookupError
    assert load(ItemSource(X, 0), ({0: 1},)) is LookupError


def test_dict_items(load):
    for mapping in ({"k": 1}, OddDict(k=1), OrderedDict(k=1), defaultdict(int, k=1)):
        assert load(DictItemSource(X, "k"), (mapping,)) == 1
        assert load(DictItemSource(X, "gone"), (mapping,)) is LookupError
        assert "gone" not in dict(mapping.items())
    assert load(DictItemSource(X, (1, "a")), ({(1, "a"): 5},)) == 5
    assert load(DictItemSource(X, 0), ([1],)) is LookupError
    assert load(DictItemSource(X, "k"), (types.MappingProxyType({"k": 1}),)) is LookupError


class Unfriendly:
    def __hash__(self):
        return hash("k")

    def __eq__(self, other):
        raise ValueError("no comparison")


def test_a_key_that_raises_when_compared(load):
    assert load(DictItemSource(X, "k"), ({Unfriendly(): 1},)) is LookupError


def test_dict_keys_in_order(load):
    ordered = OrderedDict(a=1, b=2)
    ordered.move_to_end("a")
    assert load(DictKeySource(X, 0), (ordered,)) == "b"
    assert load(DictKeySource(X, 1), ({"a": 1, "b": 2},)) == "b"
    assert load(DictKeySource(X, 0), (OddDict(a=1),)) == "a"
    assert load(DictKeySource(X, 2), ({"a": 1, "b": 2},)) is LookupError
    assert load(DictKeySource(X, 0), (["a"],)) is LookupError


def test_cells_and_weak_references(load):
    cell = types.CellType(5)
    assert load(CellContentsSource(X), (cell,)) == 5
    assert load(CellContentsSource(X), (types.CellType(),)) is LookupError
    assert load(CellContentsSource(X), (5,)) is LookupError
    thing = Plain()
    reference = weakref.ref(thing)
    assert load(WeakrefSource(X), (reference,)) is thing
    assert load(WeakrefSource(X), (thing,)) is LookupError
    del thing
    assert load(WeakrefSource(X), (reference,)) is LookupError


def test_calls(load):
    assert load(CallSource(len, X, "len"), ([1, 2],)) == 2
    assert load(CallSource(len, X, "len"), (5,)) is LookupError


def test_a_function_of_several_sources(load):
    n = LocalSource(1, "n")
    item = CallSource(list.__getitem__, X, "{}[{1} % {2}]", n, AttrSource(n, "base"))
    assert item.expr() == "x[n % n.base]"
    found = CallSource(list.__getitem__, X, "{}[{1}]", n)
    assert load(found, ([1, 2], 1)) == 2
    assert load(found, ([1, 2], 2)) is LookupError
    assert load(found, ([1, 2], "a")) is LookupError
    assert load(CallSource(max, n, "max", X, n), (3, 2)) == 3


def test_interrupts_are_not_swallowed():
    from stator.guards.program import compile_guards

    def interrupt(x):
        raise KeyboardInterrupt

    program = compile_guards([], [CallSource(interrupt, X, "interrupt")])
    with pytest.raises(KeyboardInterrupt):
        program.run(None, (1,))
    with pytest.raises(KeyboardInterrupt):
        program.reference.run(None, (1,))


def test_a_call_that_frees_what_was_loaded():
    """Registers own their objects, so a helper that empties the containers on the way does no harm."""
    from stator.guards.program import compile_guards

    def empty(obj):
        obj.items.clear()
        obj.__dict__.clear()
        gc.collect()
        return 1

    item = ItemSource(AttrSource(X, "items"), 0)
    program = compile_guards([], [item, CallSource(empty, X, "empty"), AttrSource(item, "name")])
    assert program.run(None, (Plain(items=[Plain(name="kept")]),))[2] == "kept"


def test_the_items_of_a_comprehension_are_called_the_loop() -> None:
    """`.0`, as CPython calls the parameter, is no name that anybody has written."""
    assert PLAIN.of(LocalSource(0, ".0")) == "the loop"
