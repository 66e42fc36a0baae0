"""Compiled stages of a pipeline: losses and gradients are those of eager execution."""

import pytest

from tests.pytorch.distributed.pipelines import SCHEDULES
from tests.pytorch.distributed.ranks import Ranks

#: their gradients of inputs come before those of weights: a backward graph runs twice
IN_TWO_PARTS = ("ScheduleInterleavedZeroBubble", "ScheduleZBVZeroBubble")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stages_train_as_in_eager(ranks: Ranks, schedule: str) -> None:
    ranks.check("pipelined", schedule, "eager")


@pytest.mark.parametrize("schedule", sorted(SCHEDULES.keys() - IN_TWO_PARTS))
def test_stages_with_a_backward_graph(ranks: Ranks, schedule: str) -> None:
    ranks.check("pipelined", schedule, "aot_eager")


@pytest.mark.parametrize("schedule", IN_TWO_PARTS)
def test_stages_with_a_backward_graph_that_keeps_what_it_needs(ranks: Ranks, schedule: str) -> None:
    ranks.check("pipelined_twice", schedule, "aot_eager")
