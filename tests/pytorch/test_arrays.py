"""NumPy's arrays in compiled functions: operations of the graph where torch gives what NumPy gives.

Of the data types that two operands may have, `STATOR_FACTS=all` tries all; else each function a third, and the next
function another.
"""

from __future__ import annotations

import operator
import os
from typing import Any

import numpy as np
import pytest
import torch
import torch._numpy

import stator
from tests.pytorch.programs import agree, assert_same

#: of how many combinations one is tried
OF = 1 if os.environ.get("STATOR_FACTS") == "all" else 3


def a() -> Any:
    return np.arange(12, dtype="float32").reshape(3, 4)


def i() -> Any:
    return np.arange(1, 7).reshape(2, 3)


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "arithmetic": (lambda a: (a + 1, 2 - a, a * a, a / 2, 1 / (a + 1), a // 2, a % 3, a**2, -a, abs(a), a @ a.T), a),
    "comparison": (lambda a: (a > 3, a == a, (a > 3) & (a < 7), ~(a > 3), np.where(a > 3, 1.0, 0.1)), a),
    "integers": (lambda a: (a / 2, a / a, 2 / a, np.sqrt(a), a.mean(), a.std(), a.sum(), a * 0.5, a // 2, a**2), i),
    "scalars": (lambda a: (a.sum(), a.max() + 1, a[0, 0], a.argmax(), float(a.min()), a.sum() * 2.0, len(a)), a),
    "number types": (lambda a: (np.float64(a.sum()), a + np.float32(1), a.astype(int), a.astype(np.float16)), a),
    "views": (lambda a: (a.T, a[1:, ::2], a.reshape(-1), a[None], a.ravel(), a.real), a),
    "copies": (lambda a: (a.copy(), a.T.copy(), a.flatten(), a[[0, 2]], a[np.argsort(-a[:, 0])]), a),
    "metadata": (lambda a: (a.shape, a.ndim, a.size, a.dtype == np.float32, str(a.dtype), a.T.shape, a.itemsize), a),
    "functions": (lambda a: (np.stack([a, a]), np.split(a, 3), np.linalg.norm(a), np.clip(a, 1, 2), np.ptp(a)), a),
    "creation": (lambda n: (np.zeros(n), np.ones((2, n), dtype=np.float32), np.arange(n), np.full(n, 2.5)), lambda: 3),
    "known": (lambda n: (np.prod([2, n]), np.sqrt(2.0 * n), np.float32(n) * 3), lambda: 3),
    "reversed": (lambda a: (a[::-1], a[:, ::-1].sum(0), a[::-1].copy(), a[::-1, ::-1][1], np.flip(a, 0) + 1), a),
    "reversed and laid out": (lambda a: (np.ascontiguousarray(a[:, ::-1]), a.T[::-1] * 2, a[::-1].reshape(-1)), a),
    "reversed as a tensor": (lambda a: torch.from_numpy(a[:, ::-1].copy()) + 1, a),
    "lists": (lambda a: (a[0].tolist(), a[::-1].tolist()[0], [float(x) for x in a[0]]), a),
    "in lists": (lambda a: (np.array([a, a + 1]), np.array([[a[0, 0], 2], [a.max(), 3.5]]), np.asarray([a[0]] * 2)), a),
    "in lists, of a type": (lambda i: (np.array([i[0], i[1]], dtype=np.float32), np.array([], dtype=int)), i),
    "alike, of a type": (lambda i: (np.ones_like(i, dtype=float), np.zeros_like(i / 2, dtype=np.int32)), i),
    "padding": (lambda a: (np.pad(a, 1), np.pad(a, ((0, 1), (2, 0)), constant_values=3)), a),
    "iteration": (lambda a: [row.sum() for row in a], a),
    "scalar argument": (lambda s: (s * 2, float(s), s + 1), lambda: np.float32(3.5)),
    "tensors of arrays": (lambda a: (torch.from_numpy(a) + 1, torch.tensor(a), torch.as_tensor(a.mean())), a),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    fn, make = FUNCTIONS[name]
    agree(lambda: (fn, (make(),)), rtol=1e-6)


FAILING: dict[str, Any] = {
    "shapes": lambda a: a + np.zeros(5),
    "reshape": lambda a: a.reshape(5, 5),
    "strides": lambda a: torch.from_numpy(a[::-1]),
    "strides of a copy": lambda a: torch.tensor(a[::-1]),
    "gradient": lambda a: torch.ones(3, requires_grad=True).numpy(),
}


@pytest.mark.parametrize("name", FAILING)
def test_numpy_words_the_error(name: str) -> None:
    agree(lambda: (FAILING[name], (a(),)))


def test_writes_reach_the_array_and_the_tensor() -> None:
    def program(array: Any, tensor: Any) -> Any:
        array += 1
        row = array[0]
        row *= 2
        array[1, :] = 7
        tensor.numpy()[0] = 5
        return array, tensor, torch.from_numpy(array)

    agree(lambda: (program, (a(), torch.zeros(3))))


def test_results_share_memory_as_they_do_eagerly() -> None:
    def program(array: Any, tensor: Any) -> Any:
        return array[1:], array.copy(), tensor.numpy(), torch.from_numpy(array), array[0, 0]

    array, tensor = a(), torch.zeros(3)
    view, copy, of_tensor, of_array, scalar = stator.compile(program, backend="eager", fullgraph=True)(array, tensor)
    array[...] = 100
    tensor += 1
    assert view[0, 0] == 100 and of_array[0, 0] == 100 and of_tensor[0] == 1
    assert copy[0, 0] == 0 and scalar == 0 and type(scalar) is np.float32


def test_a_reversed_view_shares_memory() -> None:
    def program(array: Any) -> Any:
        view = array[::-1]
        total = view[0].sum()
        array[0] = 50
        return view, view[1:], total

    array = a()
    view, part, total = stator.compile(program, backend="eager")(array)
    assert view[-1, 0] == 50 and view.strides == (-16, 4) and part.base is not None and total == a()[2].sum()
    array[2, 0] = 70
    assert view[0, 0] == 70


WRITTEN: dict[str, Any] = {
    "the view": lambda a: (operator.setitem(a[::-1], 0, 5), a.sum())[1],
    "a part of it": lambda a: (operator.setitem(a[::-1][1:], 0, 5), a.sum())[1],
    "the view, in place": lambda a: (np.add(a[::-1], 1, out=a[::-1]), a.sum())[1],
    "what it shows": lambda a: (lambda view: (operator.setitem(a, 0, 5), (view + 1).sum())[1])(a[::-1]),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_writes_through_a_reversed_view_break(name: str) -> None:
    wanted, found = a(), a()
    assert_same(stator.compile(WRITTEN[name], backend="eager")(found), WRITTEN[name](wanted), name)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_reversed_views_of_other_sizes(backend: str) -> None:
    compiled = stator.compile(lambda a: (a[::-1] * 2, a[:, ::-1].copy(), a[::-1]), backend=backend, fullgraph=True)
    for n in (4, 5, 7):
        array = np.arange(3.0 * n).reshape(n, 3)
        for got, want in zip(compiled(array), (array[::-1] * 2, array[:, ::-1], array[::-1]), strict=True):
            assert np.array_equal(got, want)


def test_a_pipeline_through_numpy_is_one_graph() -> None:
    def program(x: Any) -> Any:
        array = x.numpy()
        scaled = (array - array.mean(axis=0)) / (array.std(axis=0) + 1e-5)
        back = torch.from_numpy(scaled[np.argsort(scaled[:, 0])].copy())
        return x + back, float(np.linalg.norm(array))

    agree(lambda: (program, (torch.randn(4, 8),)), graphs=1, rtol=1e-5)
    agree(lambda: (program, (torch.randn(4, 8),)), backend="aot_eager", rtol=1e-5)


def test_arrays_are_guarded() -> None:
    def program(array: Any) -> Any:
        return array * 2, array.shape

    compiled = stator.compile(program, backend="eager")
    for array in (a(), a().astype("float64"), a().T, a()[::-1], a().astype(object), a()[:2], np.float32(3)):
        got, want = compiled(array), program(array)
        assert type(got[0]) is type(want[0]) and got[0].dtype == want[0].dtype and got[1] == want[1]
        assert np.array_equal(got[0], want[0])


def test_sizes_become_symbols() -> None:
    compiled = stator.compile(lambda a: (np.zeros(a.shape[0]), (a * 2).sum(0)), backend="eager")
    stator.reset()
    for n in (5, 6, 7, 8):
        zeros, total = compiled(np.ones((n, 3)))
        assert zeros.shape == (n,) and total.tolist() == [2.0 * n] * 3
    assert stator.stats().graphs == 2


BY_NUMPY: dict[str, Any] = {  # functions that torch's own NumPy does not have, or has otherwise
    "log1p": lambda a: [np.log1p(a) * 2],
    "norm": lambda a: [np.linalg.norm(a, axis=1, keepdims=True) + a],
    "two of one kind": lambda a: (np.log1p(a), np.expm1(a), np.log1p(a[0])),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", BY_NUMPY)
def test_functions_at_sizes_that_vary(name: str, backend: str) -> None:
    compiled = stator.compile(BY_NUMPY[name], backend=backend, fullgraph=True)
    for n in (4, 5, 6, 9):
        a = np.arange(n * 3, dtype="float32").reshape(n, 3)
        for got, want in zip(compiled(a), BY_NUMPY[name](a), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6, strict=True)
    assert stator.stats().graphs == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_error_of_one_size_is_not_that_of_another(backend: str) -> None:
    def program(a: Any) -> Any:
        try:
            return np.cross(a, a + 1)
        except ValueError as e:
            return str(e)

    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for n in (3, 33, 34, 3, 5, 3):
        want, got = program(np.arange(float(n))), compiled(np.arange(float(n)))
        assert type(got) is type(want) and np.array_equal(got, want), n


BREAKING: dict[str, Any] = {
    "a branch": lambda a: 1 if a.sum() > 3 else 2,
    "a result that torch makes otherwise": lambda a: np.linalg.svd(a[:2, :2]).S,
    "a tensor among the arrays": lambda a: np.add(a, torch.ones(3, 4)),
    "objects": lambda a: a.astype(object),
}


@pytest.mark.parametrize("name", BREAKING)
def test_what_breaks(name: str) -> None:
    agree(lambda: (BREAKING[name], (a(),)), breaks=1, rtol=1e-6)


def checked(x: Any, step: int = 2) -> Any:
    """The sizes are known; of the contents the trace assumes that they are no mistake."""
    remainder = np.array(x.shape) % np.power(step, 2) > 0
    if remainder.any():
        wrong = (np.where(remainder)[0] + 2).tolist()
        raise ValueError(f"dimensions {wrong} of {x.shape}")
    if (x.numpy() < 0).any():
        least = x.min().item()
        raise ValueError(f"negative: {least}")
    return x * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_branch_on_a_scalar_of_numpy_that_only_raises(backend: str) -> None:
    compiled = stator.compile(checked, backend=backend)
    for x in (torch.ones(4, 8), torch.ones(8, 4), torch.ones(4, 5), -torch.ones(4, 8), torch.zeros(12, 4)):
        assert raised_or_given(compiled, x) == raised_or_given(checked, x)
    assert not stator.stats().breaks


def raised_or_given(fn: Any, x: Any) -> Any:
    try:
        return fn(x).tolist()
    except ValueError as e:
        return str(e)


# -- data types -------------------------------------------------------------------------------------------------------

TYPES = "? b h i l B H I L e f d F D".split()
UFUNCS = sorted(name for name in dir(torch._numpy) if isinstance(getattr(np, name, None), np.ufunc))


def of_type(code: str) -> Any:
    if code == "?":
        return np.array([True, False, True, True])
    if code in "FD":
        return np.array([1 + 2j, -1, 0.5j, 3], dtype=code)
    return np.array({"u": [0, 1, 2, 200], "i": [-3, 0, 1, 100]}.get(np.dtype(code).kind, [-1.5, 0, 2, 7.25]), code)


def outcome(fn: Any, *args: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            return fn(*args)
    except Exception as e:
        return type(e), str(e)


def assert_equal_arrays(got: Any, want: Any, where: str) -> None:
    if isinstance(want, tuple):
        assert type(got) is tuple and len(got) == len(want), (where, got, want)
        for mine, theirs in zip(got, want, strict=True):
            assert_equal_arrays(mine, theirs, where)
        return
    assert type(got) is type(want), (where, got, want)
    if not isinstance(want, np.ndarray | np.generic):
        assert got == want, where
        return
    assert got.dtype == want.dtype and got.shape == want.shape, (where, got, want)
    rtol = {"e": 2e-3, "f": 1e-5, "F": 1e-5}.get(want.dtype.char, 1e-9)
    assert np.allclose(got, want, rtol=rtol, atol=rtol, equal_nan=True), (where, got, want)


@pytest.mark.parametrize("name", UFUNCS)
def test_universal_functions_have_numpys_data_types(name: str) -> None:
    ufunc = getattr(np, name)
    if ufunc.nin == 1:
        programs = [(ufunc, code, (of_type(code),)) for code in TYPES]
    else:
        pairs = [(code, other) for code in TYPES for other in {code, "b", "f"}]
        programs = [(ufunc, f"{c}{o}", (of_type(c), of_type(o))) for c, o in pairs]
        for code in TYPES:
            for number in (3, 2.5):
                programs.append((lambda x, n=number: ufunc(x, n), f"{code} {number}", (of_type(code),)))
                programs.append((lambda x, n=number: ufunc(n, x), f"{number} {code}", (of_type(code),)))
        programs = programs[UFUNCS.index(name) % OF :: OF]
    for program, where, args in programs:
        compiled = stator.compile(lambda *args, program=program: program(*args), backend="eager")
        assert_equal_arrays(outcome(compiled, *args), outcome(program, *args), f"{name} {where}")


def test_integers_compare_with_floats_in_double_precision() -> None:
    agree(lambda: (lambda a: (a > 16777216.5, a == np.float32(16777216)), (np.array([16777217, 16777216]),)))


SCALARS = ("bool_", "int8", "int64", "uint16", "float16", "float64", "complex64")
OPERATORS = "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor lt le eq ne gt ge".split()
PARTNERS: dict[str, Any] = {
    "int": lambda: 3,
    "big": lambda: 300,
    "float": lambda: 2.5,
    "bool": lambda: True,
    "list": lambda: [1, 2],
    "tensor": lambda: torch.arange(1, 4),
    "floats": lambda: torch.arange(1.0, 4),
    "int8": lambda: np.int8(5),
    "float32": lambda: np.float32(2.5),
    "array": lambda: np.arange(1, 4),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", SCALARS)
def test_operators_of_scalars(kind: str, backend: str) -> None:
    first, second = (getattr(np, kind)(n) for n in ((1, 0) if kind == "bool_" else (3, 2)))
    for number, name in enumerate(OPERATORS if backend == "eager" else ("mul", "truediv", "lt")):
        fn = getattr(operator, name)
        for partner, make in list(PARTNERS.items())[(number + SCALARS.index(kind)) % OF :: OF]:
            for program in (lambda s, o, fn=fn: fn(s, o), lambda s, o, fn=fn: fn(o, s)):
                compiled = stator.compile(lambda s, o, program=program: program(s, o), backend=backend)
                for scalar in (first, second):
                    got, want = outcome(compiled, scalar, make()), outcome(program, scalar, make())
                    if isinstance(want, torch.Tensor):
                        assert got.dtype == want.dtype and torch.allclose(got, want, equal_nan=True), (name, partner)
                    else:
                        assert_equal_arrays(got, want, f"{name} {partner}")


USES: dict[str, Any] = {
    "range": lambda s: list(range(s)),
    "index": lambda s: [10, 20, 30, 40][s],
    "shape": lambda s: torch.zeros(s).shape,
    "view": lambda s: torch.arange(6.0).reshape(s, -1).shape,
    "bound": lambda s: torch.arange(6.0)[:s],
    "branch": lambda s: 1 if s > 2 else 2,
    "key": lambda s: {3: 1, 2: 5}[s],
    "division": lambda s: s / 2,
}


@pytest.mark.parametrize("name", USES)
def test_uses_of_integers(name: str) -> None:
    compiled = stator.compile(USES[name], backend="eager")
    for scalar in (np.int64(3), np.int64(2), np.int8(3)):
        assert_same(compiled(scalar), USES[name](scalar), name)


def test_tensors_of_one_float_in_double_precision() -> None:
    # AOTAutograd takes the elements of such inputs for symbols.
    compiled = stator.compile(lambda x: (x > 2, x * 3), backend="aot_eager")
    for n in (3.0, 1.0):
        assert [t.item() for t in compiled(torch.tensor(n, dtype=torch.float64))] == [n > 2, n * 3]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_base_of_an_array_is_no_tensor(backend):
    """`scipy` asks whether an array is a small part of another: `array.size < array.base.size // 2`."""
    compiled = stator.compile(lambda a: a * 2 + 1, backend=backend)
    for n in (3, 4, 5):
        made = compiled(np.arange(n))
        assert made.base is None or made.base.size == n


def test_a_vectorized_function_breaks_once() -> None:
    known = np.vectorize(lambda v, w: v * w + 1)

    def program(a: Any) -> Any:
        b = a + 1
        return np.vectorize(lambda v: v * 2 if v > 4 else v)(b) - 1, known(b, 2.0)

    agree(lambda: (program, (a(),)), breaks=2)


INDICES: dict[str, Any] = {
    "rows": lambda x, i: x[i],
    "columns": lambda x, i: x[:, i] * 2,
    "elements": lambda x, i: x[i, i],
    "and a number": lambda x, i: x[i, 1],
    "two dimensions": lambda x, i: x[np.stack([i, i + 1])],
    "mask": lambda x, i: x[:3][i > 0],
    "made inside": lambda x, i: x[np.arange(x.shape[0])[1::2]],
    "none": lambda x, i: x[i[:0]],
    "written to": lambda x, i: x.clone().index_fill_(0, torch.from_numpy(i.astype(np.int64)), 3.0)[i],
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", INDICES)
def test_arrays_as_indices_of_tensors(name: str, backend: str) -> None:
    program = INDICES[name]
    for dtype in (np.int64, np.int32, np.int8):
        compiled = stator.compile(program, backend=backend, fullgraph=True)
        for rows in (4, 5, 7):
            i, outcomes = np.array([2, 0, 2], dtype=dtype), []
            for run in (program, compiled):
                x = torch.linspace(-1, 1, rows * 5).reshape(rows, 5).requires_grad_()
                result = run(x, i)
                result.sum().backward()
                outcomes.append((result, x.grad))
            torch.testing.assert_close(*outcomes)


def test_arrays_as_indices_of_what_is_written() -> None:
    def program(x: Any, i: Any) -> Any:
        x[i] = 1.0
        x[:, i] += 2.0
        return x * 2

    compiled = stator.compile(program, backend="inductor", fullgraph=True)
    for rows in (4, 5, 7):
        i = np.array([2, 0])
        x, y = torch.zeros(rows, 5), torch.zeros(rows, 5)
        assert torch.equal(compiled(x, i), program(y, i)) and torch.equal(x, y)


def test_arrays_that_are_no_indices_for_the_graph() -> None:
    for i in (np.array([2.0, 0.0]), np.array([2, 0], dtype=np.uint8), np.array(1), np.arange(3)[::-1]):
        x = torch.arange(6.0).reshape(3, 2)
        outcomes = []
        for run in ((lambda x, i: x[i]), stator.compile(lambda x, i: x[i], backend="eager")):
            try:
                outcomes.append(run(x, i).tolist())
            except (IndexError, ValueError) as e:
                outcomes.append(str(e))
        assert outcomes[0] == outcomes[1]


def test_arrays_as_indices_are_shown_to_subclasses_as_they_are() -> None:
    seen: list[Any] = []

    class Shown(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append([type(arg) for arg in args])
            return super().__torch_function__(function, types, args, kwargs or {})

    def program(x: Any, i: Any) -> Any:
        x = x.as_subclass(Shown)
        x[i] = 3.0
        return x[i].as_subclass(torch.Tensor) + 1

    for rows in (3, 5):
        outcomes = []
        for run in (program, stator.compile(program, backend="eager")):
            seen.clear()
            outcomes.append((run(torch.zeros(rows, 2), np.array([2, 0])).tolist(), list(seen)))
        assert outcomes[0] == outcomes[1]
