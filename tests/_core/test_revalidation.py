"""Revalidation: passing again without a walk is only ever quicker, whatever changed between two calls."""

from __future__ import annotations

import gc
import random
import sys
import threading
import types
import weakref
from collections import OrderedDict

import pytest

from stator import _core
from stator.guards.guard import (
    CodeIs,
    Distinct,
    Equals,
    GlobalState,
    HasKey,
    IdIs,
    KeysAre,
    Length,
    NoAttr,
    NoKey,
    Predicate,
    SameObject,
    TypeAttrIs,
    TypeIs,
)
from stator.guards.program import compile_guards
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
    TypeAttrSource,
    TypeSource,
    WeakrefSource,
)
from tests.guards.test_mutation import CHANGES, build

X, N = LocalSource(0, "x"), LocalSource(1, "n")


@pytest.fixture(autouse=True)
def revalidate_all():
    """Every program is revalidated, however small, and every decision re-checked by the reference."""
    minimum, strict = _core.set_revalidation_minimum(0), _core.set_strict(True)
    yield
    _core.set_revalidation_minimum(minimum)
    _core.set_strict(strict)


class Thing:
    attribute = "class"

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def method(self):
        return 1


def warm(program, args, func=None):
    """Runs the program until it is revalidated."""
    for _ in range(3):
        assert program.check(func, args), program.failure(func, args)
    steps, hits, _ = program.revalidation
    assert steps and hits, "no shortcut was made"


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_each_change_is_noticed(change):
    program, parts = build()
    warm(program, parts.args, parts.function)
    change(parts)
    assert not program.check(parts.function, parts.args)


def test_a_hit_gives_the_same_outputs():
    thing = Thing(layers=[Thing(weight=i) for i in range(5)])
    layers = AttrSource(X, "layers")
    weights = [AttrSource(ItemSource(layers, i), "weight") for i in range(5)]
    program = compile_guards([Length(layers, 5), TypeIs(N, int)], [weights, N, layers, ConstSource(thing, "thing")])
    args = (thing, 7)
    warm(program, args)
    hits = program.revalidation[1]
    for n in (8, 9):
        assert program.run(None, (thing, n)) == ((0, 1, 2, 3, 4), n, thing.layers, thing)
    assert program.revalidation[1] == hits + 2


DICT_CHANGES = {
    "set": lambda d: d.__setitem__("k", 2),
    "set back and forth": lambda d: (d.__setitem__("k", 5), d.__setitem__("k", 2)),
    "del": lambda d: d.__delitem__("k"),
    "pop": lambda d: d.pop("k"),
    "pop default": lambda d: d.pop("k", None),
    "popitem": lambda d: [d.popitem() for _ in range(len(d))],
    "clear": lambda d: d.clear(),
    "update dict": lambda d: d.update({"k": 2}),
    "update keywords": lambda d: d.update(k=2),
    "update pairs": lambda d: d.update([("k", 2)]),
    "or": lambda d: d.__ior__({"k": 2}),
    "delete and setdefault": lambda d: (d.pop("k"), d.setdefault("k", 2)),
    "init": lambda d: d.__init__(k=2),
    "through a class": lambda d: dict.__setitem__(d, "k", 2),
}


@pytest.mark.parametrize("change", DICT_CHANGES.values(), ids=DICT_CHANGES)
@pytest.mark.parametrize("kind", [dict, OrderedDict, type("Sub", (dict,), {})])
def test_every_way_to_change_a_dict(change, kind):
    holder = Thing(d=kind(first=0, k=1, last=3))
    program = compile_guards([Equals(DictItemSource(AttrSource(X, "d"), "k"), 1)])
    warm(program, (holder,))
    change(holder.d)
    assert not program.check(None, (holder,))
    holder.d["k"] = 1
    assert program.check(None, (holder,))


def replace_dict(o):
    o.__dict__ = {"k": 2}


ATTRIBUTE_CHANGES = {
    "setattr": lambda o: setattr(o, "k", 2),
    "delattr": lambda o: delattr(o, "k"),
    "object.__setattr__": lambda o: object.__setattr__(o, "k", 2),
    "through __dict__": lambda o: o.__dict__.update(k=2),
    "vars": lambda o: vars(o).pop("k"),
    "replaced __dict__": replace_dict,
    "cleared": lambda o: o.__dict__.clear(),
}


