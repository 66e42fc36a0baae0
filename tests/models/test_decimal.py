"""Contexts of decimal arithmetic from one call to the next."""

import decimal
import threading

import pytest

import stator

D = decimal.Decimal


@pytest.fixture(autouse=True)
def own_context():
    outside = decimal.getcontext()
    decimal.setcontext(decimal.Context())
    yield
    decimal.setcontext(outside)


def compiled(function):
    return stator.compile(function, backend="eager", fullgraph=True)


def test_results_follow_the_settings():
    third = compiled(lambda: D(1) / 3)
    for prec in (5, 7, 5):
        decimal.getcontext().prec = prec
        assert str(third()) == "0." + prec * "3"
    decimal.setcontext(decimal.Context(prec=2))
    assert str(third()) == "0.33"


def test_flags_are_raised_by_every_call():
    third = compiled(lambda: D(1) / 3)
    for _ in range(3):
        decimal.getcontext().clear_flags()
        third()
        assert decimal.getcontext().flags[decimal.Inexact]


def test_flags_are_kept_by_a_call_that_raises_none():
    exact = compiled(lambda: D(1) / 4)
    decimal.getcontext().flags[decimal.Underflow] = True
    exact()
    assert decimal.getcontext().flags[decimal.Underflow] and not decimal.getcontext().flags[decimal.Inexact]


def test_flags_of_a_trace_that_is_given_up():
    def function():
        D(1) / 3
        decimal.getcontext().clear_flags()
        return open("/dev/null").close()

    stator.compile(function, backend="eager")()
    assert not decimal.getcontext().flags[decimal.Inexact]


def test_flags_that_are_read_are_guarded():
    inexact = compiled(lambda: decimal.getcontext().flags[decimal.Inexact])
    assert not inexact()
    D(1) / 3
    assert inexact()


def test_one_context_by_two_names():
    def function(context):
        context.prec = 4
        return str(D(1) / 3)

    changed = compiled(function)
    assert changed(decimal.Context()) == str(D(1) / 3)
    assert changed(decimal.getcontext()) == "0.3333"
    decimal.getcontext().prec = 6
    assert changed(decimal.Context()) == "0.333333"


def test_the_context_that_is_set():
    def function(context):
        decimal.setcontext(context)
        return str(D(1) / 3)

    setting = compiled(function)
    for context in (decimal.Context(prec=3), decimal.Context(prec=4), decimal.Context(prec=4)):
        assert setting(context) == "0." + context.prec * "3"
        assert decimal.getcontext() is context and context.flags[decimal.Inexact]
    assert setting(decimal.BasicContext) == "0.333333333"
    assert decimal.getcontext() is not decimal.BasicContext and not decimal.BasicContext.flags[decimal.Inexact]


def test_a_context_manager_from_outside():
    def function(manager):
        with manager as context:
            context.prec += 1
            return str(D(1) / 3)

    inside = compiled(function)
    outside = decimal.getcontext()
    for prec in (3, 5, 5):
        assert inside(decimal.localcontext(decimal.Context(prec=prec))) == "0." + (prec + 1) * "3"
        assert decimal.getcontext() is outside


def test_contexts_of_threads():
    third = compiled(lambda: str(D(1) / 3))
    third()
    found = []

    def run():
        decimal.getcontext().prec = 3
        found.append(third())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == ["0.333"]


def test_defaults_of_new_contexts():
    made = compiled(lambda: decimal.Context(prec=5).Emax)
    assert made() == 999999
    emax = decimal.DefaultContext.Emax
    try:
        decimal.DefaultContext.Emax = 77
        assert made() == 77
    finally:
        decimal.DefaultContext.Emax = emax


def test_a_context_of_a_class_of_its_own():
    class Own(decimal.Context):
        pass

    own = Own(prec=4)
    own.note = 3

    def function(context):
        with decimal.localcontext(context) as inner:
            context.note += 1
            return type(context), type(inner), str(context.divide(1, 3)), str(D(2) / 3), context.note

    assert compiled(function)(own) == (Own, decimal.Context, "0.3333", "0.6667", 4)
    assert own.flags[decimal.Inexact] and own.note == 4
    decimal.setcontext(own)
    assert compiled(lambda: str(D(1) / 3))() == "0.3333"
