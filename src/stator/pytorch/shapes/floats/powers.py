"""Powers of floats: torch assumes that the base is not negative, without a guard where the graph reads it.

    loss = x.sum().item()
    y = x * loss ** 2
    if loss >= 0:               # would not be asked

A power of existing numbers is computed by CPython at each call. One that the graph computes has a function of its own,
which assumes nothing.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.shapes.computed import compute_again
from stator.pytorch.shapes.symbols import compute, method_of, specialise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stator.pytorch.types import Function
    from stator.space.protocol import Handler
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["models", "real_power"]


def models() -> dict[int, Handler]:
    """The models of `**` by the ids of the host callables, for calls.call_hook."""
    return {
        id(cls.__dict__[name]): method_of(operator.pow, swap=name == "__rpow__", record=_power)
        for cls in (int, float)
        for name in ("__pow__", "__rpow__")
    }


def real_power(base: Any, exponent: Any) -> Any:
    """`base ** exponent` of floats as a float; raises TypeError of what is complex, as of `(-2.0) ** 0.5`."""
    if isinstance(base, torch.SymInt | torch.SymFloat):
        return internals.float_pow(torch.sym_float(base), exponent)
    if isinstance(exponent, torch.SymInt | torch.SymFloat):
        return internals.reflected_float_pow(torch.sym_float(exponent), base)
    power = base**exponent
    if isinstance(power, complex):
        raise TypeError(f"{base} ** {exponent} is {power}, and no float")
    return power


def _power(space: Space, function: Function, operands: Sequence[Any]) -> Value:
    """Record `base ** exponent` of numbers, some of them symbolic."""
    base, exponent = operands
    if not (_is_float(base, exponent) or base.constant) or not _may_be_negative(base):
        return compute(space, function, operands)
    again = compute_again(space, function, list(operands))
    if again is not None:
        return again
    if any(each.symbolic and hint_of(each.number) is None for each in operands):
        return compute(space, real_power, operands)
    complex_ = specialise(space, function, list(operands), {})
    assert complex_ is not None
    return complex_


def _is_float(base: Any, exponent: Any) -> bool:
    """Whether a power is one of floats: those of ints are where the exponent is negative."""
    return float in (base.cls, exponent.cls) or (exponent.constant and exponent.host < 0)


def _may_be_negative(base: Any) -> bool:
    if not base.symbolic:
        return bool(base.host < 0)
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return not statically_known_true(base.number >= 0)
