"""Collectives of two processes are operations of the graph: one graph, eager's results and gradients."""

import pytest

from tests.pytorch.distributed.programs import PROGRAMS
from tests.pytorch.distributed.ranks import Ranks


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_collective_is_an_operation(ranks: Ranks, name: str, backend: str) -> None:
    ranks.check("captured", name, backend)


@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks_that_run_otherwise_meet(ranks: Ranks, name: str) -> None:
    ranks.check("mixed", name)