@pytest.mark.parametrize("change", ATTRIBUTE_CHANGES.values(), ids=ATTRIBUTE_CHANGES)
@pytest.mark.parametrize("extra", [0, 40])  # beyond 30 attributes 3.13 gives up inline values
def test_every_way_to_change_an_attribute(change, extra):
    obj = Thing(k=1, **{f"other{i}": i for i in range(extra)})
    program = compile_guards([Equals(AttrSource(X, "k"), 1), NoAttr(X, "absent")])
    warm(program, (obj,))
    change(obj)
    assert not program.check(None, (obj,))


def test_hot_attribute_stores_are_noticed():
    """The interpreter's specialised stores change dicts without the dict's own functions."""
    obj = Thing(k=1)

    def store(value):
        obj.k = value

    program = compile_guards([Equals(AttrSource(X, "k"), 1)])
    for _ in range(50):
        store(1)
    for _ in range(50):
        assert program.check(None, (obj,))
        store(2)
        assert not program.check(None, (obj,))
        store(1)


def test_an_attribute_that_appears():
    obj, bare = Thing(), Thing()
    program = compile_guards([NoAttr(X, "method"), TypeAttrIs(Thing, "method", Thing.method)])
    warm(program, (obj,))
    obj.method = 1
    assert not program.check(None, (obj,))
    assert program.check(None, (bare,))


def test_classes():
    class Base:
        flag = 1

    class Child(Base):
        pass

    class Other(Base):
        pass

    obj = Child()
    flag = TypeAttrSource(TypeSource(X), "flag")
    program = compile_guards([TypeIs(X, Child), Equals(flag, 1), Equals(AttrSource(ConstSource(Base, "B"), "flag"), 1)])
    for change, undo in [
        (lambda: setattr(Base, "flag", 2), lambda: setattr(Base, "flag", 1)),
        (lambda: setattr(Child, "flag", 2), lambda: delattr(Child, "flag")),
        (lambda: setattr(obj, "__class__", Other), lambda: setattr(obj, "__class__", Child)),
        (lambda: delattr(Base, "flag"), lambda: setattr(Base, "flag", 1)),
    ]:
        for _ in range(5):
            assert program.check(None, (obj,))
        change()
        assert not program.check(None, (obj,))
        undo()
        assert program.check(None, (obj,))


def test_lists_tuples_cells_globals_closures():
    def maker():
        captured = 1
        return lambda: captured

    scope = {"name": 5}
    cell = types.CellType(3)
    holder = Thing(items=[1, 2], pair=(1, [2]), cell=cell)
    function = maker()
    items, pair = AttrSource(X, "items"), AttrSource(X, "pair")
    program = compile_guards(
        [
            Equals(ItemSource(items, 1), 2),
            Length(items, 2),
            Equals(ItemSource(ItemSource(pair, 1), 0), 2),
            Equals(CellContentsSource(AttrSource(X, "cell")), 3),
            Equals(GlobalSource(scope, "name"), 5),
            Equals(CellSource(0, "captured"), 1),
            CodeIs(FunctionSource(), function.__code__),
        ]
    )
    contents = function.__closure__[0]
    for change, undo in [
        (lambda: items_of(holder).append(3), lambda: items_of(holder).pop()),
        (lambda: items_of(holder).__setitem__(1, 9), lambda: items_of(holder).__setitem__(1, 2)),
        (lambda: items_of(holder).clear(), lambda: items_of(holder).extend([1, 2])),
        (lambda: holder.pair[1].insert(0, 7), lambda: holder.pair[1].pop(0)),
        (lambda: setattr(holder, "pair", (1, [3])), lambda: setattr(holder, "pair", (1, [2]))),
        (lambda: setattr(cell, "cell_contents", 4), lambda: setattr(cell, "cell_contents", 3)),
        (lambda: scope.update(name=6), lambda: scope.update(name=5)),
        (lambda: setattr(contents, "cell_contents", 2), lambda: setattr(contents, "cell_contents", 1)),
    ]:
        for _ in range(20):
            assert program.check(function, (holder,))
        change()
        assert not program.check(function, (holder,))
        undo()
    assert program.check(function, (holder,))


class Slotted:
    __slots__ = ("held", "other")

    def __init__(self, held):
        self.held = held


