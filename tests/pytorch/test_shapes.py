"""Sizes and numbers that vary: static first, symbolic once they have varied, as marked, with sound guards."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import OrderedDict, deque
from typing import Any

import pytest
import torch

import stator
from tests.pytorch.programs import assert_same


class Counting:
    """A backend that keeps the graphs."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, inputs: Any) -> Any:
        self.graphs.append(gm)
        return gm.forward


def compiles(fn: Any, calls: list[tuple[Any, ...]], **options: Any) -> list[int]:
    """How many graphs there were after each call; each result is compared with eager's."""
    backend = Counting()
    compiled = stator.compile(fn, backend=backend, fullgraph=True, **options)
    counts = []
    for i, args in enumerate(calls):
        assert_same(compiled(*args), fn(*args), f"call {i}")
        counts.append(len(backend.graphs))
    return counts


def rows(*sizes: int) -> list[tuple[Any, ...]]:
    return [(torch.randn(n, 4),) for n in sizes]


def test_a_size_that_varies_becomes_symbolic() -> None:
    assert compiles(lambda a: a.sum(0) * a.shape[0], rows(3, 3, 5, 7, 100, 3)) == [1, 1, 2, 2, 2, 2]


INTEGERS: list[tuple[Any, Any]] = [
    (lambda a, n: a + n, lambda n: n),
    (lambda a, n: (a * 2)[: n % 4], lambda n: n),
    (lambda a, numbers: a * numbers["n"][0] + len(numbers), lambda n: {"n": (n, 3)}),
    (lambda a, n: (a * 2, n + 1), lambda n: n),
]


@pytest.mark.parametrize(("fn", "number"), INTEGERS)
def test_integers_that_are_given_are_symbols_if_all_is_dynamic(fn: Any, number: Any) -> None:
    calls = [(torch.randn(size, 4), number(n)) for size, n in ((5, 101), (6, 202), (7, 303))]
    assert compiles(fn, calls, dynamic=True) == [1, 1, 1]
    assert compiles(fn, calls) == [1, 2, 2]


def test_integers_that_modules_have_are_none() -> None:
    layer = torch.nn.Conv1d(4, 2, 3)
    compiled = stator.compile(layer, dynamic=True)
    for n in (5, 6, 7):
        assert_same(compiled(torch.ones(1, 4, n)), layer(torch.ones(1, 4, n)), n)
    assert stator.stats().graphs == 1


def test_sizes_zero_and_one_are_their_own() -> None:
    assert compiles(lambda a: a * 2, rows(3, 4, 1, 5, 1, 0)) == [1, 2, 3, 3, 3, 4]


def test_the_sizes_that_two_tensors_are_broadcast_to() -> None:
    def fn(a: Any, b: Any) -> Any:
        return a.expand(torch._C._infer_size(a.shape, b.shape)) * 2

    calls = [(torch.randn(n, 1, 4), torch.randn(m, 4)) for n, m in [(2, 3), (2, 5), (3, 6), (7, 7), (3, 1), (1, 1)]]
    assert compiles(fn, calls) == [1, 2, 3, 3, 4, 5]
    calls = [(torch.randn(n), torch.randn(n)) for n in (3, 5, 7)]
    assert compiles(fn, calls) == [1, 2, 2]
    compiled = stator.compile(fn, backend="eager", dynamic=True)
    for a, b in [(2, 3), (4, 5)]:
        with pytest.raises(
            RuntimeError, match=f"tensor a \\({a}\\) must match the size of tensor b \\({b}\\) at non-singleton"
        ):
            compiled(torch.ones(a), torch.ones(b))


def test_decisions_on_sizes_are_guarded() -> None:
    def fn(a: Any) -> Any:
        return a + 1 if a.shape[0] > 5 else a - 1

    assert compiles(fn, rows(3, 4, 5, 6, 7, 2)) == [1, 2, 2, 3, 3, 3]


