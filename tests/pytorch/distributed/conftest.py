"""The processes that the checks of this folder run in."""

from collections.abc import Iterator

import pytest

from tests.pytorch.distributed.ranks import Ranks


@pytest.fixture(scope="session")
def ranks() -> Iterator[Ranks]:
    """Two processes of one group."""
    made = Ranks()
    yield made
    made.stop()
