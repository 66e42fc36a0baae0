"""How many guards say that two existing objects are two."""

import pytest

import stator
from stator.guards.guard import Distinct
from stator.interp.trace import Trace

PAIRS = [(number, str(number)) for number in range(200)]
SAME = [(number, str(number)) for number in range(200)]


def test_items_compared_in_pairs_are_set_apart_in_pairs(monkeypatch):
    made = []
    add = Trace.guard

    def guard(self, guard):
        made.append(guard)
        add(self, guard)

    monkeypatch.setattr(Trace, "guard", guard)
    compared = stator.compile(lambda a, b: a == b, backend="eager", fullgraph=True)
    assert compared(PAIRS, SAME)
    distinct = [guard for guard in made if type(guard) is Distinct]
    assert distinct and max(len(guard.sources) for guard in distinct) == 2
    assert not compared(PAIRS, [*SAME[:-1], SAME[0]])


def test_a_comparison_of_too_much_ends_the_trace():
    many, same = [[(number,) for number in range(60_000)] for _ in range(2)]
    with pytest.raises(stator.GraphBreakError, match="instructions"):
        stator.compile(lambda a, b: a == b, backend="eager", fullgraph=True)(many, same)
    assert stator.compile(lambda a, b: a == b, backend="eager")(many, same)


def test_the_id_of_the_context_of_an_exception():
    def f():
        try:
            try:
                raise KeyError(1)
            except KeyError:
                raise ValueError(2)  # noqa: B904 (the context is meant)
        except ValueError as e:
            seen = {id(e)}
            return id(e.__context__) in seen, id(e.__context__) == id(e.__context__)

    assert stator.compile(f, backend="eager", fullgraph=True)() == f() == (False, True)
