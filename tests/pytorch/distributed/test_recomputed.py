"""Checkpoints whose functions communicate send in the backward pass what they send in eager execution."""

import pytest

from tests.pytorch.distributed.ranks import Ranks
from tests.pytorch.distributed.recomputed import COMPILED, PROGRAMS


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "together"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_is_sent_again(ranks: Ranks, name: str, backend: str, alone: bool) -> None:
    ranks.check("sent_again", name, backend, alone)


@pytest.mark.parametrize(("backend", "alone"), [("eager", True), ("aot_eager", True), ("aot_eager", False)])
@pytest.mark.parametrize("name", COMPILED)
def test_the_same_is_sent_again_in_a_checkpoint_around(ranks: Ranks, name: str, backend: str, alone: bool) -> None:
    ranks.check("sent_again_around", name, backend, alone)


def test_inductor_sends_the_same(ranks: Ranks) -> None:
    ranks.check("sent_again", "in_place", "inductor", True)
    ranks.check("sent_again_around", "functions", "inductor", True)
