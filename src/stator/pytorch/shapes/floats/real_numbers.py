"""Where torch takes floats for real numbers, of which it knows more than is so: what CPython computes decides there.

if loss != loss:        # of a real number never; of a NaN it is so
if n - n != 0:          # an infinite number is found by this
turn = angle % 1        # 0, as a whole number would have it
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import torch

from stator.guards.guard import FOR_BRANCHES, Predicate
from stator.pytorch.fake.metadata import expression_of, hint_of
from stator.pytorch.shapes.computed import arguments_of, condition_on_existing, fix, refuse_drawn
from stator.pytorch.shapes.unbacked import symbols_of

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.space.interfaces import Trace

__all__ = ["decided_again", "is_simplified", "operands_of", "takes_for_real"]

_COMPARISONS = frozenset((operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge))
#: whose results torch takes for whole numbers, or rounds otherwise: `1.0 // 0.1` is 9.0, and 10.0 to torch
_DIVISIONS = frozenset((operator.mod, operator.floordiv))
_CONNECTIVES = frozenset((operator.and_, operator.or_, torch.sym_not))


def takes_for_real(recorder: Recorder, value: Any) -> bool:
    """Whether torch may know more of a number or a condition that is computed of floats than is so."""
    operands = operands_of(recorder, value)
    if not operands:
        return False
    target = value._node.target
    if target in _DIVISIONS and value.cls is float:
        return True
    of_ints = not any(_has_floats(recorder, operand) for operand in operands)
    if of_ints and (value.cls is float or not any(is_simplified(recorder, operand) for operand in operands)):
        return False
    if target in _CONNECTIVES:
        return any(takes_for_real(recorder, operand) for operand in operands if operand.symbolic)
    if target in _COMPARISONS:
        return not all(_is_plain(recorder, operand) for operand in operands) or _are_one(*operands)
    if value.cls is not float:
        return False
    lost = frozenset[Any]().union(*(symbols_of(operand.number) for operand in operands if operand.symbolic))
    return bool(lost - symbols_of(value.number)) or not (recorder.keeps_order or _is_as_written(value, operands))


def _is_as_written(value: Any, operands: list[Any]) -> bool:
    """Whether the expression that torch has for a sum or a product is one of these two operands, and no other that is
    equal for real numbers: `(x + 1e17) - 1e17`, `x * 3 - x`, `x * 0.1 * 10`. A backend computes the expression."""
    target, result = value._node.target, expression_of(value.number)
    if target not in (operator.add, operator.sub, operator.mul):
        return True
    if not all(operand.symbolic or math.isfinite(operand.host) for operand in operands):
        return False
    one, other = [_as_float(operand) for operand in operands]
    if target is operator.sub:
        other = -other
    if one == other or result in (one, other, -one, -other):  # x + x, x + 0, x * -1
        return True
    return (result.is_Mul if target is operator.mul else result.is_Add) and set(result.args) == {one, other}


def _as_float(value: Any) -> Any:
    """The expression of an operand of an operation on floats."""
    import sympy  # type: ignore[import-untyped]

    return expression_of(torch.sym_float(value.number)) if value.symbolic else sympy.Float(value.host)


def operands_of(recorder: Recorder, value: Any) -> list[Any]:
    """What Python computes a symbolic number of; nothing for one that is there, or read from a tensor."""
    node = value._node
    if value.source is not None or node is None or node.op != "call_function":
        return []
    known = arguments_of(recorder, node)
    are_numbers = (operand is not None and operand.cls in (int, float, bool) for operand in known)
    return known if all(are_numbers) else []


def _has_floats(recorder: Recorder, value: Any) -> bool:
    """Whether a number is a float that varies, or is computed of one."""
    left, seen = [value], set[int]()
    while left:
        number = left.pop()
        if not number.symbolic or number.cls is int or id(number) in seen:
            continue  # ints made of floats are symbols of their own
        seen.add(id(number))
        operands = operands_of(recorder, number)
        if not operands and number.cls is float:
            return True
        left += operands
    return False


def is_simplified(recorder: Recorder, value: Any) -> bool:
    """Whether a number is computed of ints, and not as it is written: `(n + 1e17) - 1e17` is `n` to torch."""
    if not value.symbolic or value.cls is int:
        return False
    operands = operands_of(recorder, value)
    if operands and value.cls is float and not _is_as_written(value, operands):
        return True
    return any(is_simplified(recorder, operand) for operand in operands)


def _is_plain(recorder: Recorder, value: Any) -> bool:
    """Whether a number is a symbol by itself, or finite, so that comparing it tells only what is compared."""
    if not value.symbolic:
        return math.isfinite(value.host)
    if value.cls is not float or not operands_of(recorder, value):
        return True
    return not (_has_floats(recorder, value) or is_simplified(recorder, value))


def _are_one(left: Any, right: Any) -> bool:
    return bool(left.symbolic and right.symbolic and expression_of(left.number) == expression_of(right.number))


def decided_again(trace: Trace, value: Any) -> bool | float | None:
    """What a float that is computed of existing ones is, or a condition on them, as CPython computes it now, and under
    a guard at each call; None for one that torch's symbols decide."""
    recorder = value.recorder
    is_float = value.cls is float and bool(operands_of(recorder, value))
    if not is_float and (value.cls is not bool or not takes_for_real(recorder, value)):
        return None
    found = condition_on_existing(recorder, value)
    hosts = {known.source: hint_of(known.number) for known in recorder.shapes.symbols.values()}
    if found is None or not all(source in hosts for source in found.sources):
        return None
    refuse_drawn(trace, value)
    try:
        outcome = value.cls(found.compute(*(hosts[source] for source in found.sources)))
    except (ArithmeticError, TypeError, ValueError):
        return None  # what raised it has been met before
    if is_float:
        fix(trace, found.source, outcome)
    else:
        assumed = found if outcome else found.negated()
        trace.guard(Predicate(assumed.sources, assumed.compute, assumed.told, FOR_BRANCHES))
    return outcome
