"""Every way of changing what a program looked at is noticed, by the C++ program and by the reference alike."""

from __future__ import annotations

import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator.guards.guard import CodeIs, Equals, KeysAre, Length, NoAttr, TypeAttrIs, TypeIs
from stator.guards.program import compile_guards
from stator.guards.source import (
    AttrSource,
    CellSource,
    DictItemSource,
    FunctionSource,
    GlobalSource,
    ItemSource,
    LocalSource,
    TypeAttrSource,
    TypeSource,
)


def build():
    """A small model, the guards of a trace over it, and the changes each of which must be noticed."""

    class Layer:
        scale = 2

        def forward(self, x):
            return x

    def loss(x):
        return x

    scope = {"factor": 3, "helper": loss}
    cell = types.CellType(7)

    def maker():
        captured = None
        return lambda model, flag: captured

    template = maker()
    function = types.FunctionType(template.__code__, scope, "function", (5,), (cell,))
    model = Layer()
    model.layers = [Layer(), Layer()]
    model.options = {"dropout": 0.5, "names": ("a", "b")}
    for layer in model.layers:
        layer.weight = 1.5

    me, flag = LocalSource(0, "model"), LocalSource(1, "flag")
    layers, options = AttrSource(me, "layers"), AttrSource(me, "options")
    guards = [
        TypeIs(me, Layer),
        Equals(flag, True),
        NoAttr(me, "forward"),
        NoAttr(me, "scale"),
        TypeAttrIs(Layer, "scale", 2),
        CodeIs(TypeAttrSource(TypeSource(me), "forward"), Layer.forward.__code__),
        Length(layers, 2),
        TypeIs(options, dict),
        KeysAre(options, ("dropout", "names")),
        Equals(DictItemSource(options, "dropout"), 0.5),
        Equals(DictItemSource(options, "names"), ("a", "b")),
        Equals(GlobalSource(scope, "factor"), 3),
        CodeIs(GlobalSource(scope, "helper"), loss.__code__),
        Equals(CellSource(0, "captured"), 7),
        CodeIs(FunctionSource(), template.__code__),
    ]
    for i in range(2):
        layer = ItemSource(layers, i)
        guards += [TypeIs(layer, Layer), NoAttr(layer, "scale"), Equals(AttrSource(layer, "weight"), 1.5)]
    parts = types.SimpleNamespace(
        model=model, Layer=Layer, scope=scope, cell=cell, function=function, loss=loss, args=[model, True]
    )
    return compile_guards(guards, [AttrSource(ItemSource(layers, 1), "weight")]), parts


CHANGES = {
    "argument": lambda p: p.args.__setitem__(1, False),
    "argument's type": lambda p: p.args.__setitem__(1, 1),
    "another object": lambda p: p.args.__setitem__(0, p.model.layers[0]),
    "class attribute": lambda p: setattr(p.Layer, "scale", 3),
    "class attribute gone": lambda p: delattr(p.Layer, "scale"),
    "shadowed by an instance attribute": lambda p: setattr(p.model, "scale", 2),
    "method monkeypatched on the class": lambda p: setattr(p.Layer, "forward", lambda self, x: -x),
    "method monkeypatched on the instance": lambda p: setattr(p.model, "forward", len),
    "code of a method": lambda p: setattr(p.Layer.forward, "__code__", (lambda self, x: -x).__code__),
    "list grew": lambda p: p.model.layers.append(None),
    "list shrank": lambda p: p.model.layers.pop(),
    "list item": lambda p: p.model.layers.__setitem__(1, 5),
    "list replaced": lambda p: setattr(p.model, "layers", {0: 1, 1: 2}),
    "attribute deleted": lambda p: delattr(p.model, "layers"),
    "dict value": lambda p: p.model.options.update(dropout=0.25),
    "dict grew": lambda p: p.model.options.update(extra=1),
    "dict reordered": lambda p: p.model.options.update(dropout=p.model.options.pop("dropout")),
    "nested tuple": lambda p: p.model.options.update(names=("a", "c")),
    "global": lambda p: p.scope.update(factor=4),
    "global gone": lambda p: p.scope.pop("factor"),
    "global function": lambda p: p.scope.update(helper=lambda x: x),
    "code of a global function": lambda p: setattr(p.loss, "__code__", (lambda x: -x).__code__),
    "closure cell": lambda p: setattr(p.cell, "cell_contents", 8),
    "closure cell emptied": lambda p: delattr(p.cell, "cell_contents"),
    "leaf attribute": lambda p: setattr(p.model.layers[1], "weight", -1.5),
    "leaf shadowed": lambda p: setattr(p.model.layers[1], "scale", 2),
    "class of a leaf": lambda p: setattr(p.model.layers[0], "__class__", type("Other", (p.Layer,), {})),
    "whole dict replaced": lambda p: setattr(p.model.layers[0], "__dict__", {"weight": 2.5}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_each_change_is_noticed(change):
    program, parts = build()
    for _ in range(3):
        assert program.check(parts.function, parts.args)
    assert program.reference.run(parts.function, tuple(parts.args)) == (1.5,)
    change(parts)
    assert not program.check(parts.function, parts.args)
    assert program.reference.run(parts.function, tuple(parts.args)) is None
    assert program.failure(parts.function, parts.args)


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text(max_size=2), st.complex_numbers(),
        st.sampled_from([0.0, -0.0, 1.0, True, 1, "", b"", ...]),
    ),
    lambda inner: st.one_of(
        st.tuples(inner), st.tuples(inner, inner), st.frozensets(st.integers(0, 1) | st.booleans(), max_size=2),
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["a", 1, True, 2.5]), inner, max_size=2),
    ),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(VALUES, VALUES)
def test_core_and_twin_agree_on_random_values(expected, actual):
    x = LocalSource(0, "x")
    guards = [Equals(x, expected), TypeIs(x, type(expected)), Length(x, 1), NoAttr(x, "a")]
    if isinstance(expected, dict):
        guards.append(KeysAre(x, tuple(expected)))
    for guard in guards:
        program = compile_guards([guard], [])
        for value in (actual, expected):
            assert program.check(None, (value,)) == (program.reference.run(None, (value,)) is not None)
    for source in (ItemSource(x, 0), DictItemSource(x, 1), AttrSource(x, "real")):
        program = compile_guards([], [source])
        assert program.check(None, (actual,)) == (program.reference.run(None, (actual,)) is not None)