def test_assumptions_on_sizes_are_told_in_the_programs_names() -> None:
    def fn(a: Any, b: Any) -> Any:
        return a + b if a.shape[0] % 4 == 0 else a - b

    before = len(stator.stats().recompile_log)
    pairs = [(torch.ones(n, 4), torch.ones(n, 4)) for n in (8, 12, 16, 18)]
    assert compiles(fn, pairs) == [1, 2, 2, 3]
    reason = stator.stats().recompile_log[before:][-1].reason
    assert reason == "no longer: a.size(0) % 4 == 0 (`a.size(0)` is 18)"


def test_joined_sizes_are_sizes() -> None:
    def fn(a: Any) -> Any:
        size = a.shape
        joined = (2, *size), (2,) + size, size + (3,), size + size  # noqa: RUF005
        return [(type(s) is torch.Size, a.new_zeros(s)) for s in joined]

    assert compiles(fn, rows(3, 5, 7)) == [1, 2, 2]


def test_arithmetic_of_sizes() -> None:
    def fn(a: Any) -> Any:
        n, m = a.shape
        half = n // 2
        return a.view(-1, m), a[:half], n * m + 1, n % 3, -n, n / 2, n**2, a.reshape(n * m), abs(n - 100), 2 * n - m

    assert compiles(fn, rows(4, 6, 8, 9))[-1] == 2


def test_equal_sizes_that_come_apart() -> None:
    calls = [(torch.randn(n, 4), torch.randn(m, 4)) for n, m in ((3, 3), (5, 5), (6, 6), (7, 1))]
    assert compiles(lambda a, b: a + b, calls)[2:] == [2, 3]


def test_symbolic_numbers_in_python() -> None:
    def fn(a: Any) -> Any:
        n = a.shape[0]
        table = {n: "n"}
        return (
            table[n],
            [n] * 2,
            list(range(n)),
            f"{n} rows",
            isinstance(n, int),
            max(n, 2),
            n in (4, 5),
            (n, 1) == (4, 1),
        )

    compiles(fn, rows(3, 4, 5, 6))


def test_loops_over_a_symbolic_size_are_unrolled_under_a_guard() -> None:
    def fn(a: Any) -> Any:
        total = a.sum() * 0
        for row in a:
            total = total + row.sum()
        return total, len(a)

    assert compiles(fn, rows(3, 4, 5)) == [1, 2, 3]


def test_an_int_that_varies_becomes_symbolic() -> None:
    calls = [(torch.ones(3), k) for k in (3, 4, 7, 9)]
    assert compiles(lambda a, k: (a * k + k, k // 2), calls) == [1, 2, 2, 2]


@pytest.mark.parametrize(
    "show",
    [
        lambda n: repr(OrderedDict(a=n, b=[n])),
        lambda n: repr(operator.methodcaller("m", n, 1, named=n)),
        lambda n: repr(slice(n, (n,))),
        lambda n: repr(itertools.count(n, n)),
        lambda n: [1].index(n),
        lambda n: deque([1]).index(n),
    ],
)
def test_text_of_what_holds_a_number_that_varies(show: Any) -> None:
    def told(n: int) -> Any:
        try:
            return show(n)
        except ValueError as e:
            return str(e), e.args

    compiles(told, [(5,), (6,), (7,)])


def test_a_float_that_varies_becomes_symbolic() -> None:
    calls = [(torch.ones(3), k) for k in (0.5, 0.25, 3.75, 1e9, -2.5)]
    assert compiles(lambda a, k: (a * k, k + 1), calls) == [1, 2, 2, 2, 2]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.0, 0.0, 1.0, True, 0])
def test_special_numbers_after_others(value: Any) -> None:
    calls = [(torch.ones(3), k) for k in (0.5, 2.5, value, 3.5, value)]
    compiles(lambda a, k: (a * k, str(k)), calls)


def test_a_float_then_an_int() -> None:
    compiles(lambda a, k: (a.long() * k, k), [(torch.ones(3), k) for k in (2, 3, 2.5, 4, 3.5)])


def test_dynamic_true_and_false() -> None:
    assert compiles(lambda a: a * 2, rows(3, 5, 7), dynamic=True) == [1, 1, 1]
    assert compiles(lambda a: a * 2, rows(3, 5, 7), dynamic=False) == [1, 2, 3]


