"""What a program says of the sizes of all its inputs at once."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch.fx.experimental.dynamic_spec import (
    DictSpec,
    IntVar,
    ObjectSpec,
    ParamsSpec,
    SeqSpec,
    ShapesSpec,
    ShapeVar,
    TensorSpec,
)

import stator
from tests.pytorch.training import BACKENDS


def graphs(compiled, function, *calls):
    """How many graphs the calls take, whose results and gradients are those of eager."""
    before = stator.stats()
    for args in calls:
        results = []
        for each in (function, compiled):
            given = [arg.clone().requires_grad_() if isinstance(arg, torch.Tensor) else arg for arg in args]
            made = each(*given)
            made.sum().backward()
            results.append([made, *(arg.grad for arg in given if isinstance(arg, torch.Tensor))])
        torch.testing.assert_close(*results)
    return stator.stats().diff(before).graphs


def scaled(x, n):
    return (x * n).sin() * x.size(0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_name_varies_from_the_first_call_on(backend):
    compiled = stator.compile(scaled, backend=backend, dynamic_shapes={"x": ["batch", None], "n": "steps"})
    assert graphs(compiled, scaled, *((torch.randn(size, 4), number) for size, number in ((3, 2), (5, 7), (8, 9)))) == 1


def test_what_nothing_is_said_of_is_as_it_is_found():
    compiled = stator.compile(scaled, backend="eager", dynamic_shapes={"x": ["batch", None]})
    assert graphs(compiled, scaled, (torch.randn(3, 4), 2), (torch.randn(5, 4), 2)) == 1
    assert graphs(compiled, scaled, (torch.randn(5, 6), 2), (torch.randn(5, 7), 2), (torch.randn(5, 7), 3)) == 3


def test_a_name_is_one_number_wherever_it_stands():
    def both(x, y):
        return x.sum() + y.sum()

    compiled = stator.compile(both, backend="eager", dynamic_shapes={"x": ["n"], "y": [2, "n"]})
    assert graphs(compiled, both, *((torch.randn(size), torch.randn(2, size)) for size in (3, 4, 5))) == 1
    with pytest.raises(
        stator.errors.ConstraintViolationError, match=r"`y.size\(1\)` is said to be n, as `x.size\(0\)`"
    ):
        compiled(torch.randn(3), torch.randn(2, 4))
    with pytest.raises(stator.errors.ConstraintViolationError, match=r"`y.size\(0\)` is said to be 2, and is 3"):
        compiled(torch.randn(3), torch.randn(3, 3))


def test_code_that_fixes_a_variable_is_refused():
    def fixed(x):
        return x * 2 if x.size(0) == 3 else x

    compiled = stator.compile(fixed, backend="eager", dynamic_shapes={"x": ["rows"]})
    with pytest.raises(stator.errors.ConstraintViolationError, match="test_input_sizes.py"):
        compiled(torch.randn(3))


@pytest.mark.parametrize("backend", BACKENDS)
def test_torchs_specifications(backend):
    def function(x, pair, table, *rest, **named):
        return x.sum() + pair[0].sum() * pair[1] + table["a"].sum() + rest[0].sum() + named["z"].sum()

    rows = ShapeVar("rows", max=50)
    said = ParamsSpec(
        {
            "x": TensorSpec([rows, None]),
            "pair": SeqSpec([TensorSpec([rows]), IntVar("times")]),
            "table": DictSpec({"a": TensorSpec([rows * 2 + 1])}),
            "*args": [TensorSpec([ShapeVar("other")])],
            "**kwargs": {"z": TensorSpec([ShapeVar("last"), 2])},
        }
    )

    def call(function, n, length=None):
        table = {"a": torch.ones(n * 2 + 1 if length is None else length)}
        return function(torch.ones(n, 3), [torch.ones(n), n + 5], table, torch.ones(n + 3), z=torch.ones(n + 4, 2))

    compiled, before = stator.compile(function, backend=backend, dynamic_shapes=said), stator.stats()
    for n in (3, 4, 9):
        assert torch.equal(call(compiled, n), call(function, n))
    assert stator.stats().diff(before).graphs == 1
    with pytest.raises(stator.errors.ConstraintViolationError, match="is said to be"):
        call(compiled, 3, length=9)
    with pytest.raises(stator.errors.ConstraintViolationError, match="50"):
        call(compiled, 51)


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4))

    def forward(self, x, options=None):
        return x * self.weight


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_parameters_of_a_module_are_those_of_forward(backend):
    module = Scale()
    compiled = stator.compile(module, backend=backend, dynamic_shapes={"x": ["batch", None]})
    assert graphs(compiled, module, *((torch.randn(size, 4),) for size in (3, 5, 6))) == 1


def test_attributes_of_objects():
    class Batch:
        def __init__(self, size):
            self.x = torch.ones(size)

    def function(batch):
        return batch.x * 2

    said = {"batch": ObjectSpec({"x": TensorSpec([ShapeVar("n")])})}
    compiled, before = stator.compile(function, backend="eager", dynamic_shapes=said), stator.stats()
    for size in (3, 4, 5):
        assert torch.equal(compiled(Batch(size)), torch.ones(size) * 2)
    assert stator.stats().diff(before).graphs == 1


def test_assumptions():
    if "assumptions" not in ShapesSpec.__init__.__kwdefaults__:
        pytest.skip("torch 2.13 has none")
    rows = ShapeVar("rows")
    said = ShapesSpec({"x": TensorSpec([rows])}, assumptions=[rows % 2 == 0])
    compiled = stator.compile(lambda x: x.view(2, -1), backend="eager", dynamic_shapes=said)
    assert graphs(compiled, lambda x: x.view(2, -1), *((torch.randn(size),) for size in (4, 6, 8))) == 1
    with pytest.raises(stator.errors.ConstraintViolationError, match="assumes"):
        compiled(torch.randn(5))


@pytest.mark.parametrize("attached", [False, True])
def test_it_is_explained_with_the_sizes_said(attached):
    def function(x):
        return x * 2

    said = {"x": TensorSpec([ShapeVar("n")])}
    if attached:
        function._dynamic_spec = ShapesSpec(said)  # as torch's decorator does
    compiled = stator.compile(function, backend="eager", **({} if attached else {"dynamic_shapes": said}))
    (graph,) = stator.explain(compiled)(torch.ones(3)).graphs
    assert [type(size) for size in graph.inputs[0].shape] == [str]


def test_what_is_not_understood():
    for said in (["x"], 3):
        with pytest.raises(TypeError, match="dynamic spec expects a dict, ShapesSpec, or ParamsSpec"):
            stator.compile(scaled, dynamic_shapes=said)
    with pytest.raises(TypeError, match="what is said of x"):
        stator.compile(scaled, dynamic_shapes={"x": 2.5})
    with pytest.raises(ValueError, match="`dynamic` and `dynamic_shapes` can't be specified"):
        stator.compile(scaled, dynamic=True, dynamic_shapes={})
    with pytest.raises(stator.errors.ConstraintViolationError, match="of dimension 2 of `x`, which has 2"):
        stator.compile(scaled, backend="eager", dynamic_shapes={"x": [None, None, "n"]})(torch.ones(2, 2), 1)


class Batch(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


class Engine:
    def plain(self, batch, last, *, scale=1.0):
        return (batch.x * batch.y[:, None] * scale)[last]

    undecorated = plain
    without_gradients = torch.no_grad()(plain)
    in_inference_mode = torch.inference_mode()(plain)


@pytest.mark.parametrize("of_fields", [["n", None], {0: "n"}])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["undecorated", "without_gradients", "in_inference_mode"])
def test_parameters_of_a_decorated_function_and_fields_of_a_named_tuple(name, backend, of_fields):
    function = getattr(Engine(), name)
    said = {"batch": {"x": of_fields, "y": ["n"]}, "last": ["r"]}
    compiled, before = stator.compile(function, backend=backend, dynamic_shapes=said), stator.stats()
    for n in (3, 5, 7, 4):
        batch, last = Batch(torch.randn(n, 2), torch.randn(n)), torch.arange(n - 1)
        assert torch.equal(compiled(batch, last), function(batch, last))
    assert stator.stats().diff(before).graphs == 1
    for n in (3, 5, 7):
        batch, last = Batch(torch.randn(n, 2), torch.randn(n)), torch.arange(n - 1)
        assert torch.equal(compiled(batch=batch, last=last, scale=2.0), function(batch, last, scale=2.0))
    assert stator.stats().diff(before).graphs <= 3  # one for arguments by name


def test_a_parameter_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"scaled has no parameter 'X'; it has x, n$"):
        stator.compile(scaled, backend="eager", dynamic_shapes={"X": ["n"]})
    with pytest.raises(ValueError, match=r"Engine\.plain has no parameter 'x'; it has self, batch, last, scale$"):
        stator.compile(Engine().without_gradients, backend="eager", dynamic_shapes={"x": ["n"]})
    with pytest.raises(ValueError, match=r"Scale\.forward has no parameter 'y'"):
        stator.compile(Scale(), backend="eager", dynamic_shapes={"y": ["n"]})


def test_fields_are_called_by_their_names():
    compiled = stator.compile(Engine().plain, backend="eager", dynamic=False)
    for n in (3, 5):
        compiled(Batch(torch.ones(n, 2), torch.ones(n)), torch.arange(2))
    (record,) = stator.stats().recompile_log
    assert "batch.x" in record.reason or "batch.y" in record.reason
