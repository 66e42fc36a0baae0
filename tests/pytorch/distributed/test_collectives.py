"""Collectives of two processes are operations of the graph: one graph, eager's results and gradients."""

import pytest

from tests.pytorch.distributed.programs import LEFT_BY_NAME, PROGRAMS
from tests.pytorch.distributed.ranks import Ranks


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_collective_is_an_operation(ranks: Ranks, name: str) -> None:
    ranks.check("captured", name, "eager", "aot_eager")


@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks_that_run_otherwise_meet(ranks: Ranks, name: str) -> None:
    ranks.check("mixed", name)


@pytest.mark.parametrize("name", LEFT_BY_NAME)
def test_messages_keep_their_place(ranks: Ranks, name: str) -> None:
    ranks.check("left", name, "eager", "aot_eager")


#: one of each kind
WITH_INDUCTOR = (
    *("all_reduce", "all_gather_with_own", "reduce_scatter_tensor", "all_to_all_split", "waited_in_another_order"),
    *("in_a_function", "sent_in_order", "functional_reduce_scatter", "functional_coalesced"),
)


@pytest.mark.parametrize("name", WITH_INDUCTOR)
def test_inductor_takes_them(ranks: Ranks, name: str) -> None:
    ranks.check("captured", name, "inductor")


def test_data_parallel_modules(ranks: Ranks) -> None:
    ranks.check("data_parallel")