def test_marks() -> None:
    def marked(n: int) -> Any:
        a = torch.randn(n, 4)
        torch._dynamo.mark_dynamic(a, 0)
        return (a,)

    assert compiles(lambda a: a.sum(0), [marked(3), marked(5)]) == [1, 1]

    def static(n: int) -> Any:
        a = torch.randn(n, 4)
        torch._dynamo.mark_static(a)
        return (a,)

    assert compiles(lambda a: a.sum(0), [static(3), static(5), static(6)]) == [1, 2, 3]


def test_a_mark_holds_where_an_entry_with_numbers_fits() -> None:
    def marked(n: int) -> Any:
        a = torch.randn(n, 4)
        stator.mark_dynamic(a, 0)
        return (a,)

    plain = (torch.randn(3, 4),)
    assert compiles(lambda a: a.sum(0), [plain, marked(3), marked(5), plain]) == [1, 2, 2, 2]
    (reason,) = [row.reason for row in stator.stats().recompile_log]
    assert "size 0 of `a` is marked as dynamic" in reason

    fixing = stator.compile(lambda a: a if a.shape[0] == 3 else a + 1, backend="eager")
    fixing(*plain)
    with pytest.raises(stator.errors.ConstraintViolationError):
        fixing(*marked(3))

    with stator.config.patch(allow_ignore_mark_dynamic=True):
        assert compiles(lambda a: a * 2 if a.shape[0] == 3 else a + 1, [marked(3)] * 3) == [1, 1, 1]


def test_parameters_are_never_symbolic() -> None:
    layers = [torch.nn.Linear(4, n) for n in (2, 3, 5)]
    calls = [(layer, torch.ones(2, 4)) for layer in layers]
    assert compiles(lambda layer, a: layer(a), calls) == [1, 2, 3]


def test_strides_of_dynamic_tensors_are_guarded() -> None:
    fn = lambda a: (a.stride(), a.is_contiguous(), a + 1)  # noqa: E731
    calls = [(torch.randn(n, 4),) for n in (3, 5)] + [(torch.randn(4, n).t(),) for n in (6, 7)]
    compiles(fn, calls)


def test_symbols_are_inputs_of_the_graph() -> None:
    seen: list[Any] = []

    def backend(gm: Any, inputs: Any) -> Any:
        seen.append([type(i) for i in inputs])
        return gm.forward

    compiled = stator.compile(lambda a: a.view(-1), backend=backend)
    for args in rows(3, 5):
        compiled(*args)
    assert seen == [[torch.Tensor], [torch.Tensor, torch.SymInt]]


def test_operations_that_take_no_symbols_get_numbers() -> None:
    gru = torch.nn.GRU(4, 3, batch_first=True).requires_grad_(False)
    calls = [(torch.randn(2, n, 4),) for n in (3, 5, 6, 5)]

    @torch.autocast("cpu", dtype=torch.bfloat16)  # else it is one operator, which takes them
    def f(a: Any) -> Any:
        return gru(a)[0] * 2, a.shape[1] + 1

    assert compiles(f, calls) == [1, 2, 3, 3]


def test_breaks_with_symbols_alive() -> None:
    def fn(a: Any) -> Any:
        n = a.shape[0] * 2
        b = a.view(n, -1)
        torch._dynamo.graph_break()
        return b + n, n

    compiled = stator.compile(fn, backend="eager")
    for args in rows(2, 3, 4, 5):
        assert_same(compiled(*args), fn(*args), "call")


