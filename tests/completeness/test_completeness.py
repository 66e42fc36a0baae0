"""No attribute of an object answers from what another object, or the same one earlier, answered.

For every kind of object and everything that can be asked of it (see `runner`): a new result or a graph break.
"""

from __future__ import annotations

import pytest

from tests.completeness.code import CALLABLES
from tests.completeness.containers import CONTAINERS, ITERATORS
from tests.completeness.runner import Kind, check

#: some 60 changes asked about in 100 ways are minutes, and their tables of what cannot differ are not complete
TOO_LONG = ("class", "instance")
KINDS = [kind for kind in (*CONTAINERS, *ITERATORS, *CALLABLES) if kind.name not in TOO_LONG]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_answer_is_stale(kind: Kind) -> None:
    check(kind)
