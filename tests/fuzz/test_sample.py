"""A sample of the random programs of `make fuzz`: of fixed numbers, and as hypothesis chooses."""

import ast

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies

from tests.fuzz.campaign import breaks_of
from tests.fuzz.compare import Difference, Unfit, check
from tests.fuzz.describe import describe
from tests.fuzz.programs import program, programs
from tests.fuzz.reduce import reduced
from tests.needs import HAS_TORCH

SAMPLE = range(60)


@pytest.mark.parametrize("number", SAMPLE)
def test_program(number: int):
    try:
        check(program(number, tensors=HAS_TORCH), breaks_of(number))
    except Unfit:
        pass


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(programs(HAS_TORCH), strategies.integers(1, 400))
def test_any_program(source: str, position: int):
    try:
        check(source, [position])
    except Unfit:
        assume(False)


def test_most_programs_are_fit():
    unfit = 0
    for number in SAMPLE:
        try:
            check(program(number), [])
        except Unfit:
            unfit += 1
    assert unfit <= len(SAMPLE) // 10


def test_a_program_is_known_by_its_number():
    assert program(7) == program(7) != program(8)


DIFFERENT_WHEN_TRACED = """
import stator
TABLE = {}

def program(a):
    TABLE['unused'] = 1
    b = a + 1
    return [b] if stator.is_compiling() else [b, b]

def calls():
    yield (1,)
"""


def test_a_difference_is_found_and_made_small():
    def fails(source: str) -> bool:
        try:
            check(source, [])
        except Difference:
            return True
        except Unfit:
            pass
        return False

    small = reduced(DIFFERENT_WHEN_TRACED, fails)
    assert "is_compiling" in small
    assert len(ast.unparse(ast.parse(small))) < 140


def test_an_alias_is_part_of_the_description():
    shared = [1]
    assert describe([shared, shared], (), {}, "") != describe([[1], [1]], (), {}, "")
    assert describe([[1], [1]], (), {}, "") == describe([[1], [1]], (), {}, "")
