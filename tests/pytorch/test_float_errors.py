"""Floating-point errors that depend on the data: NumPy's warnings and exceptions are those of eager execution."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stator
from tests.pytorch.programs import agree

FLOATS: dict[str, list[float]] = {
    "good": [0.5, 0.25, 0.75],
    "negative": [-1.0, 0.5, -2.0],
    "zero": [0.0, 0.5, 1.0],
    "inf": [np.inf, 0.5, -np.inf],
    "nan": [np.nan, 0.5, 1.0],
    "huge": [3e38, -3e38, 3e38],
    "double": [1.7e308, -1.7e308, 1.7e308],
}
INTEGERS: dict[str, list[int]] = {"good": [7, 5, 3], "zero": [0, 1, 2], "least": [-(2**31), -1, 1], "-1": [-1, -1, 9]}
UNARY = (
    *("sqrt exp exp2 expm1 log log10 log1p log2 sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh".split()),
    *("arctanh square negative absolute sign floor ceil trunc rint isnan isfinite signbit reciprocal fabs".split()),
    *("nan_to_num",),
    *("sum arccosh mean var std prod cumsum cumprod max min argmax argsort sort median ptp diff round sinc".split()),
    *("radians degrees positive conjugate isinf all any flip copy nonzero linalg.norm fft.fft gradient".split()),
)
BINARY = (
    *("add subtract multiply divide floor_divide remainder fmod power float_power maximum minimum fmax fmin".split()),
    *("arctan2 hypot logaddexp copysign nextafter heaviside less equal dot outer inner matmul divmod allclose".split()),
    *("isclose array_equal convolve cross".split()),
)


def shown(fn: Callable[..., Any], action: Any, *args: Any) -> Any:
    """The outcome of a call, and what is shown."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        try:
            result = fn(*args)
        except Exception as e:
            result = (type(e), str(e))
    return result, [(w.category, str(w.message), w.filename, w.lineno) for w in caught]


def check(program: Any, calls: list[Any], action: str = "always", backend: str = "eager") -> Any:
    """Call a program eagerly and compiled with these arguments in turn; the warnings and errors must be the same."""
    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for number, make in enumerate(calls):
        registry = globals().setdefault("__warningregistry__", {})
        registry.clear()
        want = shown(program, action, *make())
        registry.clear()
        got = shown(compiled, action, *make())
        assert got[1] == want[1], (number, got, want)
        assert type(got[0]) is type(want[0]), (number, got, want)
        if type(want[0]) is tuple and want[0] and isinstance(want[0][0], type):
            assert got[0] == want[0]
    return stator.stats()


def function(name: str) -> Any:
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part)
    return found


def arrays(code: str) -> dict[str, Any]:
    made = {}
    for name, values in (INTEGERS if code in "bil" else FLOATS).items():
        with np.errstate(all="ignore"):
            made[name] = np.array(values).astype(code)
            if name == "least" and code in "bl":
                made[name][0] = np.iinfo(code).min
    made["long"] = np.tile(made["zero"], 11)  # computed several elements at a time
    if code in "FD":
        made["imaginary"] = np.array([1 + 2j, np.inf * 1j, 0], code)
    return made


def each(code: str) -> list[Any]:
    """Makers of arguments: what is computed without an error, and each of the others after it, twice."""
    good, *others = arrays(code).values()
    return [lambda a=a: (a.copy(),) for bad in (*others, *others) for a in (good, bad)]


@pytest.mark.parametrize("code", list("efdbilFD"))
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name: str, code: str) -> None:
    fn = function(name)
    check(lambda a: fn(a), each(code))


@pytest.mark.parametrize("code", list("efdbilFD"))
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays(name: str, code: str) -> None:
    fn = function(name)
    data = arrays(code)
    calls = []
    for bad in data.values():
        good = np.resize(data["good"], bad.shape)
        calls += [(good, good), (good, bad), (good, good), (bad, good), (bad, bad), (bad, bad[::-1].copy())]
    check(lambda a, b: fn(a, b), [lambda pair=pair: (pair[0].copy(), pair[1].copy()) for pair in calls])


def store(a: Any, b: Any) -> Any:
    a[1:] = b[1:]
    return a


def in_place(a: Any, b: Any) -> Any:
    view = a[1:]
    view /= b[1:]
    a *= 2
    return a, view + 1


def several_lines(a: Any, b: Any) -> Any:
    c = np.sqrt(a) + 1
    d = c / b
    e = [np.log(x) for x in (a, b)]
    return c, d, e


def without_use(a: Any, b: Any) -> Any:
    np.log(a)
    b / a
    return a + b


def overwritten(a: Any, b: Any) -> Any:
    c = np.sqrt(a)
    c[:] = 1
    return c + b


def empty(a: Any, b: Any) -> Any:
    c = np.sqrt(a[:1])
    return c + b[:0]


def summed_in_another_order(a: Any, b: Any) -> Any:
    return (a.sum(), a.mean(axis=0), np.cumsum(a), a @ b, np.outer(a, b).sum(axis=0))


def cut_short(a: Any, b: Any) -> Any:
    return np.clip(a / b, -1, 1), np.exp(-np.abs(1 / b)), np.maximum(np.sqrt(a), 0)


def in_a_callee(a: Any, b: Any) -> Any:
    return several_lines(a + 1, b)[0], without_use(b, a)


def caught(a: Any, b: Any) -> Any:
    try:
        return np.sqrt(a) + b
    except (RuntimeWarning, FloatingPointError) as e:
        return str(e)


PROGRAMS = (several_lines, without_use, overwritten, empty, summed_in_another_order, cut_short, in_a_callee, caught)
WRITING = (store, in_place)
BAD = [name for name in FLOATS if name != "good"]