def test_an_operation_on_symbols_runs_once_on_fake_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trace remembers outcomes by the expressions of the sizes, as the process does by the sizes."""
    from stator.pytorch.fake.fake_executor import FakeExecutor

    ran = []
    run = FakeExecutor.run
    monkeypatch.setattr(
        FakeExecutor, "run", lambda self, function, *rest: ran.append(function) or run(self, function, *rest)
    )

    def fn(a: Any) -> Any:
        for _ in range(20):
            rows, columns = a.shape
            a = (a.unsqueeze(1) * 3).view(rows, columns).relu()
        return a

    assert compiles(fn, [(torch.randn(6, 4),)], dynamic=True) == [1]
    assert len(ran) < 30


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_tensors_at_an_offset_are_remembered_as_others_are(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    """What was recorded before is not run once more for them."""
    from stator.pytorch.graph.propagation import FakePropagation

    def fn(a: Any) -> Any:
        for _ in range(3):
            rows, columns, _ = a.shape
            q, k, v = a.view(rows, columns, 3, 4).permute(2, 0, 1, 3).unbind(0)
            last = a.select(0, rows - 1)[:, :4]
            a = torch.cat([q.sin() + last, k * 2, torch.cat([v[:, 1:].cos(), v[:, :1]], 1)], 2)
        return a, q.shape, k.storage_offset(), v.is_contiguous(), a.norm()

    replays: list[FakePropagation] = []
    replay = FakePropagation.replay
    monkeypatch.setattr(FakePropagation, "replay", lambda self: replays.append(self) or replay(self))
    compiled = stator.compile(fn, backend=backend, fullgraph=True, dynamic=True)
    for size in (3, 5, 8):
        a, b = (torch.ones(size, size + 1, 12, requires_grad=True) for _ in range(2))
        assert_same(compiled(a), fn(b), f"size {size}")
        compiled(a)[0].sum().backward()
        fn(b)[0].sum().backward()
        torch.testing.assert_close(a.grad, b.grad)
    assert not replays


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("grad", [False, True])
def test_writes_in_place_are_remembered_as_other_operations_are(
    monkeypatch: pytest.MonkeyPatch, backend: str, grad: bool
) -> None:
    """A layer with `inplace=True` runs nothing of what was recorded before it."""
    from stator.pytorch.graph.propagation import FakePropagation

    def fn(a: Any) -> Any:
        for _ in range(3):
            b = (a * 2).relu_() + 1
            b += a.mean(0)
            a = b.mul_(0.5).tanh()
            if not grad:
                torch.nn.functional.hardswish(a, inplace=True)
                a[:, 0].mul_(0.5)
        return a, a.sum()

    replays: list[FakePropagation] = []
    replay = FakePropagation.replay
    monkeypatch.setattr(FakePropagation, "replay", lambda self: replays.append(self) or replay(self))
    compiled = stator.compile(fn, backend=backend, fullgraph=True, dynamic=True)
    for size in (3, 5, 8, 1):
        a, b = (torch.linspace(-1, 3, size * 4).view(size, 4).requires_grad_(grad) for _ in range(2))
        assert_same(compiled(a), fn(b), f"size {size}")
        if grad:
            compiled(a)[1].backward()
            fn(b)[1].backward()
            torch.testing.assert_close(a.grad, b.grad)
    assert not replays


def becomes_wide(a: Any, w: Any) -> Any:
    b = a * 1
    b.unsqueeze_(0)
    return b.add_(w), b.shape


def gets_gradients(a: Any, w: Any) -> Any:
    b = torch.zeros(a.shape[0], 4)
    b.add_(w)
    return b * a, b.requires_grad


def into_a_row(a: Any, w: Any) -> Any:
    b = a * 1
    b[0].add_(w)
    return b, b[1:].sub_(w).sum()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [becomes_wide, gets_gradients, into_a_row])
def test_writes_that_change_more_than_contents(fn: Any, backend: str) -> None:
    compiled = stator.compile(fn, backend=backend, dynamic=True)
    for size in (3, 5, 2):
        found = []
        for run in (compiled, fn):
            a, w = torch.ones(size, 4, requires_grad=True), torch.full((4,), 2.0, requires_grad=True)
            results = run(a, w)
            results[0].sum().backward()
            found.append((*results, a.grad, w.grad))
        assert_same(*found, f"size {size}")


def test_writes_that_do_not_fit_fail_as_in_eager() -> None:
    def fn(a: Any, b: Any) -> Any:
        return (a * 1).add_(b)

    compiled = stator.compile(fn, backend="eager", dynamic=True)
    for _ in range(2):
        assert_same(compiled(torch.ones(3, 4), torch.ones(4)), fn(torch.ones(3, 4), torch.ones(4)), "fits")
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            compiled(torch.ones(4), torch.ones(3, 4))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_tensors_at_an_offset_make_no_assumptions(backend: str) -> None:
    def fn(a: Any) -> Any:
        rest = a[3:, 1:]
        beyond = a[1:2].as_strided((a.shape[0], 2), (4, 1), 1)
        rest = rest.abs() + rest.shape[0]
        return rest, rest.sum(), beyond * 2, a[2:, 1::2].conj().contiguous(), a[2:].transpose(0, 1).is_contiguous()

    compiled = stator.compile(fn, backend=backend, dynamic=True)
    graphs = Counting()
    counting = stator.compile(fn, backend=graphs, dynamic=True)
    for args in rows(9, 6, 20):
        assert_same(compiled(*args), fn(*args), "call")
        assert_same(counting(*args), fn(*args), "call")
    assert len(graphs.graphs) == 1
    for args in rows(3, 4, 2):  # of no rows, of one, and of none again
        assert_same(compiled(*args), fn(*args), "call")


def test_each_data_dependent_size_is_its_own() -> None:
    def fn(a: Any, b: Any) -> Any:
        return a.nonzero(), b.nonzero(), a.nonzero() * 2

    many, few = torch.ones(5), torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0])
    assert compiles(fn, [(many, few), (few, many)], dynamic=True) == [1, 1]


def test_writes_through_views_of_symbolic_sizes() -> None:
    def fn(a: Any) -> Any:
        b = a * 2
        for i in range(3):
            b[1:].add_(i)
            b.view(-1).mul_(2)
            b.unsqueeze_(0)
            b = b.squeeze(0)
        return b, b.shape

    assert compiles(fn, [*rows(4), *rows(6)], dynamic=True)[0] == 1


# -- functions with a cache, asked about sizes ------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def halves(n: int, device: Any) -> list[int]:
    return [n // 2, n - n // 2]


def splitting(x: Any) -> Any:
    return x.split(halves(x.shape[0], x.device))


def changing(x: Any) -> Any:
    parts = halves(x.shape[0], x.device)
    parts.append(1)
    return x * sum(parts)


def keeping(x: Any) -> Any:
    return halves(x.shape[0], x.device), x + 1


@pytest.mark.parametrize(("fn", "graphs"), [(splitting, 2), (changing, None), (keeping, None)])
def test_cached_functions_of_sizes(fn: Any, graphs: int | None) -> None:
    inputs = [torch.randn(n) for n in (4, 5, 6, 7, 5, 6)]
    halves.cache_clear()
    want, known = [fn(x) for x in inputs], halves.cache_info()
    halves.cache_clear()
    stator.reset()
    compiled = stator.compile(fn, backend="eager")
    assert_same([compiled(x) for x in inputs], want, fn.__name__)
    assert halves.cache_info() == known
    if graphs is None:
        assert keeping(inputs[0])[0] is compiled(inputs[0])[0] or fn is changing  # the very object in the cache
    else:
        assert stator.stats().graphs == graphs and stator.stats().graph_breaks == 0


def test_sizes_read_from_tensors_of_one_kind_are_their_own() -> None:
    def fn(a: Any) -> Any:
        rows = torch.div(a.shape[0], 2, rounding_mode="trunc")
        columns = torch.div(a.shape[1], 2, rounding_mode="trunc")
        return a.new_zeros((rows + 1, 3)), a.new_zeros((columns + 1, 3))

    compiled = stator.compile(fn, backend="eager", dynamic=True)
    for size in ((6, 10), (8, 4)):
        a = torch.randn(size)
        assert_same(compiled(a), fn(a), str(size))


class Anything:
    pass


def test_numbers_that_vary_compared_with_hashes_by_address():
    def same_hash(value, number):
        return number == object.__hash__(value), object.__hash__(value) != number

    traced = stator.compile(same_hash, backend="eager", fullgraph=True)
    for _ in range(3):
        value = Anything()
        assert traced(value, hash(value)) == (True, False)


def test_hashes_of_what_holds_numbers_that_vary():
    def of_a_tuple(n):
        return hash((n, 1, (n,))), {(n, 2): "found"}.get((n, 2))

    def of_a_slice(n):
        return hash(slice(n, 1)), slice(0, n, 3).__hash__(), {slice(n): "found"}.get(slice(n))

    for program in (of_a_tuple, of_a_slice):
        traced = stator.compile(program, backend="eager", fullgraph=True)
        for number in (3, 5, 7, 2.5, -1):
            assert outcome(traced, number) == outcome(program, number)


def test_numbers_that_vary_compared_with_a_nan():
    def compared(n):
        return n < NAN, NAN <= n, n == NAN, n != NAN, n * 1.5 < NAN, -NAN % 1 < n, min(n, NAN), str(max(n, NAN))

    NAN = float("nan")
    traced = stator.compile(compared, backend="eager", fullgraph=True)
    for number in (3, 4, 5, 6.5, 7.5, 8.5):
        assert traced(number) == compared(number)


def test_errors_of_numbers_that_vary():
    def divided(n, by):
        return n // by

    def shown(n, spec):
        return format(n, spec)

    numbers = (3, 5, 70, 2.5, 3.5, 8.0)
    for program, others in ((divided, (0, 0.0, 2)), (shown, ("+d", "c", ".2f", "s"))):
        for other in others:
            stator.reset()
            traced = stator.compile(program, backend="eager", fullgraph=True)
            for number in numbers:
                assert outcome(traced, number, other) == outcome(program, number, other)


def test_errors_of_texts_of_tensors():
    def shown(a, spec):
        return f"{a[0]:{spec}}"

    for a in (torch.tensor([2.5]), torch.tensor([65])):
        for spec in ("+d", ".2f", "c", "s"):
            assert outcome(stator.compile(shown, backend="eager"), a, spec) == outcome(shown, a, spec)


def outcome(function, *args):
    try:
        return function(*args)
    except Exception as e:
        return type(e), str(e)


OPERATIONS_OF_NUMBERS: dict[str, Any] = {
    "pad": lambda a: torch.nn.functional.pad(a, (0, 1, 2, 0), value=-1.0),
    "fft": lambda a: torch.fft.rfft(a, dim=0).abs(),
    "interpolate": lambda a: torch.nn.functional.interpolate(a[None], scale_factor=2.0),
    "addbmm": lambda a: torch.addbmm(a, a[None], torch.ones(1, 4, 4)),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", OPERATIONS_OF_NUMBERS)
def test_operations_whose_kernels_take_numbers_do_not_fix_sizes(name: str, backend: str) -> None:
    stator.reset()
    fn = OPERATIONS_OF_NUMBERS[name]
    compiled = stator.compile(fn, backend=backend, fullgraph=True)
    for n in (3, 5, 9, 11):
        a = torch.randn(n, 4, requires_grad=True)
        b = a.detach().clone().requires_grad_()
        expected, found = fn(a), compiled(b)
        torch.testing.assert_close(found, expected)
        expected.sum().backward()
        found.sum().backward()
        torch.testing.assert_close(b.grad, a.grad)
    assert stator.stats().graphs == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_only_the_kernels_in_python_take_is_refused_for_sizes_that_vary(backend: str) -> None:
    def fn(a: Any) -> Any:
        return torch.nn.functional.interpolate(a, scale_factor=2.0)

    compiled = stator.compile(fn, backend=backend)
    for n in (3, 5, 7):
        compiled(torch.randn(1, 2, n))
        with pytest.raises(Exception) as expected:
            fn(torch.ones(1, 2, n, dtype=torch.int32))
        with pytest.raises(type(expected.value)):
            compiled(torch.ones(1, 2, n, dtype=torch.int32))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_sizes_that_vary_are_shown(backend: str) -> None:
    def show(x: torch.Tensor) -> Any:
        return x + 1, f"{x.shape} {x[0].shape!r}", repr(x.size()), str(x.shape[1:]), "%s" % (x[0, 0].shape,)

    compiled = stator.compile(show, backend=backend, fullgraph=True)
    for n in (3, 4, 5):
        assert compiled(torch.ones(n, 2))[1:] == show(torch.ones(n, 2))[1:]
    assert stator.stats().graphs == 2


def test_an_error_shows_sizes_that_vary() -> None:
    def check(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] < 4:
            return x
        raise ValueError(f"too many: {x.shape}")

    compiled = stator.compile(check, backend="eager", fullgraph=True)
    for n in (5, 6, 7):
        with pytest.raises(ValueError, match=rf"too many: torch\.Size\(\[{n}\]\)"):
            compiled(torch.ones(n))


@pytest.mark.parametrize(
    ("make", "graphs"),
    [
        (lambda n: torch.randn(3, n)[:, -8:], [1, 2, 2, 2]),
        (lambda n: torch.randn(4, n)[:, 0], [1, 2, 2, 2]),
        (lambda n: torch.randn(n - 8, n)[:, :3], [1, 2, 2, 2]),
    ],
    ids=["cropped", "a column", "columns of rows that vary"],
)
def test_a_stride_that_varies_becomes_symbolic(make: Any, graphs: list[int]) -> None:
    assert compiles(lambda t: (t * 2).sum(0), [(make(n),) for n in (10, 12, 17, 29)]) == graphs


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (x * 2).sin(),
        lambda x: x.t() @ x,
        lambda x: (x.is_contiguous(), x.stride(), x.contiguous().view(-1) * 2),
        lambda x: x.reshape(-1) + 1,
        lambda x: x.mul_(2),
        lambda x: (x[1:], x.t(), x * 3),
        lambda x: x.view(2, 2, 4) + 1 if x.is_contiguous() else torch.empty_like(x).copy_(x),
    ],
)
@pytest.mark.parametrize("grad", [False, True])
def test_strides_that_vary_give_what_eager_gives(fn: Any, backend: str, grad: bool) -> None:
    compiled = stator.compile(fn, backend=backend)
    places = [((9, 1), 0), ((11, 1), 2), ((4, 1), 0), ((1, 4), 0), ((1, 7), 3), ((13, 2), 1), ((0, 1), 0), ((16, 4), 1)]
    for stride, offset in places:
        if stride[0] == 0 and fn.__code__.co_names == ("mul_",):
            continue
        bases = [torch.arange(80.0).requires_grad_(grad) for _ in range(2)]
        inputs = [(base * 1 if grad else base).as_strided((4, 4), stride, offset) for base in bases]
        got, want = compiled(inputs[0]), fn(inputs[1])
        assert_same(got, want, f"{stride} {offset}")
        assert_same(inputs[0], inputs[1], f"input at {stride}")
        for have, wanted in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, want)), strict=True):
            if isinstance(have, torch.Tensor):
                assert (have.stride(), have._base is None) == (wanted.stride(), wanted._base is None)
        if grad:
            for result in (got, want):
                sum(
                    t.sum() for t in (result if isinstance(result, tuple) else (result,)) if torch.is_tensor(t)
                ).backward()
            assert_same(bases[0].grad, bases[1].grad, f"gradient at {stride}")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("fn", "make", "numbers"),
    [
        (lambda x: x.clone()[: len(x) - 3].mul_(x.clone()[3:]), torch.ones, (4, 5, 6, 7, 9)),
        (lambda x: (y := x * 2)[: len(x) - 3].mul_(y[3:]), torch.ones, (4, 5, 6, 7, 9, 5)),
        (
            lambda x: (y := x.new_ones(40)).as_strided((4,), (1,)).mul_(y.as_strided((4,), (1,), x.stride(0))),
            lambda n: torch.ones(40).as_strided((4,), (n,)),
            (8, 7, 4, 3, 2, 6),
        ),
        (
            lambda x: (y := x * 2).as_strided((2,), (x.stride(0) - 5,)).mul_(y.as_strided((2,), (1,), 1)),
            lambda n: torch.ones(200).as_strided((20,), (n,)),
            (9, 8, 6, 9),
        ),
    ],
    ids=["apart", "sizes", "offsets", "strides"],
)
def test_writes_beneath_tensors_of_symbolic_sizes_are_refused_where_eager_does(
    fn: Any, make: Any, numbers: tuple[int, ...], backend: str
) -> None:
    compiled = stator.compile(fn, backend=backend)
    for n in numbers:
        try:
            want = fn(make(n))
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match="memory"):
                compiled(make(n))
            assert "memory" in str(error)
        else:
            assert_same(compiled(make(n)), want, str(n))


@pytest.mark.parametrize(
    "index", [(slice(None), 0), (slice(None), slice(None, None, 3)), (..., -1), 0, (0, 1)], ids=str
)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_part_is_written_in_place_at_sizes_that_vary(index: Any, backend: str) -> None:
    """`y[0] += 1` writes a view, and then assigns it to itself."""

    def fn(a: Any) -> Any:
        y = a * 2
        y[index] += 1
        y[index] *= a[index]
        return y

    compiled = stator.compile(fn, backend=backend, fullgraph=True)
    for args in rows(3, 5, 7):
        assert_same(compiled(*args), fn(*args), str(index))
    assert stator.stats().graphs == 2


class Count(int):
    """An integer of the program's own class."""


