"""An item of a container at a number that varies is guarded by what it is like, and not by the number."""

import copy
import operator

import pytest
import torch
from torch import nn

import stator


class Step:
    """Something of which one attribute is read."""

    def __init__(self, factor, *, kind="scale"):
        self.factor = factor
        self.kind = kind
        self.met = 0

    def __call__(self, x):
        self.met += 1
        return x * self.factor if self.kind == "scale" else x + self.factor


STEPS = [Step(2.0), Step(3.0), Step(5.0), Step(7.0, kind="shift"), Step(11.0), Step(13.0, kind="shift")]


def results_of(program, calls, backend="eager"):
    """What the program gives eagerly and compiled for each of the arguments, and the graphs that this has taken."""
    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for args in calls:
        outcomes = []
        for run in (program, compiled):
            try:
                outcomes.append(run(*copy.deepcopy(args)))
            except (IndexError, KeyError) as e:
                outcomes.append(repr(e))
        same = torch.testing.assert_close if type(outcomes[0]) is not str else operator.eq
        assert same(*outcomes) is not False
    return stator.stats().graphs


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", [list, tuple])
def test_items_that_differ_in_numbers_share_an_entry(kind, backend):
    factors = kind(float(n) for n in range(2, 40))
    x = torch.ones(3)
    calls = [(x, factors, i) for i in (0, 1, 2, 7, 30, -1, -30, 40, -41)]
    assert results_of(lambda x, factors, i: x * factors[i], calls, backend) <= 3


def test_objects_are_guarded_by_what_is_read_of_them():
    x = torch.ones(3)
    graphs = results_of(lambda x, steps, i: steps[i](x), [(x, STEPS, i) for i in (0, 1, 2, 3, 4, 5, 4, 1, 5, 2)])
    assert graphs <= 4  # at 0; at a number that varies, of each kind, with a factor that varies


def test_a_key_made_of_the_number():
    layers = nn.ModuleDict({f"layer_{i}": nn.Linear(3, 3) for i in range(12)})
    x = torch.ones(2, 3)
    assert results_of(lambda x, i: layers[f"layer_{i}"](x), [(x, i) for i in (0, 3, 4, 11, 12)]) <= 3


def test_expressions_of_several_numbers():
    layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(12)])
    x = torch.ones(2, 3)
    calls = [(x, i, j) for i, j in ((1, 3), (2, 4), (3, 5), (4, 7), (5, 6), (2, 3))]
    assert results_of(lambda x, i, j: layers[i * 2 - j // 2](x), calls) <= 3


def test_what_was_changed_before_is_seen():
    def act(x, items, i):
        items.append(x)
        items[0] = x * 2
        return items[i] + 1, items[-i] + 2

    x = torch.ones(3)
    results_of(act, [(x, [x * n for n in range(6)], i) for i in (1, 2, 3, 0, 4)])

    def by_key(x, items, i):
        items[f"{i}"] = x * 3
        items["a"] = x
        return items[f"{i}"] + 1

    results_of(by_key, [(x, {"0": x}, i) for i in (1, 2, 3, 0, 4)])


def test_what_is_changed_is_nothing_else():
    def act(lists, i, j):
        lists[i].append(1)
        return len(lists[j]), lists[i] is lists[j]

    for run in (act, stator.compile(act, backend="eager")):
        lists = [[], [], [], []]
        found = [run(lists, i, j) for i, j in ((0, 1), (1, 2), (2, 3), (3, 3), (1, 1), (0, 3), (3, 3))]
        if run is act:
            expected = found, lists
    assert (found, lists) == expected


def test_the_container_s_own_methods_are_asked():
    class Shifted(list):
        def __getitem__(self, i):
            return super().__getitem__(i + 1) * 2

    class Missing(dict):
        def __missing__(self, key):
            return len(key)

    x = torch.ones(3)
    results_of(lambda x, items, i: x * items[i], [(x, Shifted(range(2, 9)), i) for i in (0, 1, 2, 5, 6)])
    missing = Missing({"1": 4, "2": 5, "3": 6})
    results_of(lambda x, items, i: x * items[str(i)], [(x, missing, i) for i in (0, 1, 2, 3, 100)])


def test_a_number_that_is_another_object():
    class Index:
        def __init__(self, i):
            self.i = i

        def __index__(self):
            return self.i

        def __add__(self, other):
            raise AssertionError("guards run no code of the program's")

    factors = [float(n) for n in range(2, 9)]
    x = torch.ones(3)
    program = stator.compile(lambda x, i: x * factors[i + 1] if type(i) is int else x * factors[i], backend="eager")
    for i in (0, 1, 2, 3):
        torch.testing.assert_close(program(x, i), x * factors[i + 1])
    torch.testing.assert_close(program(x, Index(3)), x * factors[3])
    torch.testing.assert_close(program(x, True), x * factors[1])


def test_gradients_of_the_selected_parameters():
    layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(6)])
    compiled = stator.compile(lambda x, i: layers[i](x).sum(), backend="aot_eager")
    for i in range(6):
        compiled(torch.ones(2, 3), i).backward()
        assert all((layer.weight.grad is not None) is (n <= i) for n, layer in enumerate(layers))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_length_that_varies_is_a_symbol(backend):
    def act(x, items):
        before = len(items)
        items.append(before)
        return x * len(items) + before, not items, items[-1], items[-2] if before else None

    x = torch.ones(3)
    calls = [(x, [1.5 * k for k in range(n)]) for n in (3, 4, 5, 9, 30, 1, 0)]
    assert results_of(act, calls, backend) <= 4  # for 0, where another branch is taken, one more
    assert results_of(lambda x, items: x * len(items), [(x, dict.fromkeys(range(n))) for n in range(2, 9)]) == 2
    program = lambda x, items: x * len(items) * (items[-1] + items[-3])  # noqa: E731
    assert results_of(program, [(x, range(n)) for n in (3, 4, 5)]) == 3


def test_a_truth_that_is_a_length():
    def act(x, queue):
        total = x
        while queue:
            total = total + queue.pop()
            stator.graph_break()
        return total if not queue else None

    x = torch.ones(3)
    assert results_of(act, [(x, [1.5] * n) for n in (0, 1, 2, 3, 4, 5)]) <= 20
    assert results_of(lambda x, items: x + 1 if items else x, [(x, [1] * n) for n in (2, 3, 4, 9, 0, 7)]) == 2


def test_a_length_and_then_the_items():
    def act(x, items):
        return x * len(items) + sum(items) + len(items), items[-1], items[len(items) - 1]

    x = torch.ones(3)
    results_of(act, [(x, [1.5 * k for k in range(n)]) for n in (3, 4, 5, 3, 4)])