def test_slots_and_what_functions_keep():
    def outer():
        captured = Thing()
        return lambda x=1, *, y=2: (captured, x, y)

    function, thing = outer(), Slotted([1])
    of = {name: GetAttrSource(N, name) for name in ("__defaults__", "__kwdefaults__", "__closure__")}
    contents = CellContentsSource(ItemSource(of["__closure__"], 0))
    guards = [
        Equals(ItemSource(GetAttrSource(X, "held"), 0), 1),
        Equals(ItemSource(of["__defaults__"], 0), 1),
        Equals(DictItemSource(of["__kwdefaults__"], "y"), 2),
        TypeIs(contents, Thing),
    ]
    program = compile_guards([*guards, CodeIs(N, function.__code__)], [[contents]])
    other = (lambda x=1, *, y=2: (function, x)).__code__
    args = (thing, function)
    for change, undo in [
        (lambda: setattr(thing, "held", [2]), lambda: setattr(thing, "held", [1])),
        (lambda: delattr(thing, "held"), lambda: setattr(thing, "held", [1])),
        (lambda: thing.held.insert(0, 3), lambda: thing.held.pop(0)),
        (lambda: setattr(function, "__defaults__", None), lambda: setattr(function, "__defaults__", (1,))),
        (lambda: setattr(function, "__defaults__", (7,)), lambda: setattr(function, "__defaults__", (1,))),
        (lambda: function.__kwdefaults__.update(y=3), lambda: function.__kwdefaults__.update(y=2)),
        (lambda: setattr(function, "__code__", other), lambda: setattr(function, "__code__", guards_code)),
        (lambda: setattr(Slotted, "held", property(lambda self: [4])), lambda: setattr(Slotted, "held", slot)),
    ]:
        slot, guards_code = vars(Slotted)["held"], function.__code__
        for _ in range(20):
            assert program.check(None, args)
        assert program.revalidation[0] > 10  # and nothing of it is run again
        change()
        assert not program.check(None, args)
        undo()
    warm(program, args)


def test_a_slot_that_always_changes_does_not_spoil_the_rest():
    thing = Slotted([Thing(n=i) for i in range(20)])
    held = GetAttrSource(X, "held")
    guards = [Equals(AttrSource(ItemSource(held, i), "n"), i) for i in range(20)]
    program = compile_guards(guards, [[GetAttrSource(X, "other")]])
    for i in range(100):
        thing.other = i
        assert program.run(None, (thing,)) == ((i,),)
    assert program.revalidation[1] > 80


def items_of(holder):
    return holder.items


def test_values_of_equal_address():
    """Numbers that take each other's place in memory."""
    holder = Thing(items=[10**6])
    program = compile_guards([Equals(ItemSource(AttrSource(X, "items"), 0), 10**6)])
    for i in range(200):
        holder.items[0] = int("1" + "0" * 6)
        assert program.check(None, (holder,))
        holder.items[0] = int("2" + "0" * 6)
        assert not program.check(None, (holder,)), i


def test_new_objects_in_old_places():
    """A model that is dropped and built again each time, often at the same addresses."""
    items = AttrSource(X, "items")
    guards = [Length(items, 3)]
    for i in range(3):
        guards += [TypeIs(ItemSource(items, i), Thing), Equals(AttrSource(ItemSource(items, i), "n"), i)]
    program = compile_guards(guards, [[ItemSource(items, i) for i in range(3)]])

    def make(numbers):
        return Thing(items=[Thing(n=n) for n in numbers])

    randomly = random.Random(5)
    for _ in range(300):
        numbers = [0, 1, 2] if randomly.random() < 0.7 else [randomly.randrange(3) for _ in range(3)]
        model = make(numbers)
        for _ in range(randomly.randrange(1, 4)):
            outcome = program.run(None, (model,))
            assert (outcome == (tuple(model.items),)) == (numbers == [0, 1, 2])
        del model, outcome


def test_nothing_is_kept_alive():
    class Local:
        pass

    def make():
        model = Local()
        model.child = Local()
        model.child.parent = model
        model.items = [Local()]
        return model

    model = make()
    child, item = AttrSource(X, "child"), ItemSource(AttrSource(X, "items"), 0)
    program = compile_guards([TypeIs(X, Local), TypeIs(child, Local), TypeIs(item, Local)], [[child, item], X])
    warm(program, (model,))
    old, gone = weakref.ref(model.child), weakref.ref(model.items[0])
    model.items.clear()
    assert gone() is None
    whole = weakref.ref(model)
    model.child.parent = None
    del model.child
    assert old() is None
    del model
    assert whole() is None
    assert program.check(None, (make(),))


