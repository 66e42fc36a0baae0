"""No attribute of an object answers from what another object, or the same one earlier, answered.

For every kind of object and everything that can be asked of it (see `runner`): a new result or a graph break.
"""

from __future__ import annotations

import pytest

from tests.completeness.code import CALLABLES
from tests.completeness.containers import CONTAINERS, ITERATORS
from tests.completeness.runner import Kind, check

KINDS = (*CONTAINERS, *ITERATORS, *CALLABLES)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_answer_is_stale(kind: Kind) -> None:
    check(kind)
