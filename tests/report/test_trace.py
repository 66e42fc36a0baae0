# needs: torch
"""`stator.trace()`: the graph of a call that is not made."""

from __future__ import annotations

import pytest
import torch

import stator
from tests.report import explained


def test_the_graph_computes_what_the_program_would():
    def program(x, *, k):
        return torch.relu(x) * k

    gm = stator.trace(program, torch.ones(2, 3), k=3)
    assert isinstance(gm, torch.fx.GraphModule) and gm.sources == ("x",)
    assert torch.equal(gm(torch.ones(2, 3))[0], torch.full((2, 3), 3.0))
    assert [node.meta["example_value"].shape for node in gm.graph.nodes if node.op != "output"] == [(2, 3)] * 3
    assert any(guard.text == "k == 3" for guard in gm.guards)


def test_side_effects_do_not_happen(capsys):
    history = []

    def program(x):
        history.append(1)
        print("traced")
        return x + 1

    stator.trace(program, torch.ones(2))
    assert history == [] and capsys.readouterr().out == ""


def test_inputs_of_a_module_are_named_as_the_program_does():
    gm = stator.trace(torch.nn.Linear(3, 2), torch.ones(1, 3))
    assert gm.sources == ("input", "self.weight", "self.bias")


def test_a_compiled_function_is_traced_afresh():
    compiled = stator.compile(lambda x: x + 1, backend="eager")
    compiled(torch.ones(2))
    assert len(stator.trace(compiled, torch.ones(2)).graph.nodes) == 3


def test_a_break_is_an_error():
    with pytest.raises(stator.GraphBreakError) as caught:
        stator.trace(explained.scaled, torch.ones(2, 3), [])
    assert caught.value.code == "SB0201"


def test_without_tensors_there_is_no_graph():
    with pytest.raises(stator.StatorError, match="has no graph"):
        stator.trace(lambda n: n + 1, 2)


def test_a_call_that_only_raises_has_no_graph():
    def fails(x):
        raise KeyError("here")

    with pytest.raises(stator.StatorError, match="fails does nothing with tensors"):
        stator.trace(fails, torch.ones(2))