def test_classes_go_with_the_program():
    class Local:
        pass

    local = Local()
    local.child = Local.instance = Local()
    child = AttrSource(X, "child")
    program = compile_guards([NoAttr(X, "a"), TypeIs(X, Local), TypeIs(child, Local)], [child])
    Local.program = program
    warm(program, (local,))
    alive = weakref.ref(Local)
    del Local, local, program
    gc.collect()
    assert alive() is None


def test_a_dict_that_always_changes_does_not_spoil_the_rest():
    model = Thing(steps=0, layers=[Thing(n=i) for i in range(20)])
    guards = [Equals(AttrSource(ItemSource(AttrSource(X, "layers"), i), "n"), i) for i in range(20)]
    program = compile_guards(guards, [[AttrSource(X, "steps")]])
    for step in range(100):
        model.steps = step
        assert program.run(None, (model,)) == ((step,),)
    assert program.revalidation[1] > 50


def test_globals_are_one_step():
    scope = {f"name{i}": Thing(n=i) for i in range(20)}
    guards = [TypeIs(GlobalSource(scope, name), Thing) for name in scope]
    program = compile_guards(guards, [[GlobalSource(scope, "name3")]])
    warm(program, ())
    assert program.revalidation[0] == 1 + len(scope)  # the version of the scope, and the type of each object
    for change in (
        lambda: scope.update(name7=7),
        lambda: scope.pop("name7"),
        lambda: scope.update(name7=Thing(n=7)),
    ):
        change()
        holds = isinstance(scope.get("name7"), Thing)
        assert program.check(None, ()) is holds
    warm(program, ())


@pytest.mark.parametrize("minimum", [0, 1000], ids=["revalidated", "walked"])
def test_what_a_global_has_been_compared_with(minimum):
    _core.set_revalidation_minimum(minimum)
    scope, other = {"n": 1, "m": 2}, {"n": 1}
    program = compile_guards([Equals(GlobalSource(scope, "n"), 1), Equals(GlobalSource(other, "n"), 1)], [N])
    for value in (1, 2, 1, True, 1.0, 1, "gone", 1):
        scope["n"] = value
        if value == "gone":
            del scope["n"]
        scope["m"] += 1  # another version, and what is looked at is the same
        for _ in range(5):
            assert program.check(None, (0, 0)) is (type(value) is int and value == 1)
    changing = [1]
    scope["n"] = changing
    program = compile_guards([Equals(GlobalSource(scope, "n"), [1])], [N])
    for _ in range(5):
        assert program.check(None, (0, 0))
    changing.append(2)
    assert not program.check(None, (0, 0))


def test_globals_that_always_change_do_not_spoil_the_rest():
    scope = {f"name{i}": Thing(n=i) for i in range(20)}
    program = compile_guards([TypeIs(GlobalSource(scope, name), Thing) for name in scope])
    for i in range(100):
        scope["i"] = i
        assert program.check(None, ())
    assert program.revalidation[1] > 80


def test_models_that_take_turns():
    first, second = (Thing(layers=[Thing(n=i) for i in range(20)]) for _ in range(2))
    layers = AttrSource(X, "layers")
    program = compile_guards([TypeIs(ItemSource(layers, i), Thing) for i in range(20)], [ItemSource(layers, 7)])
    for _ in range(50):
        assert program.run(None, (first,)) == (first.layers[7],)
        assert program.run(None, (second,)) == (second.layers[7],)
    for _ in range(500):
        assert program.run(None, (second,)) == (second.layers[7],)
    assert program.revalidation[1] > 100


def test_new_arguments_are_checked_against_what_is_kept():
    model = Thing(weight=Thing(), other=Thing())
    weight = AttrSource(X, "weight")
    apart = Predicate((N, weight), lambda n, w: n is not w, "n is not w")
    program = compile_guards([TypeIs(weight, Thing), Distinct(N, (weight,)), apart], [N])
    warm(program, (model, model.other))
    assert program.check(None, (model, Thing()))
    assert not program.check(None, (model, model.weight))
    same = compile_guards([TypeIs(weight, Thing), SameObject(N, weight), IdIs(weight, model.weight)], [N])
    warm(same, (model, model.weight))
    assert not same.check(None, (model, model.other))


def test_global_state_is_asked_each_time():
    state = [True]
    program = compile_guards([TypeIs(AttrSource(X, "a"), Thing), GlobalState(lambda: state[0], "the state")])
    thing = Thing(a=Thing())
    warm(program, (thing,))
    state[0] = False
    assert not program.check(None, (thing,))


