"""The cases of a test with the backends: all with `eager` and `aot_eager`, one for each mechanism with Inductor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def each_backend(cases: Iterable[Any], inductor: Iterable[Any]) -> list[tuple[Any, str]]:
    """The cases with the backends, for `parametrize`.

    Args:
        cases: all of them.
        inductor: those that Inductor compiles too: it runs a C++ compiler for each graph.
    """
    cases, inductor = list(cases), list(inductor)
    assert all(case in cases for case in inductor), inductor
    plain = [(case, backend) for case in cases for backend in ("eager", "aot_eager")]
    return plain + [(case, "inductor") for case in inductor]
