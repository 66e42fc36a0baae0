"""Numbers, sizes and places that depend on the contents of tensors: one graph for all of them."""

from __future__ import annotations

import itertools
import operator
from collections import deque
from typing import Any

import pytest
import torch
import torch.fx.experimental.symbolic_shapes as symbolic

import stator
from tests.pytorch.gradients import BACKENDS, alike
from tests.pytorch.old_torch import OLD_TORCH

SIZES = (4, 7, 5)
#: fake tensors of torch 2.13 take no tensor as an index, which it must stay in the body of an operation
NO_TENSOR_INDEX = OLD_TORCH


def table(n: int) -> torch.Tensor:
    return torch.linspace(-1.5, 2.0, 3 * n).reshape(n, 3).requires_grad_()


def indexed(n: int) -> tuple[torch.Tensor, ...]:
    return table(n), torch.tensor(n // 2 - 1)


def listed(n: int) -> tuple[torch.Tensor, ...]:
    return table(n), torch.tensor([1, n - 1])


def written(x: Any, *writes: Any) -> Any:
    y = x.clone()
    for index, value in writes:
        y[index] = value
    return y


def added(x: Any, *indices: Any) -> Any:
    y = x.clone()
    for index in indices:
        y[index] += 1
        y[index] *= x[0, 0]
    return y


def cached(x: Any, i: Any) -> Any:
    cache = torch.zeros(1, 16, 3)
    cache[:, i : i + x.shape[0]] = x
    cache[:, :i] = x[:i]
    return cache[:, : i + x.shape[0]].sum(1), cache[:, i:].mean(), cache


def number(x: Any, i: Any) -> Any:
    n = i.item()
    return x[n], x[n, 1], x[..., n], x[None, n], x[n, None, n], x[n, 1:], x[:, None, n], x[1:, ..., n], x[(n,)], x[-n]


def with_tensors(x: Any, i: Any) -> Any:
    n = int(i)
    mask, rows = x[0] > 0, torch.tensor([0, 1, 0])
    return x[n, mask], x[x[:, 0] > 0, n], x[n, rows], x[rows, n], x[True, n], x[n, ...], x[i, rows], x[rows, i]


#: programs of a table and an index in it
BY_INDEX = {
    "read": lambda x, i: x[i] * 2,
    "read twice": lambda x, i: (x[i, i], x[i + 1][i], i.item() + x[i]),
    "read parts": lambda x, i: (x[i, 1], x[..., i], x[None, i], x[i, 1:], x[:, i], x[i, x[0] > 0]),
    "write": lambda x, i: written(x, (i, 5.0), ((i, 1), 6.0), ((..., i), x[:, 0]), (i + 1, x[0])),
    "write a part": lambda x, i: added(x, i, (i, 1), (..., i)),
    "write at a number": lambda x, i: added(x, i.item(), (int(i), 1), (..., int(i)), (int(i), x[0] > 0)),
    "index by a number": number,
    "index by a number and tensors": with_tensors,
    "slice": lambda x, i: (x[i:], x[:i], x[i : i + 2], x[:, : i + 1]),
    "cache": cached,
    "narrow": lambda x, i: (x.narrow(0, i, 1), torch.narrow(x, 0, 0, i), x.narrow(0, i.item(), 2)),
    "select": lambda x, i: (x.select(0, i), torch.select(x, 1, i), x.select(0, i.item())),
    "index_copy_": lambda x, i: torch.zeros(9, 3).index_copy_(0, i[None], x[:1]),
    "mapped": lambda x, i: torch.vmap(lambda row: row[i])(x),
    "mapped over indices": lambda x, i: (
        torch.vmap(lambda a, j: a[j])(x, torch.arange(len(x)) % 3),
        torch.vmap(lambda j: x[j].sum())(torch.arange(3) + i),
    ),
    "topk": lambda x, i: torch.topk(x, i.item() + 1, dim=0).values,
    "arange": lambda x, i: torch.arange(int(i)) + i,
    "sizes": lambda x, i: (torch.zeros(i.item(), 3), torch.full((int(i) + 1,), 2.0), x.detach().repeat(int(i), 1)),
    "float": lambda x, i: x * float(i) + (i * 0.5).item() ** 2 + int(i * 1.5),
    "bool": lambda x, i: x * (i > 1).item(),
    "bool of a tensor": lambda x, i: (bool(i > 1), bool(i), bool(x[:1, 1].sum()), x * bool((x > 1).any())),
    "bool of a number": lambda x, i: (bool(i.item()), [bool(n) for n in (x[0] > 0).tolist()], bool(i.item() * 0.5)),
    "extremes": lambda x, i: (x * max(i.item(), 2), min(int(i), 3, 9), max([4, int(i)])),
    "extremes of floats": lambda x, i: (x * max(1.0, (i * 0.7).item()), min(0.5, 1 / (i.item() + 1.0)) * x),
    "torch's functions of numbers": lambda x, i: (
        *(torch.sym_max(i.item(), 2), torch.sym_min(3, i.item()), torch.sym_float(i.item())),
        *(
            torch.sym_int(i.item() / 2),
            torch.sym_ite(i.item() > 1, 3, 4),
            torch.sym_not(i.item() > 1),
            torch.sym_sum([i.item(), 3]),
        ),
    ),
}
#: programs of a table and a list of the sizes of its parts
BY_LIST = {
    "split": lambda x, s: torch.split(x, s.tolist()),
    "sum": lambda x, s: (sum(s.tolist()) * 2, x * sum(s.tolist())),
    "nested": lambda x, s: s[None].tolist() + [x * s.tolist()[1]],
    "of no dimension": lambda x, s: (s[0].tolist(), x * s[1].tolist()),
    "of floats": lambda x, s: (x * (s * 0.5).tolist()[1], (s / 4).tolist()),
    "of bools": lambda x, s: ((s > 1).tolist(), x),
    "sum of bools": lambda x, s: (sum((x[0] > 0).tolist()), x * ((s > 1).tolist()[0] + (s > 2).tolist()[1] * 2)),
    "of gradients": lambda x, s: x[0].tolist(),
    "none": lambda x, s: (s[:0].tolist(), s[:0, None].tolist(), x),
    "means": lambda x, s: [x[: s.tolist()[0]].mean(0), x[s.tolist()[0] :].mean(0)],
    "repeated": lambda x, s: (torch.repeat_interleave(s, s), x[:2].repeat_interleave(s, 0, output_size=int(s.sum()))),
    "unique": lambda x, s: torch.unique(s % 2, return_inverse=True, return_counts=True),
    "where": lambda x, s: (torch.where(x > 0)[0].float().mean(), x[x > 0].view(-1, 1).expand(-1, 2), (x > 0).nonzero()),
}
PROGRAMS = {name: (program, indexed) for name, program in BY_INDEX.items()}
PROGRAMS |= {f"list: {name}": (program, listed) for name, program in BY_LIST.items()}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph_for_all_contents(name: str, backend: str) -> None:
    program, inputs = PROGRAMS[name]
    breaks = None if NO_TENSOR_INDEX and name.startswith("mapped") else 0
    stats = alike(lambda: (program, []), inputs, backend=backend, sizes=SIZES, breaks=breaks)
    assert stats.graphs <= len(SIZES)


@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
def test_the_extreme_of_a_number_that_is_none(backend: str) -> None:
    def program(x: Any) -> Any:
        return max(1.0, x.sum().item()), min(1.0, x.sum().item()), max(x.sum().item(), 1.0)

    compiled = stator.compile(program, backend=backend)
    for value in (2.0, 0.5, float("nan")):
        assert repr(compiled(torch.tensor([value]))) == repr(program(torch.tensor([value])))


def test_with_inductor() -> None:
    def program(x: Any, i: Any) -> Any:
        n = i.item()
        torch._check(n < x.shape[0])
        return x[i] * 2, x.narrow(0, 0, n), x[:, i + 1], sum(torch.stack([i, i + 1]).tolist())

    alike(lambda: (program, []), indexed, backend="inductor", sizes=SIZES, breaks=0, tolerance=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_index_that_is_a_size_stays_symbolic(backend: str) -> None:
    def program(x: Any, y: Any) -> Any:
        z = x.clone()
        z[y.size(0) - 1, 0] = 3
        return x[y.size(0) - 1] * 2, x[-y.size(0), 1], z

    stats = alike(
        lambda: (program, []), lambda n: (table(n + 2), table(n)), backend=backend, sizes=(4, 5, 7, 8), breaks=0
    )
    assert stats.graphs == 2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("i", [0, 2, 3, 4, -3, -4, 9])
@pytest.mark.parametrize(
    "program",
    [
        lambda x, i: x[i] * 2,
        lambda x, i: x[0, i + 0],
        lambda x, i: (x[i], x * 2)[1],
        lambda x, i: x[i.item()],
        lambda x, i: operator.setitem(x * 2, i, 1.0),
        lambda x, i: written(x, ((0, i), 1.0)),
        lambda x, i: x.narrow(0, i, 1),
        lambda x, i: x.narrow(0, 0, i.item()),
        lambda x, i: x.narrow(0, i.item(), 1),
        lambda x, i: x.select(0, i.item()),
        lambda x, i: x.reshape(i.item(), -1),
        lambda x, i: torch.zeros(i.item()),
        lambda x, i: x.split([i.item(), 3 - i.item()]),
    ],
)
def test_numbers_that_do_not_fit_raise_what_eager_raises(program: Any, i: int, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    compiled(torch.ones(3, 3), torch.tensor(1))  # what fits has made the graph
    alike(lambda: (program, []), lambda n: (torch.ones(3, 3), torch.tensor(i)), backend=backend, sizes=(3,))
    assert _outcome(compiled, i) == _outcome(program, i)


def _outcome(function: Any, i: int) -> Any:
    try:
        result = function(torch.ones(3, 3), torch.tensor(i))
    except Exception as e:
        return type(e), str(e)
    parts = result if isinstance(result, tuple) else (result,)
    return [part if part is None else part.tolist() for part in parts]


def undecided(x: Any) -> Any:
    n = (x > 0).nonzero().shape[0]
    if symbolic.guard_or_false(n == 0) or not symbolic.guard_or_true(n != 0):
        return x
    if symbolic.statically_known_true(n == 3) or symbolic.statically_known_false(n == 3):
        return x * 3
    if symbolic.has_guarding_hint(n):
        return x - 1
    return x + n


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_nobody_can_decide_is_answered_by_name(backend: str) -> None:
    compiled = stator.compile(undecided, backend=backend, fullgraph=True)
    for n in SIZES:
        x = table(n)
        assert torch.equal(compiled(x), x + int((x > 0).sum()))


@pytest.mark.filterwarnings("ignore:guard_size_oblivious")
def test_sizes_are_taken_to_be_two_or_more() -> None:
    def program(x: Any) -> Any:
        selected = x[x > 0]
        return x if symbolic.guard_size_oblivious(selected.shape[0] == 1) else x + 1

    assert stator.compile(program, backend="eager", fullgraph=True)(torch.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_backend_cannot_decide_breaks_where_the_number_is_made(backend: str) -> None:
    stats = alike(lambda: (lambda x, i: x.repeat(int(i), 1), []), indexed, backend=backend, sizes=SIZES)
    assert [b.code for b in stats.breaks] == ([] if backend == "eager" else ["SB0202"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_sizes_decide_is_answered_as_in_eager(backend: str) -> None:
    def program(x: Any) -> Any:
        if symbolic.guard_or_false(x.shape[0] == 7):
            return x * 3
        return x - 1 if symbolic.statically_known_true(x.shape[0] == 5) else x + x.shape[0]

    alike(lambda: (program, []), lambda n: (table(n),), backend=backend, sizes=(4, 7, 5, 7, 9), breaks=0)


def test_an_operation_that_reads_a_number_for_itself_leaves_it_to_others() -> None:
    def program(x: Any, i: Any) -> Any:
        row = x[i]
        return row, i.item() + 1, torch.zeros(i.item()), x[: i.item()]

    for backend in BACKENDS:
        alike(lambda: (program, []), indexed, backend=backend, sizes=SIZES, breaks=0)


def test_a_long_list_is_made_by_eager() -> None:
    compiled = stator.compile(lambda x: (x * 2).tolist(), backend="eager")
    assert compiled(torch.arange(100)) == [2 * n for n in range(100)]
    assert stator.stats().graph_breaks == 1


#: a program, and the break that says what it depends on in the program's own names
REASONS: dict[str, tuple[Any, str]] = {
    "a condition": (
        lambda x, y: x + 1 if x.max().item() > 3 else x,
        "a condition on a number from Tensor.item depends on the value of a tensor",
    ),
    "a size": (
        lambda x, y: x + 1 if len((x > 0).nonzero()) == 2 else x,
        "a condition on how many elements Tensor.nonzero gives depends on the value of a tensor",
    ),
    "a size of what a mask selects": (
        lambda x, y: x + 1 if len(x[x > 0]) == 2 else x,
        "a condition on how many elements a mask selects depends on the value of a tensor",
    ),
    "a number": (
        lambda x, y: [x * i for i in range(int(x.max()) + 1)],
        "a number computed of int(tensor) depends on the value of a tensor",
    ),
    "an item of a list": (
        lambda x, y: x + 1 if x.tolist()[0] > 3 else x,
        "a condition on a number from Tensor.tolist depends on the value of a tensor",
    ),
    "a conversion": (
        lambda x, y: x + 1 if float(x.max()) > 3 else x,
        "a condition on float(tensor) depends on the value of a tensor",
    ),
    "the int of a float": (
        lambda x, y: torch.nn.functional.adaptive_avg_pool1d(x[None, None], int(x.max())),
        "needs a number that depends on the value of a tensor: int(tensor)",
    ),
    "sizes that differ": (lambda x, y: x + y, "The size of tensor a (x.size(0)) must match the size of tensor b"),
}


@pytest.mark.parametrize("name", REASONS)
def test_reasons_name_no_symbols(name: str) -> None:
    program, reason = REASONS[name]
    stator.reset()
    try:
        stator.compile(program, backend="eager", dynamic=True)(torch.ones(3), torch.ones(4))
    except RuntimeError:
        assert name == "sizes that differ"
    assert [reason in b.reason for b in stator.stats().breaks] == [True], stator.stats().breaks


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_count_made_outside_varies(backend: str) -> None:
    def build() -> Any:
        numbers = itertools.count(1)
        return lambda x: (x * next(numbers), next(numbers)), []

    stats = alike(build, backend=backend, breaks=0)
    assert stats.graphs <= 3
    assert not any("next(numbers)" in each.reason for each in stats.recompile_log)


def _resynthesised(x: Any, window: Any) -> Any:
    return torch.istft(torch.stft(x, 16, 4, window=window, return_complex=True) * 2, 16, 4, window=window)


@pytest.mark.parametrize("backend", BACKENDS)
def test_operation_that_looks_at_an_element_before_it_refuses_it(backend: str) -> None:
    compiled = stator.compile(_resynthesised, backend=backend, fullgraph=True)
    for n in (64, 96, 144):
        signal = torch.linspace(-1, 1, n).sin().requires_grad_()
        other = signal.detach().clone().requires_grad_()
        expected, got = _resynthesised(signal, torch.hann_window(16)), compiled(other, torch.hann_window(16))
        torch.testing.assert_close(got, expected)
        expected.square().sum().backward()
        got.square().sum().backward()
        torch.testing.assert_close(other.grad, signal.grad)


def test_operation_refuses_an_element_when_the_graph_runs() -> None:
    signal, window = torch.ones(64), torch.zeros(16)
    with pytest.raises(RuntimeError) as expected:
        _resynthesised(signal, window)
    compiled = stator.compile(_resynthesised, backend="eager", fullgraph=True)
    compiled(signal, torch.ones(16))
    with pytest.raises(RuntimeError) as refused:
        compiled(signal, window)
    assert str(refused.value) == str(expected.value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_function_that_takes_no_number_for_a_tensor(backend: str) -> None:
    def all_true(x: Any) -> bool:
        mask = x.sum() == x.sum()
        return torch.equal(mask, torch.ones_like(mask))

    compiled = stator.compile(all_true, backend=backend)
    for n in (3, 4, 5):
        assert compiled(torch.ones(n)) is True
        assert compiled(torch.full((n,), float("nan"))) is False


def test_a_condition_on_sizes_names_them_as_the_program_does():
    class Queue(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.sum().item() + x.size(0) > 3 else x

    stator.reset()
    compiled = stator.compile(Queue(), backend="eager")
    for size in (2, 3):
        compiled(torch.ones(size))
    assert "a condition on x.size(0) and a number from Tensor.item depends" in stator.stats().breaks[-1].reason


def test_a_condition_on_many_numbers_names_what_holds_them():
    """Each of the items would be a name; what the program has comes before what a call gives."""
    losses, best = deque(maxlen=4), {"loss": 0.5, "rate": 0.1}

    def better(x):
        losses.append(x.mean().item())
        return x * 2 if sum(losses) / len(losses) > best["loss"] + best["rate"] else x

    stator.reset()
    compiled = stator.compile(better, backend="eager")
    for n in range(6):
        best["loss"] += n / 7
        best["rate"] += n / 9
        compiled(torch.full((2,), float(n)))
    told = "a condition on best['loss'], best['rate'], items of losses and a number from Tensor.item depends"
    assert told in stator.stats().breaks[-1].reason


def test_an_operation_that_must_know_a_number_says_where_it_is_from() -> None:
    def weighted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        weights = torch.bincount(y, minlength=3).float()
        return torch.nn.functional.cross_entropy(x, y, weight=weights)

    x, y = torch.arange(12.0).view(4, 3), torch.tensor([0, 1, 2, 1])
    torch.testing.assert_close(stator.compile(weighted, backend="eager")(x, y), weighted(x, y))
    (brk,) = stator.stats().breaks
    assert brk.code == "SB0202"
    assert brk.reason.endswith("depends on the value of a tensor: how many elements torch.bincount gives")
