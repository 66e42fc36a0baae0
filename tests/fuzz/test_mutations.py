"""A sample of the random mutations of `make fuzz`, of fixed numbers."""

from __future__ import annotations

import ast

import pytest

import stator
from tests.fuzz.mutation import Case, case, fails, smallest
from tests.needs import HAS_TORCH

SAMPLE = range(200)
TOGETHER = 10


@pytest.mark.parametrize("first", SAMPLE[::TOGETHER])
def test_no_mutation_is_missed(first: int) -> None:
    for number in range(first, first + TOGETHER):
        chosen = case(number, tensors=HAS_TORCH)
        if fails(chosen):
            small = smallest(chosen)
            pytest.fail(f"{number}:\n{small.shown()}\n{fails(small)}")


def test_a_case_is_known_by_its_number() -> None:
    assert case(3, False) == case(3, False) != case(4, False)


def test_a_difference_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.mutation.stator.compile", lambda program, backend: _remembering(program))
    small = smallest(Case(("LEVEL", "node.v"), ("node.v = 5", "LEVEL = 2", "LEVEL = 3"), False))
    assert len(small.reads) == 1
    assert len(small.mutations) == 1
    ast.parse(small.shown())
    assert stator.__name__ in small.shown()


def _remembering(program):  # type: ignore[no-untyped-def]
    """What a compiler would make that guards nothing."""
    answers: list[object] = []

    def stale():  # type: ignore[no-untyped-def]
        answers.append(program())
        return answers[0]

    return stale