def test_what_runs_code_is_run_each_time():
    thing = Thing(items=[1], reference=None, child=Thing(**{f"a{i}": i for i in range(10)}))
    thing.reference = weakref.ref(thing.items.__class__)
    calls = []
    program = compile_guards(
        [
            *[TypeIs(AttrSource(AttrSource(X, "child"), f"a{i}"), int) for i in range(10)],
            TypeIs(AttrSource(X, "items"), list),
            Equals(CallSource(len, AttrSource(X, "items"), "len"), 1),
            Equals(GetAttrSource(X, "attribute"), "class"),
            Predicate((AttrSource(X, "items"),), lambda items: calls.append(1) or True, "note"),
            IdIs(WeakrefSource(AttrSource(X, "reference")), list),
        ]
    )
    warm(program, (thing,))
    before = len(calls)
    assert program.check(None, (thing,))
    assert len(calls) > before
    thing.items.append(2)
    assert not program.check(None, (thing,))
    thing.items.pop()
    Thing.attribute = "changed"
    try:
        assert not program.check(None, (thing,))
    finally:
        Thing.attribute = "class"
    assert program.check(None, (thing,))


def test_keys_and_lengths():
    holder = Thing(d={"a": 1, "b": 2}, o=OrderedDict(a=1, b=2), s={1, 2})
    d, o, s = (AttrSource(X, name) for name in "dos")
    program = compile_guards(
        [
            KeysAre(d, ("a", "b")), HasKey(d, "a"), NoKey(d, "c"), Length(d, 2), Equals(DictKeySource(d, 1), "b"),
            KeysAre(o, ("a", "b")), Length(o, 2), Equals(DictKeySource(o, 0), "a"), Length(s, 2),
            IdIs(InstanceDictSource(X), holder.__dict__),
        ]
    )  # fmt: skip
    for change, undo in [
        (lambda: holder.d.update(c=1), lambda: holder.d.pop("c")),
        (lambda: holder.o.move_to_end("a"), lambda: holder.o.move_to_end("b")),
        (lambda: holder.s.add(3), lambda: holder.s.discard(3)),
        (lambda: holder.o.update(c=1), lambda: holder.o.pop("c")),
    ]:
        for _ in range(10):
            assert program.check(None, (holder,)), program.failure(None, (holder,))
        change()
        assert not program.check(None, (holder,))
        undo()


class Meddler:
    """Compares, and meanwhile empties what the guards are looking at."""

    def __init__(self, action):
        self.action = action

    def __eq__(self, other):
        self.action()
        return isinstance(other, Meddler)

    __hash__ = None


@pytest.mark.parametrize("which", ["early", "late"])
def test_guards_that_destroy_what_they_look_at(which):
    _core.set_strict(False)  # the reference would meddle too
    armed = []

    def meddle(*objects):
        if armed:
            model.layers.clear()
            model.__dict__["layers"] = None
            model.__dict__.clear()
            gc.collect()
        return True

    layers = AttrSource(X, "layers")
    layer = [ItemSource(layers, i) for i in range(10)]
    sources = (N,) if which == "early" else (N, layer[3])
    for _ in range(5):
        armed.clear()
        model = Thing(layers=[Thing(n=Thing(deep=i)) for i in range(10)])
        program = compile_guards(
            [TypeIs(AttrSource(AttrSource(s, "n"), "deep"), int) for s in layer]
            + [Predicate(sources, meddle, "meddle"), Distinct(N, tuple(layer))],
            [layer, N],
        )
        warm(program, (model, 1))
        kept = tuple(model.layers)
        armed.append(1)
        outcome = program.run(None, (model, 1))
        if which == "late":
            assert outcome == (kept, 1)
        else:
            assert isinstance(outcome, int)


def test_a_walk_during_which_things_change_leaves_no_wrong_shortcut():
    """A guard replaces what was loaded before it: the shortcut must not take the old object for the present one."""
    _core.set_strict(False)
    model = Thing(value=Thing(n=1))

    def replace(x):
        model.value = Thing(n=len(seen))
        seen.append(model.value)
        return True

    seen = [model.value]
    value = AttrSource(X, "value")
    program = compile_guards([TypeIs(value, Thing), NoAttr(value, "a"), Predicate((X,), replace, "replace")], [value])
    for _ in range(20):
        current = model.value
        (found,) = program.run(None, (model,))
        assert found in (current, model.value)
        del current, found
        seen[:] = [None] * len(seen)
        gc.collect()


