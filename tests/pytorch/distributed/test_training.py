"""Data parallel training of a small Llama: losses and gradients are those of eager execution."""

import pytest

from tests.pytorch.distributed.ranks import Ranks
from tests.pytorch.distributed.training import WAYS


@pytest.mark.parametrize("way", WAYS)
def test_training_is_that_of_eager(ranks: Ranks, way: str) -> None:
    ranks.check("trained", way, "eager")


ALONE = ("ddp_compiled", "ddp_of_compiled", "fsdp_of_blocks", "fsdp_of_wrapped_blocks", "fsdp_blocks_compiled")


@pytest.mark.parametrize("way", ALONE)
def test_one_graph(ranks: Ranks, way: str) -> None:
    ranks.check("around", way)


@pytest.mark.parametrize("way", ["ddp_accumulating", "ddp_in_parts", "fsdp_of_blocks"])
def test_training_with_a_backward_graph(ranks: Ranks, way: str) -> None:
    ranks.check("trained", way, "aot_eager")