def test_sizes_and_integers_of_other_classes() -> None:
    def computed(x: Any) -> Any:
        n = x.shape[0]
        return n * Count(3), Count(2) * n, n / Count(2), n - Count(1), Count(9) // n, n < Count(100), x + n

    compiled = stator.compile(computed, backend="eager")
    for size in (4, 5, 6):
        assert_same(compiled(torch.ones(size)), computed(torch.ones(size)), "result")


def with_sizes(x: Any) -> Any:
    sizes = torch._shape_as_tensor(x)
    return (
        sizes,
        sizes.prod() + x.sum(),
        torch._shape_as_tensor(x.sum()),
        x.reshape(sizes.flip(0).tolist()),
        sizes.dtype,
    )


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [None, True])
def test_the_tensor_of_sizes(dynamic: bool | None, backend: str) -> None:
    compiled = stator.compile(with_sizes, backend=backend, fullgraph=True, dynamic=dynamic)
    for n in (3, 5, 4):
        x = torch.linspace(-1, 1, 2 * n).reshape(2, n).requires_grad_()
        assert_same(compiled(x), with_sizes(x), str(n), rtol=1e-6)
        torch.testing.assert_close(*(torch.autograd.grad(f(x)[3].exp().sum(), x) for f in (compiled, with_sizes)))


