"""The kinds of guards and of sources against the core's table of operations: a kind that is forgotten in one of the
places that docs/guards.md lists fails here."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import pytest

from stator._core import OPERATIONS
from stator.guards import base, intern
from stator.guards.base import Guard
from stator.guards.expression import expression
from stator.guards.guard import (
    Apart,
    CodeIs,
    Distinct,
    Equals,
    GlobalState,
    HasKey,
    IdIs,
    KeysAre,
    Length,
    MroIs,
    NoAttr,
    NoKey,
    Predicate,
    Relation,
    SameObject,
    TensorMatch,
    TypeAttrIs,
    TypeIs,
    Unrecorded,
    WeakIdIs,
)
from stator.guards.program import compile_guards
from stator.guards.source import LocalSource
from stator.guards.tensor import TensorFacts, TensorSpec
from tests.needs import HAS_TORCH

X, Y, Z = (LocalSource(i, name) for i, name in enumerate("xyz"))


class Thing:
    attribute: Any = "there"


class Other: ...


class Child(Thing): ...


def function() -> None: ...


def other_function() -> None: ...


STATE = [True]
THING = Thing()


def state_holds() -> bool:
    return STATE[0]


def are_ordered(a: int, b: int) -> bool:
    return a < b


def needs_no_gradient(tensor: Any) -> bool:
    return not tensor.requires_grad


def tensor(requires_grad: bool) -> Any:
    """A tensor; where there is no torch, something that looks like one."""
    if not HAS_TORCH:
        return thing_of(requires_grad=requires_grad)
    import torch

    return torch.ones(1, requires_grad=requires_grad)


def facts(thing: Any) -> TensorFacts:
    return TensorFacts("dtype", "cpu", "strided", False, 0, thing.sizes, None, ())


def thing_of(**attributes: Any) -> Thing:
    thing = Thing()
    vars(thing).update(attributes)
    return thing


def setting(place: Any, name: Any, value: Any) -> Callable[[], tuple[Any, ...]]:
    """The arguments (), when what is looked at has been given this value."""

    def make() -> tuple[Any, ...]:
        if isinstance(place, list):
            place[name] = value
        else:
            setattr(place, name, value)
        return ()

    return make


class Example(NamedTuple):
    """A guard, and what makes arguments for which it holds and for which it fails."""

    guard: Guard
    holding: Callable[[], tuple[Any, ...]]
    failing: Callable[[], tuple[Any, ...]]


SPEC = TensorSpec(Thing, "dtype", "cpu", "strided", False, 0, (2, None), None, read=facts)

EXAMPLES: dict[type[Guard], Example] = {
    TypeIs: Example(TypeIs(X, int), lambda: (1,), lambda: (True,)),
    IdIs: Example(IdIs(X, STATE), lambda: (STATE,), lambda: ([True],)),
    WeakIdIs: Example(WeakIdIs(X, THING), lambda: (THING,), lambda: (Thing(),)),
    Equals: Example(Equals(X, 1), lambda: (1,), lambda: (1.0,)),
    Length: Example(Length(X, 2), lambda: ([1, 2],), lambda: ([1],)),
    KeysAre: Example(KeysAre(X, ("a", "b")), lambda: ({"a": 1, "b": 2},), lambda: ({"b": 2, "a": 1},)),
    HasKey: Example(HasKey(X, "a"), lambda: ({"a": 1},), lambda: ({},)),
    NoKey: Example(NoKey(X, "a"), lambda: ({},), lambda: ({"a": 1},)),
    NoAttr: Example(NoAttr(X, "attribute"), lambda: (Thing(),), lambda: (thing_of(attribute=1),)),
    TypeAttrIs: Example(
        TypeAttrIs(Child, "attribute", "there"),
        setting(Thing, "attribute", "there"),
        setting(Thing, "attribute", "elsewhere"),
    ),
    MroIs: Example(MroIs(X, Child.__mro__), lambda: (Child,), lambda: (Other,)),
    CodeIs: Example(
        CodeIs(X, function.__code__, globals()),
        lambda: (function,),
        lambda: (FunctionType(function.__code__, {}),),
    ),
    SameObject: Example(SameObject(X, Y), lambda: (STATE, STATE), lambda: (STATE, [True])),
    Distinct: Example(Distinct(X, (Y, Z)), lambda: (STATE, 1, 2), lambda: (STATE, 1, STATE)),
    TensorMatch: Example(TensorMatch(X, SPEC), lambda: (thing_of(sizes=(2, 5)),), lambda: (thing_of(sizes=(3, 5)),)),
    Predicate: Example(Predicate((X, Y), are_ordered, "x < y"), lambda: (1, 2), lambda: (2, 1)),
    Relation: Example(Relation((X, Y), expression("{0} % {1} == 0", 2)), lambda: (6, 3), lambda: (7, 3)),
    Apart: Example(Apart((X, Y), are_ordered, "x < y"), lambda: (1, 2), lambda: (2, 1)),
    Unrecorded: Example(
        Unrecorded((X,), needs_no_gradient, "x needs no gradient"), lambda: (tensor(False),), lambda: (tensor(True),)
    ),
    GlobalState: Example(GlobalState(state_holds, "it holds"), setting(STATE, 0, True), setting(STATE, 0, False)),
}


def each_kind(function: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)(function)


def test_guards_are_the_checks_of_the_core() -> None:
    assert set(base.KINDS) == {name for name, (is_check, *_) in OPERATIONS.items() if is_check}


def test_sources_are_the_loads_of_the_core() -> None:
    assert set(intern.KINDS) == {name for name, (is_check, *_) in OPERATIONS.items() if not is_check}


def test_each_kind_has_an_example() -> None:
    assert set(EXAMPLES) == set(base.KINDS.values())
    for kind, example in EXAMPLES.items():
        assert type(example.guard) is kind


def test_a_kind_without_a_row_is_refused() -> None:
    with pytest.raises(TypeError, match="the core has no check NO_SUCH_CHECK"):
        type("Forgotten", (Guard,), {"op": "NO_SUCH_CHECK"})
    with pytest.raises(TypeError, match="the core has no check LOCAL"):
        type("Mistaken", (Guard,), {"op": "LOCAL"})
    with pytest.raises(TypeError, match="the core has no load TYPE_IS"):
        type("Mistaken", (intern.Source,), {"op": "TYPE_IS"})
    with pytest.raises(TypeError, match="another guard has it"):
        type("Second", (Guard,), {"op": "TYPE_IS"})


@each_kind
def test_holds_and_fails(kind: type[Guard], check: Callable[..., bool]) -> None:
    guard, holding, failing = EXAMPLES[kind]
    for _ in range(2):
        assert not check([guard], failing())
        assert check([guard], holding())


@each_kind
def test_a_program_that_has_passed_often_still_looks(kind: type[Guard], revalidation: None) -> None:
    """Whatever the shortcut has written down: with other arguments, and with the same ones changed, it fails."""
    guard, holding, failing = EXAMPLES[kind]
    program = compile_guards([TypeIs(LocalSource(3, "last"), int), guard])
    for _ in range(3):
        kept = (*holding(), None, None, None)[:3]
        for _ in range(6):
            holding()
            assert program.check(None, (*kept, 1)), program.failure(None, (*kept, 1))
        for _ in range(3):
            assert not program.check(None, (*(*failing(), None, None, None)[:3], 1))
        holding()
        assert not program.check(None, (*kept, True))


@each_kind
def test_prints_and_explains(kind: type[Guard]) -> None:
    guard, holding, failing = EXAMPLES[kind]
    args = failing()
    explained = compile_guards([guard]).failure(None, args)
    assert explained is not None and explained.startswith(f"{guard}: ")
    holding()


@each_kind
def test_copy_and_key(kind: type[Guard]) -> None:
    guard = EXAMPLES[kind].guard
    again = copy.copy(guard)
    assert again == guard and hash(again) == hash(guard) and str(again) == str(guard)
    others = {other.guard for other in EXAMPLES.values()}
    assert len(others) == len(EXAMPLES)
