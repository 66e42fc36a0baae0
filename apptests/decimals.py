"""decimal: the context in force, its settings, its flags."""

import contextlib
import copy
import decimal
from decimal import Context, Decimal

from apptests.marks import expected_break
from apptests.raising import message


@contextlib.contextmanager
def restored():
    """What the test sets is not for the next one."""
    outside = decimal.getcontext()
    decimal.setcontext(Context())
    try:
        yield decimal.getcontext()
    finally:
        decimal.setcontext(outside)


def rounded(number):
    return int(Decimal(number).quantize(1))


def test_rounding_in_a_local_context():
    found = []
    for rounding in (decimal.ROUND_FLOOR, decimal.ROUND_CEILING, decimal.ROUND_HALF_EVEN, decimal.ROUND_UP):
        with decimal.localcontext() as context:
            context.rounding = rounding
            found.append([rounded(number) for number in (-1.5, 2.5, 0.1)])
    assert found == [[-2, 2, 0], [-1, 3, 1], [-2, 2, 0], [-2, 3, 1]]
    return found


def test_settings_of_the_current_context():
    with restored() as context:
        context.prec = 5
        third = Decimal(1) / 3
        context.prec += 2
        assert str(third) == "0.33333" and str(Decimal(1) / 3) == "0.3333333"
        context.capitals = 0
        assert f"{Decimal('1E+9')}" == "1e+9" and "%s" % Decimal("1E+9") == "1e+9"
        context.rounding = decimal.ROUND_DOWN
        assert str(Decimal("0.12345678") * 1) == "0.1234567"
        assert decimal.getcontext() is context
        return context.prec, context.Emin, context.Emax, context.clamp, context.rounding


def test_settings_that_are_refused():
    context = Context()
    assert message(setattr, context, "prec", 0)
    assert message(setattr, context, "rounding", 3)
    assert message(setattr, context, "nothing", 3)
    assert message(delattr, context, "prec")
    assert message(decimal.setcontext, 3)
    assert message(decimal.localcontext, 3)
    return context.prec


def test_flags_of_operations():
    with restored() as context:
        assert not context.flags[decimal.Inexact]
        third = Decimal(1) / 3
        assert context.flags[decimal.Inexact] and context.flags[decimal.Rounded]
        context.clear_flags()
        assert not context.flags[decimal.Inexact]
        assert third == Decimal(1) / 3
        return [signal.__name__ for signal, on in context.flags.items() if on]


def test_flags_stay_raised_after_the_call():
    context = decimal.getcontext()
    context.clear_flags()

    def divide():
        return Decimal(2) / 3

    divide()
    assert context.flags[decimal.Inexact]
    context.flags[decimal.Inexact] = False
    assert not decimal.getcontext().flags[decimal.Inexact]
    return divide()


def test_traps():
    with restored() as context:
        assert context.traps[decimal.DivisionByZero]
        for _ in range(2):
            try:
                Decimal(1) / 0
            except decimal.DivisionByZero as e:
                assert e.args == ([decimal.DivisionByZero],)
            else:
                raise AssertionError
        context.traps[decimal.DivisionByZero] = False
        assert Decimal(1) / 0 == Decimal("Infinity")
        assert context.flags[decimal.DivisionByZero]
        context.clear_traps()
        assert not any(context.traps.values()) and len(context.traps) == 9
        other = Context()  # kept: the traps of a context that has died are no traps
        context.traps = other.traps
        assert context.traps == other.traps and context.traps is context.traps
        return sorted(signal.__name__ for signal in context.traps)


def test_local_contexts_one_in_the_other():
    with restored() as first:
        with decimal.localcontext(Context(prec=3)) as second:
            assert decimal.getcontext() is second and second is not first
            a = Decimal(1) / 7
            with decimal.localcontext() as third:
                third.prec = 2
                b = Decimal(1) / 7
            assert decimal.getcontext() is second
            c = Decimal(1) / 7
        assert decimal.getcontext() is first
        assert not first.flags[decimal.Inexact] and second.flags[decimal.Inexact]
        return a, b, c, Decimal(1) / 7


def test_an_exception_leaves_the_local_context():
    with restored() as first:
        try:
            with decimal.localcontext() as context:
                context.prec = 1
                raise KeyError
        except KeyError:
            pass
        assert decimal.getcontext() is first
        return Decimal(1) / 7


def test_methods_of_contexts():
    context = Context(prec=4, rounding=decimal.ROUND_UP, Emax=99, traps=[decimal.Overflow], flags=[])
    found = [context.divide(Decimal(1), 3), context.create_decimal("1.23456"), context.sqrt(2), context.Etiny()]
    assert context.flags[decimal.Inexact] and not context.flags[decimal.Overflow]
    assert message(context.multiply, Decimal("1E+99"), 10)
    assert context.flags[decimal.Overflow]
    assert [str(n) for n in found] == ["0.3334", "1.235", "1.414", "-1000002"]
    assert Decimal("1.26").quantize(Decimal("0.1"), context=context) == Decimal("1.3")
    assert Decimal(2).sqrt(context) == Decimal("1.414")
    assert context.power(2, 3) == 8 and context.is_zero(0) and context.to_sci_string(Decimal("1E+2")) == "1E+2"
    return repr(context)


def test_contexts_are_copied():
    context = Context(prec=7)
    context.divide(1, 3)
    for other in (context.copy(), copy.copy(context)):
        assert other is not context and repr(other) == repr(context)
        other.prec = 3
        other.clear_flags()
    assert context.prec == 7 and context.flags[decimal.Inexact]
    assert context.__reduce__()[1][0] == 7
    return repr(context)


def test_contexts_of_the_module_are_copied_when_set():
    with restored():
        decimal.setcontext(decimal.ExtendedContext)
        assert decimal.getcontext() is not decimal.ExtendedContext
        assert Decimal(1) / 0 == Decimal("Infinity") and decimal.getcontext().prec == 9
        assert not decimal.ExtendedContext.flags[decimal.DivisionByZero]
        return Decimal(1) / 3


def handed_out():
    context = Context(prec=9)
    context.divide(1, 3)
    manager = decimal.localcontext(context, prec=4)
    return context, context.flags, manager


def test_a_context_that_is_handed_out():
    context, flags, manager = handed_out()
    assert context.flags is flags and flags[decimal.Inexact]
    with manager as inner:
        assert decimal.getcontext() is inner and inner.prec == 4
        return repr(context), Decimal(1) / 3


@expected_break("decimals among floats, as keys")
def test_keys_that_are_compared_with_floats():
    found = []
    with restored() as context:
        found.append(len({Decimal("100.0"), 100.0}))
        assert context.flags[decimal.FloatOperation]
        context.clear_flags()
        found.append({Decimal("1.0"): 2, Decimal("0.1"): 3}[1])
        assert not context.flags[decimal.FloatOperation]
        found.append(10.0 in [Decimal("10.0")])
        assert context.flags[decimal.FloatOperation]
        context.clear_flags()
        found.append(sorted([10.0, Decimal("1.0")]))
        assert context.flags[decimal.FloatOperation]
    return found


shared = Context(prec=6)


def test_an_existing_context_is_changed():
    shared.prec = 6
    shared.clear_flags()
    number = shared.divide(2, 3)
    shared.prec = 8
    assert shared.flags[decimal.Inexact]
    return number, shared.divide(2, 3), repr(shared)