def met_later(x: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    stator.graph_break()
    return y * 2


def goes_elsewhere(x: torch.Tensor, elsewhere: bool) -> torch.Tensor:
    y = x + 1
    stator.graph_break()
    return met_later(y).sum() if elsewhere else y.sum()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_code_that_is_met_when_sizes_vary_already_is_compiled_once(backend: str) -> None:
    compiled = stator.compile(goes_elsewhere, backend=backend)
    graphs = []
    for size, elsewhere in ((4, False), (6, False), (8, True), (10, True), (12, True)):
        gradients = []
        for run in (goes_elsewhere, compiled):
            x = torch.linspace(0, 1, size, requires_grad=True)
            run(x, elsewhere).backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients)
        graphs.append(stator.stats().graphs)
    assert graphs == [2, 4, 6, 6, 6]


def breaks_before_all_operations(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 5:
        stator.graph_break()
    return x.exp().sum()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_code_behind_a_break_before_all_operations_is_compiled_once(backend: str) -> None:
    compiled = stator.compile(breaks_before_all_operations, backend=backend)
    graphs = []
    for size in (4, 6, 8, 10):
        gradients = []
        for run in (breaks_before_all_operations, compiled):
            x = torch.linspace(0, 1, size, requires_grad=True)
            run(x).backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients)
        graphs.append(stator.stats().graphs)
    assert graphs == [1, 2, 2, 2]


def in_two_places(x: torch.Tensor) -> torch.Tensor:
    for y in (x.sum(1), x):
        stator.graph_break()
        x = x + y.sum()
    return x.sum()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_places_where_tensors_of_other_dimensions_are_met(backend: str) -> None:
    compiled = stator.compile(in_two_places, backend=backend)
    for size in (2, 3, 5, 7):
        x = torch.ones(size, 4)
        torch.testing.assert_close(compiled(x), in_two_places(x))
        if size == 3:
            graphs = stator.stats().graphs
    assert stator.stats().graphs == graphs
