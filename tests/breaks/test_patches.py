# needs: torch
"""The patches that there are for the programs of the corpus: enough are offered and hold, and none is wrong."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

import stator
from tests.breaks.patched import patched
from tests.breaks.registry import PROGRAMS, Make, Program, alike, run

for _area in "branches contexts extensions kinds logs marks objects recompiles training values choices".split():
    importlib.import_module(f"tests.breaks.{_area}")

#: programs whose fixed form is a mechanical change: by what there is a patch, or why there is none
MECHANICAL = {
    "branches-scale_down_large_activations": "cond",
    "branches-warmup_by_a_counter_in_a_buffer": "cond",
    "branches-choose_an_expert": "cond",
    "branches-best_loss_so_far": "where",
    "branches-both_conditions_at_once": "where",
    "branches-labels_in_a_list": None,  # `in` asks each item in turn: torch.isin needs them in one tensor
    "branches-same_weights_check": None,  # torch.equal is of shapes too
    "choices-normalised_unless_it_is_zero": "cond",
    "choices-a_loss_in_three_pieces": "cond",
    "choices-nothing_to_mask": "cond",
    "choices-the_larger_of_two_losses": "where",
    "choices-two_settings_at_once": "cond",
    "choices-a_total_that_is_counted_in_python": "cond",
    "choices-decided_by_one_number": "where",
    "marks-a_metric_that_is_disabled": "mark",
    "marks-a_layer_that_is_disabled": None,  # a reason is given
    "marks-a_break_between_encoder_and_decoder": "mark",
    "marks-an_import_where_it_is_needed": "import",
}
_BY_NAME = {program.name: program for program in PROGRAMS}


@pytest.fixture(autouse=True)
def afresh() -> Iterator[None]:
    stator.reset()
    yield
    stator.reset()


@pytest.mark.parametrize("name", [name for name, kind in MECHANICAL.items() if kind])
def test_a_mechanical_one_is_offered_and_holds_for_other_inputs(name: str) -> None:
    program = _BY_NAME[name]
    found = patched(program)
    assert found.offered and not found.why
    assert {site.code for site in found.left} <= {"SB0601"}
    for seed in (1, 2):
        expected, other = (outcome(make, seed) for make in (program.make, found.make))
        assert alike(other, expected)
    whole = run(found.make, lambda f: stator.compile(f, backend="aot_eager", fullgraph=True), backward=True)
    assert alike(whole.results, run(program.make, backward=True).results)


def outcome(make: Make, seed: int) -> Any:
    """Results, what is left and what was said, where a gradient of zeros is none: a side not taken has either."""
    found = run(make, lambda function: stator.compile(function, backend="eager"), backward=True, seed=seed)
    return _without_zeros([found.results, found.rest, found.said])


def _without_zeros(thing: Any) -> Any:
    if isinstance(thing, dict):
        return {key: _without_zeros(value) for key, value in thing.items()}
    if isinstance(thing, tuple) and thing[:1] == ("tensor",):
        grad = thing[4] if isinstance(thing[4], tuple) and thing[4][3].count_nonzero() else None
        return (*thing[:4], grad)
    return [_without_zeros(each) for each in thing] if isinstance(thing, list) else thing


def test_most_are_offered() -> None:
    with_a_patch = [kind for kind in MECHANICAL.values() if kind]
    assert len(with_a_patch) >= 0.8 * len(MECHANICAL)
    assert set(MECHANICAL) <= set(_BY_NAME)


@pytest.mark.parametrize(
    "program",
    [each for each in PROGRAMS if each.name not in MECHANICAL and {code for code, _ in each.expected} - {"SB0601"}],
    ids=lambda program: program.name,
)
def test_what_does_not_hold_is_left_alone(program: Program) -> None:
    found = patched(program)
    assert found.make is program.make, found.offered
    assert not found.offered or found.why