def pairs(order: list[str], code: str = "d") -> list[Any]:
    data = arrays(code)
    return [lambda n=name: (data[n].copy(), np.resize(data["good"], 3)) for name in order] + [
        lambda n=name: (np.resize(data["good"], 3), data[n].copy()) for name in order
    ]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("action", ["always", "default", "once", "error", "ignore"])
@pytest.mark.parametrize("program", PROGRAMS + WRITING)
def test_programs(program: Any, action: str, backend: str) -> None:
    check(program, pairs(["good", *(name for bad in BAD for name in (bad, "good", bad, bad, "good"))]), action, backend)


def test_what_was_written_is_put_back() -> None:
    for backend in ("eager", "aot_eager"):
        for program in WRITING:
            stator.reset()
            compiled = stator.compile(program, backend=backend, fullgraph=True)
            for bad in FLOATS:
                want, got = [(arrays("d")["good"], arrays("d")[bad]) for _ in range(2)]
                assert shown(program, "always", *want)[1] == shown(compiled, "always", *got)[1]
                assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(want, got, strict=True))
            assert stator.stats().graphs == 1


CASTS = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "bool")


@pytest.mark.parametrize("to", CASTS)
def test_casts(to: str) -> None:
    for code in "efdil":
        check(lambda a: a.astype(to), each(code))
        check(lambda a: np.asarray(a, dtype=to) + 1, each(code))
        check(lambda a: (c := np.zeros(a.shape, dtype=to), c.__setitem__(slice(None), a)), each(code))


@pytest.mark.parametrize("mode", ["ignore", "warn", "raise", "call", "print", "log"])
def test_what_is_done_about_errors(mode: str, capfd: Any) -> None:
    told: list[Any] = []

    class Log:
        def write(self, text: str) -> None:
            told.append(text)

    def told_of(call: Any) -> Any:
        told.clear()
        kinds = {kind: mode for kind in ("divide", "over", "invalid")}
        with np.errstate(**kinds, call=Log() if mode == "log" else lambda *what: told.append(what)):  # type: ignore[arg-type]
            outcome = shown(call, "always")
        return str(outcome), list(told), capfd.readouterr()

    for program in PROGRAMS:
        compiled = stator.compile(program, backend="eager")
        for make in pairs(["good", "zero", "negative", "good"]):
            assert told_of(lambda: compiled(*make())) == told_of(lambda: program(*make()))  # noqa: B023


def test_underflow() -> None:
    for mode in ("warn", "raise", "ignore"):
        with np.errstate(under=mode):  # type: ignore[arg-type]
            check(lambda a: np.exp(a) * 1e-300, [lambda: (np.ones(2),), lambda: (-700 * np.ones(2),)] * 2)


KEPT: dict[str, Any] = {
    "root": lambda a: np.sqrt(a) + 1,
    "quotient": lambda a: (1 / a, a // 2.0, a % 3.0, a**2.0),
    "reductions": lambda a: (a.sum(), a.mean(0), a.std(), np.linalg.norm(a)),
    "products": lambda a: a @ np.log(a),
    "casts": lambda a: a.astype(np.int64) // 3 + a.astype(np.float32).astype(np.int8),
    "moves": lambda a: np.concatenate([a, a])[1:].copy(),
    "standard": lambda a: (a - a.mean()) / (a.std() + 1e-5),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", KEPT)
def test_good_data_are_computed_by_one_graph(name: str, backend: str) -> None:
    agree(lambda: (KEPT[name], (np.array([0.5, 2.0, 3.0]),)), graphs=1, breaks=0, calls=4, backend=backend, rtol=1e-12)


def test_repeated_errors_break_the_graph() -> None:
    bad = lambda: (np.array([-1.0, 2.0]),)  # noqa: E731
    stats = check(KEPT["root"], [bad] * 6)
    assert stats.graph_breaks == 1 and "repeatedly" in stats.breaks[0].reason
    compiled = stator.compile(KEPT["root"], backend="eager", fullgraph=True)
    for _ in range(6):
        assert len(shown(compiled, "always", *bad())[1]) == 1


def test_what_is_ignored_costs_nothing() -> None:
    def nodes(action: str) -> int:
        sizes: list[int] = []

        def backend(gm: Any, inputs: Any) -> Any:
            sizes.append(len(gm.graph.nodes))
            return gm.forward

        shown(stator.compile(KEPT["root"], backend=backend), action, np.ones(3))
        return sizes[0]

    assert nodes("always") == nodes("ignore") + 1
    with np.errstate(all="ignore"):
        assert nodes("always") == nodes("ignore")


def test_other_warnings_of_numpys() -> None:
    check(lambda a: a.astype(np.float32), [lambda: (np.ones(2, dtype="D"),)] * 2)
    check(lambda a: a.mean(), [lambda: (np.ones(0),)] * 2)
    check(lambda a: a.var(ddof=3), [lambda: (np.ones(2),)] * 2)


LINALG: dict[str, Any] = {
    **{name: function(f"linalg.{name}") for name in ("inv", "det", "slogdet", "svd", "qr", "eigvalsh", "cholesky")},
    **{name: function(f"linalg.{name}") for name in ("pinv", "norm", "cond", "matrix_rank", "eig")},
    "solve": lambda a: np.linalg.solve(a, a),
    "power": lambda a: np.linalg.matrix_power(a, 3),
}


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra(name: str) -> None:
    matrices = [np.eye(2) * 2, np.zeros((2, 2)), np.eye(2) * 1e200, np.array([[np.nan, 1], [1, 2]])]
    for bad in matrices:
        check(lambda a: LINALG[name](a), [lambda bad=m: (bad.copy(),) for m in (matrices[0], bad, bad)])
