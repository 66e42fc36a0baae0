"""Every guard test runs twice: once on the C++ program and once on its reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from stator import _core
from stator.guards.program import compile_guards

Check = Callable[..., bool]


def _core_check(guards: Sequence[Any], args: tuple[Any, ...], func: Any = None) -> bool:
    return compile_guards(guards).check(func, args)


def _reference_check(guards: Sequence[Any], args: tuple[Any, ...], func: Any = None) -> bool:
    return compile_guards(guards).reference.run(func, args) is not None


@pytest.fixture(params=[_core_check, _reference_check], ids=["core", "reference"])
def check(request: pytest.FixtureRequest) -> Check:
    """``check(guards, args, func)``: do the guards pass?"""
    return request.param


def _core_load(source: Any, args: tuple[Any, ...], func: Any = None) -> Any:
    outcome = compile_guards([], [source]).run(func, args)
    return outcome[0] if isinstance(outcome, tuple) else LookupError


def _reference_load(source: Any, args: tuple[Any, ...], func: Any = None) -> Any:
    outcome = compile_guards([], [source]).reference.run(func, args)
    return LookupError if outcome is None else outcome[0]


@pytest.fixture(params=[_core_load, _reference_load], ids=["core", "reference"])
def load(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """``load(source, args, func)``: the object there, or LookupError (the class)."""
    return request.param


@pytest.fixture(params=[0, 10**6], ids=["shortcut", "walk"])
def revalidation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Programs are passed by their shortcut, or always walked."""
    before = _core.set_revalidation_minimum(request.param)
    yield
    _core.set_revalidation_minimum(before)
