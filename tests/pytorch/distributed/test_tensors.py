"""Distributed tensors and tensor-parallel modules on two ranks: one graph, eager's results and gradients."""

import pytest

from tests.pytorch.distributed.ranks import Ranks
from tests.pytorch.distributed.tensors import WHOLE


@pytest.mark.parametrize("name", WHOLE)
def test_a_program_is_one_graph(ranks: Ranks, name: str) -> None:
    ranks.check("distributed_tensors", name, "eager", "aot_eager")


def test_inductor_takes_those_that_are_made_inside(ranks: Ranks) -> None:
    ranks.check("distributed_tensors", "made_inside", "inductor")


def test_a_transformer_of_twelve_layers_is_one_graph(ranks: Ranks) -> None:
    ranks.check("twelve_layers", "eager")


def test_they_go_on_behind_a_break(ranks: Ranks) -> None:
    ranks.check("broken", "eager", "aot_eager")


def test_a_new_leaf_is_made_by_python(ranks: Ranks) -> None:
    ranks.check("new_leaf", "eager", "aot_eager")


def test_parallel_losses(ranks: Ranks) -> None:
    ranks.check("losses", "eager", "aot_eager")
