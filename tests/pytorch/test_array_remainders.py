"""Remainders of NumPy's floats: a zero has the sign of the divisor, where torch gives it that of the dividend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stator

DIVIDENDS = np.array([-4.0, 4.0, -0.0, 0.0, 3.5, -3.5, np.inf, np.nan])
DIVISORS = np.array([2.0, -2.0, 3.0, -3.0, -1.5, 0.5, 2.0, 1.0])


def operators(a: Any, b: Any) -> Any:
    return a % b, a % 2, 7.0 % b, np.divmod(a, b), divmod(a, -2), a[::2] % b[1::2], a.sum() % np.float32(-3)


def functions(a: Any, b: Any) -> Any:
    return np.remainder(a, b), np.mod(a, b[:1]), np.mod(a, b, dtype=a.dtype), a // b, np.fmod(a, b)


def in_place(a: Any, b: Any) -> Any:
    c, d, e = a.copy(), a.copy(), a.copy()
    c %= b
    d %= -2
    whole = e[1:]
    e %= e
    return c, d, e, whole


def of_integers(a: Any, b: Any) -> Any:
    c, d = np.rint(np.nan_to_num(a, posinf=5)).astype(np.int64), np.rint(b * 2).astype(np.int64)
    return c % d, divmod(c, d), np.mod(c, -3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("program", [operators, functions, in_place, of_integers], ids=lambda f: f.__name__)
def test_remainders_are_numpys(program: Any, dtype: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for count in (8, 6, 4):
        a, b = DIVIDENDS[:count].astype(dtype), DIVISORS[:count].astype(dtype)
        assert repr(compiled(a, b)) == repr(program(a, b))