def test_recursion_through_a_guard():
    _core.set_strict(False)
    depth = []

    def again(x):
        if len(depth) < 3:
            depth.append(1)
            assert program.check(None, (model,))
            depth.pop()
        return True

    model = Thing(a=Thing())
    program = compile_guards([TypeIs(AttrSource(X, "a"), Thing), NoAttr(X, "b"), Predicate((X,), again, "again")])
    for _ in range(10):
        assert program.check(None, (model,))


def test_threads_that_change_and_check():
    _core.set_strict(False)
    model = Thing(layers=[Thing(n=i) for i in range(30)], flag=True)
    layers = AttrSource(X, "layers")
    guards = [Equals(AttrSource(ItemSource(layers, i), "n"), i) for i in range(30)]
    guards.append(Predicate((layers,), lambda items: len([0 for _ in range(20)]) == 20, "slow"))
    program = compile_guards(guards, [[ItemSource(layers, i) for i in range(30)]])
    stop = threading.Event()
    wrong = []

    def change():
        while not stop.is_set():
            model.layers[7] = Thing(n=7)
            model.layers = [Thing(n=i) for i in range(30)]

    def look():
        for _ in range(400):
            outcome = program.run(None, (model,))
            if isinstance(outcome, tuple) and [layer.n for layer in outcome[0]] != list(range(30)):
                wrong.append(outcome)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        changer = threading.Thread(target=change)
        lookers = [threading.Thread(target=look) for _ in range(3)]
        for thread in (changer, *lookers):
            thread.start()
        for thread in lookers:
            thread.join()
    finally:
        stop.set()
        changer.join()
        sys.setswitchinterval(interval)
    assert not wrong


def random_tree(randomly, depth):
    """A tree of objects, and the sources and guards that look at all of it."""
    if depth == 0:
        return randomly.choice([1, "text", 2.5, None, (1, 2), True])
    kind = randomly.randrange(3)
    children = [random_tree(randomly, depth - 1) for _ in range(randomly.randrange(1, 4))]
    if kind == 0:
        return Thing(**{f"a{i}": child for i, child in enumerate(children)})
    return children if kind == 1 else {f"k{i}": child for i, child in enumerate(children)}


def guard_tree(value, source, guards):
    guards.append(TypeIs(source, type(value)))
    if isinstance(value, Thing):
        guards += [NoAttr(source, "absent"), TypeAttrIs(Thing, "method", Thing.method)]
        for name, child in vars(value).items():
            guard_tree(child, AttrSource(source, name), guards)
    elif isinstance(value, list):
        guards.append(Length(source, len(value)))
        for i, child in enumerate(value):
            guard_tree(child, ItemSource(source, i), guards)
    elif isinstance(value, dict):
        guards.append(KeysAre(source, tuple(value)))
        for key, child in value.items():
            guard_tree(child, DictItemSource(source, key), guards)
    else:
        guards.append(Equals(source, value))


def containers(value):
    if isinstance(value, (Thing, list, dict)):
        yield value
        held = vars(value) if isinstance(value, Thing) else value
        inner = held.values() if isinstance(held, dict) else held
        for child in list(inner):
            yield from containers(child)


def mutate(randomly, tree):
    """Changes one place of the tree; gives what puts it back."""
    place = randomly.choice(list(containers(tree)))
    table = vars(place) if isinstance(place, Thing) else place
    key = randomly.choice(list(range(len(table)) if isinstance(table, list) else table) or [None])
    if key is None or randomly.random() < 0.2:
        if isinstance(table, list):
            table.append(1)
            return table.pop
        table["absent"] = 1
        return lambda: table.pop("absent", None)
    old = table[key]
    table[key] = randomly.choice([1, "text", 2.5, None, [], {}, Thing(), random_tree(randomly, 1)])
    return lambda: table.__setitem__(key, old)


@pytest.mark.parametrize("seed", range(25))
def test_random_trees_under_random_changes(seed):
    """The strict mode raises where the shortcut and the reference differ."""
    randomly = random.Random(seed)
    tree = Thing(root=random_tree(randomly, 4))
    guards = []
    guard_tree(tree, X, guards)
    program = compile_guards(guards, [X])
    warm(program, (tree,))
    for _ in range(60):
        undo = [mutate(randomly, tree) for _ in range(randomly.randrange(3))]
        for _ in range(randomly.randrange(1, 4)):
            program.check(None, (tree,))
        for back in reversed(undo):
            back()
        for _ in range(randomly.randrange(1, 4)):
            assert program.check(None, (tree,))
