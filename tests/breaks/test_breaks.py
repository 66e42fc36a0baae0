# needs: torch
"""Programs as users write them, and what they are told: right results, codes and lines, and how the fixed form fares.

`STATOR_BREAKS=all` runs them under aot_eager as well, with gradients; otherwise every sixth.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest

import stator
from stator.report.events import listening
from tests.breaks.registry import PROGRAMS, Program, Run, alike, run
from tests.breaks.told import Told, violations

for _area in "branches contexts extensions kinds logs marks objects recompiles training values choices".split():
    importlib.import_module(f"tests.breaks.{_area}")

ALL = os.environ.get("STATOR_BREAKS") == "all"

#: messages that have a name which the program has not: what is named, and why it is
STRANGE: dict[str, str] = {
    "contexts-two_branches_in_two_threads": "result_iterator: the generator that ThreadPoolExecutor.map gives",
    "contexts-profiler_range_by_name": "torch._C: what torch.profiler calls inside is named beside it",
    "kinds-an_operator_without_a_fake": "CustomOpDef: torch's own words",
    "kinds-interpolation_in_numpy": "numpy._ArrayFunctionDispatcher.__call__: the class of NumPy's functions",
    "kinds-a_subclass_that_counts": "OpOverload: the class of what __torch_dispatch__ is given",
    "kinds-a_mode_that_counts_flops": "Module._wrapped_call_impl: no function of the program is on the stack",
    "marks-a_layer_that_is_disabled": "Module._wrapped_call_impl: no function of the program is on the stack",
    "extensions-call_into_a_library": "CFuncPtr.__call__: the class of ctypes' functions",
    "objects-a_class_by_a_metaclass": "PyCStructType, CField.__get__: what ctypes makes such classes with",
    "training-a_whole_step_with_retained_graph": "params: the key of a dict",
}
#: fixed forms that are not captured whole, and why
NOT_WHOLE: dict[str, str] = {}


def named(program: Program) -> str:
    return program.name


def compiled(backend: str = "eager", **options: Any) -> Any:
    return lambda function: stator.compile(function, backend=backend, **options)


def assert_alike(found: Run, expected: Run) -> None:
    for what in ("results", "rest", "said"):
        one, other = getattr(found, what), getattr(expected, what)
        assert alike(one, other), f"{what}: {one}\nexpected: {other}"


@pytest.fixture(autouse=True)
def afresh() -> None:
    """Nothing is compiled."""
    stator.reset()


@pytest.mark.parametrize("program", PROGRAMS, ids=named)
def test_a_program_and_what_is_told_of_it(program: Program) -> None:
    expected = run(program.make)
    with listening(Told()) as told:
        assert_alike(run(program.make, compiled()), expected)
    assert {each for each in told.found(program.file) if each[1] in program.lines} == program.expected
    wrong = {text for message in told.messages for text in violations(message, program)}
    strange = STRANGE.get(program.name)
    assert {
        text
        for text in wrong
        if strange is None or not text.startswith((*strange.partition(":")[0].split(", "), "no line"))
    } == set()
    assert strange is None or wrong, "nothing is strange any more"


@pytest.mark.parametrize("program", PROGRAMS, ids=named)
def test_the_fixed_form_is_captured_whole(program: Program, request: pytest.FixtureRequest) -> None:
    assert program.fixed is not None
    if program.name in NOT_WHOLE:
        request.applymarker(
            pytest.mark.xfail(reason=NOT_WHOLE[program.name], strict=True, raises=stator.GraphBreakError)
        )
    expected = run(program.fixed)
    assert_alike(run(program.fixed, compiled(fullgraph=True)), expected)
    if program.same:
        assert alike(expected.results, run(program.make).results)


@pytest.mark.parametrize("program", PROGRAMS if ALL else PROGRAMS[::6], ids=named)
def test_under_a_backend_with_gradients(program: Program) -> None:
    assert_alike(run(program.make, compiled("aot_eager"), backward=True), run(program.make, backward=True))


def test_there_are_enough() -> None:
    assert len(PROGRAMS) >= 120
    assert len([program for program in PROGRAMS if program.expected]) >= 100  # the others are captured whole by now
