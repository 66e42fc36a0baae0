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


@pytest.fixture(scope="session")
def apart() -> Iterator[Ranks]:
    """Two processes that make a group of their own for each check."""
    made = Ranks()
    yield made
    made.stop()
